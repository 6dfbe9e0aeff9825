//! `mullion compile`: who may have what compiled, what is refused, and what runs.

#[allow(dead_code, reason = "others use more of it")]
mod office;

use office::{Office, examples};
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Keys, a policy and a place.
fn office() -> Office {
    let types = ["student", "staff", "system-programmer", "monitor"];
    let types = types.map(|name| {
        let path = examples().join(format!("types/{name}.toml"));
        path.display().to_string()
    });
    Office::with(&["root", "compiler", "alice", "bob"], &types)
}

impl Office {
    fn compile(&self, id: &str, who: &str, file: &str, more: &[&str]) -> (Option<i32>, String) {
        let module_type = examples()
            .join(format!("types/{id}.toml"))
            .display()
            .to_string();
        let file = examples().join(file).display().to_string();
        let mut words = vec![
            "compile",
            "--type",
            &module_type,
            "--as",
            who,
            "--key",
            "compiler",
            "-o",
            "out.mx",
        ];
        words.extend(more);
        words.push(&file);
        let output = self.run(&words, None);
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    }
}

/// `O_NONBLOCK` of Linux: a pipe that nobody reads is not opened.
const NOBODY_WAITS: i32 = 0o4000;

/// Whoever may write where the image goes does not choose what is signed. A pipe gives back another program than the one that was
/// written into it.
#[test]
fn what_is_signed_is_what_was_judged() {
    let office = office();
    let (status, said) = office.compile("system-programmer", "root", "spin.c", &[]);
    assert_eq!(status, Some(0), "{said}");
    let (pipe, made) = (office.at("out.mx"), office.at("made.mx"));
    fs::rename(&pipe, office.at("spin.mx")).expect("it is there");
    let spins = fs::read(office.at("spin.mx")).expect("it is there");
    let make = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(make.expect("it starts").success());
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            fs::write(&made, fs::read(&pipe).expect("an image")).expect("room");
            while !done.load(Ordering::Relaxed) {
                let mut open = fs::OpenOptions::new();
                let Ok(mut file) = open.write(true).custom_flags(NOBODY_WAITS).open(&pipe) else {
                    std::thread::sleep(Duration::from_millis(1));
                    continue;
                };
                let mut rest = &spins[..];
                while !rest.is_empty() && !done.load(Ordering::Relaxed) {
                    match file.write(rest) {
                        Ok(bytes) => rest = &rest[bytes..],
                        Err(_) => std::thread::sleep(Duration::from_millis(1)),
                    }
                }
            }
        });
        let (status, said) = office.compile("student", "root", "straight.c", &[]);
        done.store(true, Ordering::Relaxed);
        assert_eq!(status, Some(0), "{said}");
    });
    for name in ["made", "spin"] {
        let record = office.at(&format!("{name}.mx.record"));
        fs::copy(office.at("out.mx.record"), record).expect("a record");
    }
    let swapped = office.run(&["admit", "spin.mx", "--as", "root"], None);
    assert!(!swapped.status.success(), "a loop of a student's");
    let admitted = office.must(&["admit", "made.mx", "--as", "root"], None);
    assert!(admitted.contains("time 10ms"), "{admitted}");
}

/// A packet in the form that the environment of the monitors reads.
fn packet(protocol: u8, fragment: u16, port: u16) -> Vec<u8> {
    let mut bytes = vec![0x45, 0, 0, 40, 0, 1];
    bytes.extend(fragment.to_be_bytes());
    bytes.extend([64, protocol, 0, 0, 10, 0, 0, 7, 10, 0, 0, 9]);
    bytes.extend(4000u16.to_be_bytes());
    bytes.extend(port.to_be_bytes());
    bytes.extend([0; 16]);
    let mut whole = u16::try_from(bytes.len())
        .expect("short")
        .to_be_bytes()
        .to_vec();
    whole.extend(bytes);
    whole
}

