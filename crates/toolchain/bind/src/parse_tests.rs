use super::*;
use crate::{c, extension, rust};

fn read_text(text: &str) -> Result<HeaderInterface, BindError> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let header = directory.path().join("interface.h");
    let text =
        format!("#include <mullion/bind.h>\n#include <stdint.h>\n#include <stddef.h>\n{text}\n");
    std::fs::write(&header, text).expect("written");
    read(&header, &[])
}

const UNSIGNED: HeaderType = HeaderType::Integer {
    bytes: 4,
    signed: false,
};

#[test]
fn what_a_header_says() {
    let interface = read_text(
        "struct point { int32_t x, y; double w[2]; struct point *next; };\n\
         int not_marked(void);\n\
         MULLION_EXTENSION uint64_t area(const struct point *list MULLION_IN(count), uint32_t count);\n\
         MULLION_HOST void log_text(const char *text MULLION_STRING, size_t level);\n\
         MULLION_EXTENSION char *plain(void *anything, short s, unsigned char c, float f, _Bool b);",
    )
    .expect("it can be read");
    let names: Vec<_> = interface
        .functions
        .iter()
        .map(|function| (&*function.name, function.is_hosts))
        .collect();
    assert_eq!(
        names,
        [("area", false), ("log_text", true), ("plain", false)]
    );
    let point = &interface.structs[0];
    assert_eq!((&*point.name, point.fields.len()), ("point", 4));
    assert_eq!(point.fields[2].length, Some(2));
    let area = &interface.functions[0];
    let list = HeaderType::Pointer(Box::new(HeaderType::Struct("point".to_owned())));
    assert_eq!(area.parameters[0].kind, list);
    let count = Count::Parameter("count".to_owned());
    assert_eq!(area.parameters[0].direction, Some(Direction::In(count)));
    assert_eq!(area.parameters[1].kind, UNSIGNED);
    assert_eq!(
        area.result,
        HeaderType::Integer {
            bytes: 8,
            signed: false
        }
    );
    let plain = &interface.functions[2];
    assert_eq!(
        plain.parameters[0].kind,
        HeaderType::Pointer(Box::new(HeaderType::Void))
    );
    assert_eq!(
        plain.parameters[1].kind,
        HeaderType::Integer {
            bytes: 2,
            signed: true
        }
    );
    assert_eq!(plain.parameters[4].kind, HeaderType::Bool);
}

#[test]
fn what_cannot_cross_is_refused_with_its_place() {
    for (text, place, reason) in [
        (
            "MULLION_HOST void f(int *p MULLION_IN(n));",
            "f, p",
            "n is no integer",
        ),
        (
            "MULLION_HOST void f(int p MULLION_IN(3));",
            "f, p",
            "only pointers",
        ),
        (
            "MULLION_HOST void f(int *p MULLION_STRING);",
            "f, p",
            "made of char",
        ),
        (
            "MULLION_HOST void f(void *p MULLION_IN(3));",
            "f, p",
            "uint8_t",
        ),
        (
            "MULLION_HOST void f(int *p MULLION_IN(1) MULLION_OUT(1));",
            "f, p",
            "two marks",
        ),
        ("MULLION_HOST void f(const char *, ...);", "f", "variable"),
        ("MULLION_HOST void f(int);", "f", "must have a name"),
        (
            "struct s { int a; }; MULLION_HOST void f(struct s value);",
            "f, value",
            "by pointer",
        ),
        (
            "struct s { int a; }; MULLION_HOST struct s f(void);",
            "f",
            "returned",
        ),
        (
            "struct s { char a; int b; }; MULLION_HOST void f(struct s *p);",
            "s, b",
            "padding in front",
        ),
        (
            "struct s { int b; char a; }; MULLION_HOST void f(struct s *p);",
            "s",
            "padding at its end",
        ),
        (
            "struct s { int b : 3; }; MULLION_HOST void f(struct s *p);",
            "s",
            "bit fields",
        ),
        (
            "union u { int a; float b; }; MULLION_HOST void f(union u *p);",
            "f, p",
            "union",
        ),
        (
            "MULLION_HOST void f(int a, int b, int c, int d, int e, int g, int h, int i, int j);",
            "f",
            "eight arguments",
        ),
        ("MULLION_HOST int variable;", "variable", "only functions"),
        (
            "MULLION_HOST void f(long double d);",
            "f, d",
            "cannot cross",
        ),
    ] {
        match read_text(text) {
            Err(BindError::Unsupported {
                place: found,
                reason: why,
            }) => {
                assert_eq!(found, place, "{text}");
                assert!(why.contains(reason), "{text}: {why}");
            }
            other => panic!("{text}: {other:?}"),
        }
    }
    assert!(matches!(read_text("int f(void);"), Err(BindError::Empty)));
    assert!(matches!(
        read_text("int f(;"),
        Err(BindError::Syntax { .. })
    ));
    assert!(matches!(
        read_text("#include <missing.h>"),
        Err(BindError::Preprocessor(_))
    ));
}

#[test]
fn names_that_rust_keeps_are_written_raw() {
    let interface =
        read_text("MULLION_EXTENSION int match(int type, int self);").expect("it can be read");
    let text = rust(&interface, "interface.h");
    assert!(
        text.contains("pub fn r#match(&self, r#type: i32, self_: i32)"),
        "{text}"
    );
    let text = extension(&interface, "interface.h");
    assert!(text.contains("MULLION_EXPORT_RECORD(match);"), "{text}");
}