#[test]
fn a_monitor_counts_fragments_and_cannot_see_the_source() {
    let office = office();
    let compile = [
        "grant",
        "--from",
        "root",
        "--to",
        "alice",
        "--type",
        "oke-monitor",
        "--use-compiler",
        "-o",
        "use.kn",
    ];
    let load = [
        "grant",
        "--from",
        "root",
        "--to",
        "alice",
        "--type",
        "oke-monitor",
        "-o",
        "load.kn",
    ];
    let (status, said) = office.compile("monitor", "alice", "monitor.c", &[]);
    assert_eq!(status, Some(1), "{said}");
    assert!(
        said.contains("alice may not have programs of the type `oke-monitor` compiled"),
        "{said}"
    );
    office.must(&compile, None);
    office.must(&load, None);
    let (status, said) = office.compile(
        "monitor",
        "alice",
        "monitor.c",
        &["--credentials", "use.kn"],
    );
    assert_eq!(status, Some(0), "{said}");
    let record = office.must(&["inspect", "out.mx"], None);
    assert!(record.contains("of type oke-monitor"), "{record}");

    let packets = [
        packet(17, 0, 53),
        packet(17, 0x2000, 53),
        packet(17, 3, 9),
        packet(6, 0, 53),
        packet(17, 0, 54),
    ];
    fs::write(office.at("packets"), packets.concat()).expect("room");
    let words = ["run", "--as", "alice", "--credentials", "load.kn", "out.mx"];
    let output = office.run(&words, Some(&office.at("packets")));
    let said = String::from_utf8_lossy(&output.stdout);
    let expected = "3 packets seen, of which 2 were fragments; the last came from 0a000007; 3 locks given back\n";
    assert_eq!(
        said,
        expected,
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );

    // What alice may use she may not sign herself.
    let own = ["sign", "out.mx", "--type", "oke-monitor", "--key", "alice"];
    assert!(!office.run(&own, None).status.success());
}

#[test]
fn a_monitor_that_looks_is_refused_line_by_line() {
    let office = office();
    let (status, said) = office.compile("monitor", "root", "nosy.c", &[]);
    assert_eq!(status, Some(1), "{said}");
    for (line, rule) in [
        (6, "locked"),
        (9, "pointer-casts"),
        (10, "hidden-name"),
        (11, "inline-assembly"),
        (17, "locked"),
    ] {
        let found = said
            .split("error[")
            .any(|part| part.starts_with(rule) && part.contains(&format!("nosy.c:{line}:")));
        assert!(found, "{rule} at line {line}:\n{said}");
    }
    assert!(
        said.contains("the module type `oke-monitor` forbids it"),
        "{said}"
    );
    assert!(said.contains("help: use the pointer's own type"), "{said}");
    assert!(!office.at("out.mx").exists() && !office.at("out.mx.record").exists());
}

#[test]
fn three_roles_have_three_policies_of_processor_time() {
    let office = office();
    let (status, said) = office.compile("student", "root", "spin.c", &[]);
    assert_eq!(status, Some(1), "{said}");
    assert!(
        said.contains("error[loops]") && said.contains("spin.c:5:"),
        "{said}"
    );
    let (status, said) = office.compile("student", "root", "straight.c", &[]);
    assert_eq!(status, Some(0), "{said}");
    assert!(
        office
            .must(&["admit", "out.mx", "--as", "root"], None)
            .contains("time 10ms")
    );
    let (status, said) = office.compile("system-programmer", "root", "straight.c", &[]);
    assert_eq!(status, Some(0), "{said}");
    assert!(
        office
            .run(&["run", "--clock", "--as", "root", "out.mx"], None)
            .status
            .success()
    );
    let (status, said) = office.compile("staff", "root", "spin.c", &[]);
    assert_eq!(status, Some(0), "{said}");
    assert!(
        office
            .must(&["admit", "out.mx", "--as", "root"], None)
            .contains("time 30s")
    );
    let (status, said) = office.compile("system-programmer", "root", "spin.c", &[]);
    assert_eq!(status, Some(0), "{said}");
    assert!(
        !office
            .must(&["admit", "out.mx", "--as", "root"], None)
            .contains("time 30s")
    );
    assert!(
        office
            .run(&["run", "--clock", "--as", "root", "out.mx"], None)
            .status
            .success()
    );
}

#[test]
fn nothing_else_makes_an_image_of_a_type_with_a_language() {
    let office = office();
    let module_type = examples().join("types/staff.toml").display().to_string();
    fs::write(office.at("x.c"), "int main(void) { return 0; }").expect("room");
    let words = [
        "cc",
        "--type",
        &module_type,
        "--key",
        "root",
        "x.c",
        "-o",
        "x.mx",
    ];
    let output = office.run(&words, None);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("use mullion compile"));
}

#[test]
fn files_of_others_are_not_read_into_a_program() {
    let office = office();
    fs::create_dir(office.at("own")).expect("room");
    fs::write(office.at("secret.h"), "int secret = 4093082899;\n").expect("room");
    fs::write(
        office.at("own/x.c"),
        "#include \"../secret.h\"\nint main(void) { return secret; }\n",
    )
    .expect("room");
    let module_type = examples().join("types/staff.toml").display().to_string();
    let output = office.run(
        &["compile", "--check", "--type", &module_type, "own/x.c"],
        None,
    );
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("error[includes]") && !said.contains("4093082899"),
        "{said}"
    );
}

/// The step that reads a program opens no file of others. It says the same of a file that is there as of one that is not.
#[test]
fn a_file_of_others_is_as_one_that_is_not_there() {
    let office = office();
    fs::create_dir(office.at("own")).expect("room");
    fs::write(office.at("secret.h"), "int secret;\n").expect("room");
    let module_type = examples().join("types/staff.toml").display().to_string();
    let said = |text: String| {
        fs::write(office.at("own/x.c"), text).expect("room");
        let words = ["compile", "--check", "--type", &module_type, "own/x.c"];
        let output = office.run(&words, None);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), said)
    };
    let there = office.at("secret.h").display().to_string();
    let none = office.at("nothing.h").display().to_string();
    let include = |name: &str| {
        said(format!(
            "#include \"{name}\"\nint main(void) {{ return 0; }}\n"
        ))
    };
    let [there, none] = [&there, &none].map(|name| {
        let (code, said) = include(name);
        assert!(said.contains("error[includes]"), "{said}");
        (code, said.replace(name, "NAME"))
    });
    assert_eq!(there, none);
    // The compiler cannot open it.
    let (_, denied) = said(
        "#if __has_include(\"/etc/passwd\")\n#error it is there\n#endif\nint main(void) { return 0; }\n"
            .to_owned(),
    );
    assert!(
        denied.contains("has no Landlock") || !denied.contains("it is there"),
        "{denied}"
    );
    // Of its own it learns.
    let (code, said) = include("nothing.h");
    assert_eq!(code, Some(1));
    assert!(said.contains("nothing.h: No such file"), "{said}");
}

/// gcc quotes lines that it does not like, of any file.
#[test]
fn what_the_preprocessor_refuses_has_no_line_of_another_file() {
    let office = office();
    fs::create_dir(office.at("own")).expect("room");
    fs::write(
        office.at("compiler.key"),
        "mullion-key 1\nsecret: hunter2\n",
    )
    .expect("room");
    std::os::unix::fs::symlink(office.at("compiler.key"), office.at("own/x.h")).expect("room");
    let whole = office.at("compiler.key").display().to_string();
    let module_type = examples().join("types/staff.toml").display().to_string();
    for name in ["../compiler.key", "x.h", &whole] {
        for before in [
            "#pragma GCC poison secret\n",
            "#pragma GCC poison secret\n#error internal compiler error\n",
        ] {
            let text = format!("{before}#include \"{name}\"\nint main(void) {{ return 0; }}\n");
            fs::write(office.at("own/x.c"), &text).expect("room");
            let output = office.run(
                &["compile", "--check", "--type", &module_type, "own/x.c"],
                None,
            );
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{said}");
            assert!(
                !said.contains("hunter2") && !said.contains("poisoned"),
                "{text}: {said}"
            );
        }
    }
    // Of its own files an author is told.
    fs::write(office.at("own/y.h"), "int secret;\n").expect("room");
    fs::write(
        office.at("own/x.c"),
        "#pragma GCC poison secret\n#include \"y.h\"\nint main(void) { return 0; }\n",
    )
    .expect("room");
    let output = office.run(
        &["compile", "--check", "--type", &module_type, "own/x.c"],
        None,
    );
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("error[syntax]") && said.contains("poisoned"),
        "{said}"
    );
}