/// Of each kind of parameter and result, on both sides.
const EVERYTHING: &str = "
struct pair { int32_t a; float b; };
MULLION_EXTENSION double mixed(double a, float b, int8_t c, _Bool d, uint64_t e);
MULLION_EXTENSION float single(void);
MULLION_EXTENSION _Bool truth(int a);
MULLION_EXTENSION struct pair *raw(struct pair *plain, void *anything);
MULLION_EXTENSION void arrays(const struct pair *in MULLION_IN(n), struct pair *out MULLION_OUT(n),
                              int64_t *both MULLION_INOUT(3), int n, const char *text MULLION_STRING);
MULLION_HOST double host_mixed(double a, float b, short c, _Bool d, char e);
MULLION_HOST void host_nothing(void);
MULLION_HOST void *host_raw(void *plain);
MULLION_HOST int host_many(int a, int b, struct pair *c MULLION_INOUT(1), int d, double e, int f, int g, char h);
MULLION_HOST int host_most(int a, int b, int c, int d, int e, _Bool f, struct pair *g MULLION_OUT(1), void *h);
MULLION_HOST float host_arrays(const struct pair *in MULLION_IN(n), struct pair *out MULLION_OUT(n),
                               int64_t *both MULLION_INOUT(3), uint32_t n, const char *text MULLION_STRING);";

#[test]
fn the_stubs_for_c_compile() {
    let interface = read_text(EVERYTHING).expect("it can be read");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let place = |name: &str| directory.path().join(name);
    let header = format!("#include <mullion/bind.h>\n#include <stdint.h>\n{EVERYTHING}\n");
    std::fs::write(place("every-thing.h"), header).expect("written");
    let stubs = c(&interface, "every-thing.h").expect("no pointers in structures");
    std::fs::write(place("stubs.h"), stubs).expect("written");
    std::fs::write(
        place("host.c"),
        "#include \"stubs.h\"\nint unit_is_not_empty;\n",
    )
    .expect("written");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let output = Command::new("gcc")
        .args([
            "-std=c99",
            "-Wall",
            "-Wextra",
            "-pedantic",
            "-Werror",
            "-c",
            "-o",
            "/dev/null",
        ])
        .arg("-I")
        .arg(root.join("include"))
        .arg("-I")
        .arg(root.join("sysroot/include"))
        .arg(place("host.c"))
        .output()
        .expect("a compiler");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

/// The head of the header lists all that a host is to use of it.
#[test]
fn the_stubs_for_c_say_what_they_name() {
    let interface = read_text(EVERYTHING).expect("it can be read");
    let stubs = c(&interface, "every-thing.h").expect("no pointers in structures");
    let (head, rest) = stubs.split_once("*/").expect("a comment");
    let mut named = 0;
    for line in rest.lines() {
        let function = line.strip_prefix("static inline mullion_status ");
        let name = function.and_then(|text| text.split_once('('));
        let own = line
            .strip_prefix("struct ")
            .and_then(|text| text.strip_suffix(" {"));
        let name = match (name, own) {
            // What the library calls for a function of the host's is nobody else's to call.
            (Some((name, _)), _) if name.starts_with("mullion_answer_") => continue,
            (Some((name, _)), _) => format!("{name}("),
            (None, Some(name)) => format!("struct {name}\n"),
            (None, None) => continue,
        };
        assert!(head.contains(&name), "{name} is not in:\n{head}");
        named += 1;
    }
    assert!(named > 5 && head.contains("EVERY_THING_LONGEST"), "{head}");
}

#[test]
fn pointers_in_structures_are_not_for_c() {
    let text = "struct s { char *p; }; MULLION_EXTENSION void f(struct s *p);";
    let interface = read_text(text).expect("it can be read");
    assert!(matches!(
        c(&interface, "s.h"),
        Err(BindError::Unsupported { .. })
    ));
}

/// Whatever a callback, its type or the parameter is called, the host's header compiles or says why not.
#[test]
fn callbacks_have_any_name() {
    for name in [
        "user", "find", "domain", "offer", "spell", "host", "visit", "imports", "value",
    ] {
        for form in [
            "typedef int (*NAME)(int); MULLION_EXTENSION int each(NAME NAME); MULLION_HOST int all(NAME NAME);",
            "typedef int NAME(int); MULLION_EXTENSION int each(NAME *f); MULLION_HOST int all(NAME *f);",
            "typedef int NAME(int); MULLION_EXTENSION int each(NAME f);",
            "typedef int (*NAME_f)(int); MULLION_EXTENSION int NAME(NAME_f NAME);",
            "typedef int (*NAME_f)(int); MULLION_HOST int NAME(NAME_f NAME);",
        ] {
            let text = form.replace("NAME", name);
            let interface = read_text(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert!(rust(&interface, "spell.h").contains("Ptr<u8>"), "{text}");
            match c(&interface, "spell.h") {
                Ok(stubs) => compiles(&text, &stubs),
                Err(error) => assert!(
                    error.to_string().contains("the made header's own")
                        && form.contains(" NAME(NAME_f"),
                    "{text}: {error}"
                ),
            }
        }
    }
}

/// gcc takes a header with this text, and the one made from it.
#[track_caller]
fn compiles(text: &str, stubs: &str) {
    let directory = tempfile::tempdir().expect("a directory");
    let header = format!("#include <mullion/bind.h>\n#include <stdint.h>\n{text}\n");
    std::fs::write(directory.path().join("spell.h"), header).expect("written");
    std::fs::write(directory.path().join("stubs.h"), stubs).expect("written");
    let top = concat!(env!("CARGO_MANIFEST_DIR"), "/../../..");
    let output = Command::new("gcc")
        .args(["-std=gnu11", "-Wall", "-Werror", "-fsyntax-only", "-I"])
        .arg(format!("{top}/include"))
        .arg(format!("-I{top}/sysroot/include"))
        .arg(directory.path().join("stubs.h"))
        .output()
        .expect("the compiler");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{said}\n{stubs}");
}