#[test]
fn stack_is_bounded_by_the_compilers_own_frames() {
    let office = office();
    let deep = "static int f(int n, int *up) { int a[400] = {n}; a[n & 1] += up[0]; return n == 0 ? a[0] : a[1] + f(n - 1, a); }\n\
         int main(void) { int a = 0; return f(public_seed(), &a) == -1; }\n";
    let environment =
        "int public_seed(void) { static volatile int seed = 100; return seed; }\nint main(void);\n";
    fs::write(office.at("environment.c"), environment).expect("room");
    let digest = mullion_digest(environment);
    let module_type = |stack: &str, more: &str| {
        format!(
            "version = 1\nid = \"bounded\"\nlanguage = \"c\"\nprotection = \"read-write-call\"\nmechanism = [\"window\"]\n\
             imports = [\"__mullion_system\"]\n[elastic]\nstack = \"{stack}\"\nentries = [\"main\"]\n{more}\n\
             [elastic.environment]\nfile = \"environment.c\"\nsha256 = \"{digest}\"\npublic = [\"public_seed\"]\n"
        )
    };
    let key = |name: &str| {
        fs::read_to_string(office.at(&format!("keys/{name}.pub")))
            .expect("a key")
            .trim()
            .to_owned()
    };
    let policy = format!(
        "version = 1\ntypes = [\"bounded.toml\"]\n[keys]\nroot = \"{}\"\n[allow]\nload = [\"root\"]\ncompile = [\"root\"]\n",
        key("root")
    );
    fs::write(office.at("policy.toml"), policy).expect("room");
    let words = [
        "compile",
        "--type",
        "bounded.toml",
        "--as",
        "root",
        "--key",
        "root",
        "-o",
        "x.mx",
        "x.c",
    ];
    let compile = |program: &str, stack: &str| {
        fs::write(office.at("bounded.toml"), module_type(stack, "")).expect("room");
        fs::write(office.at("x.c"), program).expect("room");
        let output = office.run(&words, None);
        (
            output.status.success(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let wide = "int main(void) { int a[1000] = {0}; a[public_seed() & 511] = 1; return a[public_seed() & 255]; }\n";
    let (good, said) = compile(wide, "2K");
    assert!(!good && said.contains("error[stack-bound]"), "{said}");
    let (good, said) = compile(wide, "8K");
    assert!(good, "{said}");
    // Recursion is checked when it runs: 100 frames of 1.6 KB do not fit in 16 KiB.
    let (good, said) = compile(deep, "16K");
    assert!(good, "{said}");
    let output = office.run(&["run", "--as", "root", "x.mx"], None);
    assert!(!output.status.success());
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("inlined into f_m"),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let (good, said) = compile(
        &deep.replace("f(public_seed(), ", "f(public_seed() / 50, "),
        "16K",
    );
    assert!(good, "{said}");
    let output = office.run(&["run", "--as", "root", "x.mx"], None);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn mullion_digest(text: &str) -> String {
    mullion_trust::Sha256Digest::of(text.as_bytes()).to_string()
}

/// Short text that becomes long in the preprocessor, until it meets a limit.
#[test]
#[ignore = "takes as long as the limits let it: cargo test -p mullion-cli --test compile -- --ignored"]
fn source_that_meets_the_limits_ends_in_a_refusal() {
    let office = office();
    let module_type = examples().join("types/staff.toml").display().to_string();
    let text = format!(
        "{}int x = A27;\nint main(void) {{ return 0; }}\n",
        doubled("#define A", "+")
    );
    fs::write(office.at("x.c"), text).expect("room");
    let output = office.run(&["compile", "--check", "--type", &module_type, "x.c"], None);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("error[compiler-bounds]"), "{said}");
}

/// Definitions of which each is twice as long as the one in front.
fn doubled(define: &str, between: &str) -> String {
    let lines = (1..28).map(|at| format!("{define}{at} A{0} {between} A{0}\n", at - 1));
    std::iter::once(format!("{define}0 1\n"))
        .chain(lines)
        .collect()
}

#[test]
fn hostile_source_ends_in_a_refusal() {
    let office = office();
    let module_type = examples().join("types/staff.toml").display().to_string();
    let end = "int main(void) { return 0; }\n";
    let programs = [
        ("syntax", format!("#include \"x.c\"\n{end}")),
        ("includes", format!("#include \"/etc/passwd\"\n{end}")),
        (
            "compiler-bounds",
            format!("int {}p; {end}", "*".repeat(3000)),
        ),
        ("compiler-bounds", format!("{end}{}", " ".repeat(1 << 20))),
        (
            "compiler-bounds",
            format!(
                "int f(int x) {{ {} return x; }} {end}",
                "if (x == 1) x = 2; else ".repeat(3000)
            ),
        ),
        ("syntax", format!("int x = {}; {end}", "\"".repeat(3001))),
        // Braces count as nesting, too.
        (
            "compiler-bounds",
            format!(
                "int x[1] = {}1{}; {end}",
                "{".repeat(3000),
                "}".repeat(3000)
            ),
        ),
    ];
    for (rule, text) in programs {
        fs::write(office.at("x.c"), &text).expect("room");
        let output = office.run(&["compile", "--check", "--type", &module_type, "x.c"], None);
        let said = String::from_utf8_lossy(&output.stderr);
        let shown: String = text.chars().take(60).collect();
        assert_eq!(output.status.code(), Some(1), "{shown}: {said}");
        assert!(said.contains(&format!("error[{rule}]")), "{shown}: {said}");
    }
}
