//! `mullion compile` for elastic Rust: what is refused, and what runs in a domain. Needs rustc 1.99.1 with rustc-dev;
//! where it is not there, the tests say so (`MULLION_REQUIRE_RUSTC_DEV=1` makes that a failure).

#[allow(dead_code, reason = "others use more of it")]
mod office;

use std::fs;
use std::process::{Command, Output};

use office::{Office, examples};

/// A place; `None`: the compiler's libraries are not there.
fn office() -> Option<Office> {
    let office = Office::empty();
    let output = office.compile(&[
        "--check",
        "--type",
        &office.own_type(""),
        &office.file("a.rs", ""),
    ]);
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("rustup") {
        assert!(
            std::env::var_os("MULLION_REQUIRE_RUSTC_DEV").is_none(),
            "{said}"
        );
        eprintln!("not tested: elastic Rust: {said}");
        return None;
    }
    assert!(output.status.success(), "{said}");
    Some(office)
}

impl Office {
    /// A type with these lines in its table.
    fn own_type(&self, table: &str) -> String {
        let head = "version = 1\nid = \"own\"\nlanguage = \"rust\"\nprotection = \"read-write-call\"\n\
                    mechanism = [\"window\"]\n[elastic]\n";
        self.file("own.toml", &format!("{head}{table}\n"))
    }

    fn compile(&self, words: &[&str]) -> Output {
        let mut all = vec!["compile"];
        all.extend(words);
        self.run(&all, None)
    }

    /// The messages for a program that is refused.
    fn refused(&self, table: &str, text: &str) -> String {
        let output = self.compile(&[
            "--check",
            "--type",
            &self.own_type(table),
            &self.file("a.rs", text),
        ]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        said
    }
}

fn packet(protocol: u8, fragment: u16, port: u16) -> Vec<u8> {
    let mut bytes = vec![0, 40, 0x45, 0, 0, 40, 0, 1];
    bytes.extend(fragment.to_be_bytes());
    bytes.extend([64, protocol, 0, 0, 10, 0, 0, 7, 10, 0, 0, 9]);
    bytes.extend(4000u16.to_be_bytes());
    bytes.extend(port.to_be_bytes());
    bytes.extend([0; 16]);
    bytes
}

#[test]
fn a_monitor_in_rust_counts_fragments_behind_a_window() {
    let Some(office) = office() else { return };
    for name in ["root", "compiler"] {
        office.must(&["key", "new", name], None);
    }
    let key =
        |name: &str| fs::read_to_string(office.at(&format!("keys/{name}.pub"))).expect("a key");
    let module_type = examples()
        .join("types/monitor-rust.toml")
        .display()
        .to_string();
    let policy = format!(
        "version = 1\ntypes = [{module_type:?}]\n[keys]\nroot = {:?}\ncompiler = {:?}\n[allow]\nload = [\"root\"]\n\
         compile = [\"root\", \"compiler\"]\n",
        key("root").trim(),
        key("compiler").trim()
    );
    office.file("policy.toml", &policy);
    let source = examples().join("monitor.rs").display().to_string();
    let words = [
        "compile",
        "--type",
        &module_type,
        "--as",
        "root",
        "--key",
        "compiler",
        "-o",
        "out.mx",
        &source,
    ];
    office.must(&words, None);
    let record = office.must(&["inspect", "out.mx"], None);
    assert!(record.contains("of type oke-monitor-rust"), "{record}");
    let record = fs::read_to_string(office.at("out.mx.record")).expect("a record");
    assert!(!record.is_empty());

    let packets = [
        packet(17, 0, 53),
        packet(17, 0x2000, 53),
        packet(17, 3, 9),
        packet(6, 0, 53),
        packet(17, 0, 54),
    ];
    fs::write(office.at("packets"), packets.concat()).expect("room");
    let said = office.must(
        &["run", "--as", "root", "out.mx"],
        Some(&office.at("packets")),
    );
    assert_eq!(
        said,
        "3 packets seen, of which 2 were fragments; the last came from 0a000007; 3 locks given back\n"
    );
}

/// The paper's students, staff and system programmers: compile.rs has them in C.
#[test]
fn three_roles_have_three_policies_of_processor_time() {
    let Some(office) = office() else { return };
    office.must(&["key", "new", "root"], None);
    let key = fs::read_to_string(office.at("keys/root.pub")).expect("a key");
    let named = |role: &str| {
        let path = examples().join(format!("types/{role}-rust.toml"));
        path.display().to_string()
    };
    let roles = ["student", "staff", "system-programmer"].map(named);
    let policy = format!(
        "version = 1\ntypes = {roles:?}\n[keys]\nroot = {:?}\n[allow]\nload = [\"root\"]\ncompile = [\"root\"]\n",
        key.trim()
    );
    office.file("policy.toml", &policy);
    let [student, staff, system] = &roles;
    let compile = |role: &str, file: &str| {
        let source = examples().join(file).display().to_string();
        let words = [
            "--type", role, "--as", "root", "--key", "root", "-o", "out.mx", &source,
        ];
        office.compile(&words)
    };
    let output = compile(student, "spin.rs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("error[loops]") && said.contains("spin.rs:6:"),
        "{said}"
    );
    for (role, file, time) in [
        (student, "straight.rs", Some("time 10ms")),
        (staff, "spin.rs", Some("time 30s")),
        (system, "spin.rs", None),
    ] {
        let output = compile(role, file);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{role}: {said}");
        let admitted = office.must(&["admit", "out.mx", "--as", "root"], None);
        match time {
            Some(time) => assert!(admitted.contains(time), "{admitted}"),
            None => assert!(
                !admitted.contains("time 10ms") && !admitted.contains("time 30s"),
                "{admitted}"
            ),
        }
        // A loaded machine may take longer than the student's 10 ms.
        if role != student {
            office.must(&["run", "--clock", "--as", "root", "out.mx"], None);
        }
    }
}

#[test]
fn refusals_have_the_form_of_rustcs_own() {
    let Some(office) = office() else { return };
    let module_type = examples()
        .join("types/monitor-rust.toml")
        .display()
        .to_string();
    let source = examples().join("nosy.rs").display().to_string();
    let output = office.compile(&["--check", "--type", &module_type, &source]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    for (line, rule) in [
        (2, "hidden-name"),
        (5, "loops"),
        (8, "unsafe"),
        (9, "hidden-name"),
        (12, "attributes"),
        (14, "panics"),
    ] {
        let place = format!("nosy.rs:{line}:");
        let told = said
            .split("error[")
            .find(|part| part.contains(&place) && part.starts_with(rule));
        assert!(told.is_some(), "{rule} at line {line}: {said}");
    }
    assert!(
        said.contains("= note: the module type `oke-monitor-rust` forbids it"),
        "{said}"
    );
    assert!(
        said.contains("= help: call a safe function of the environment"),
        "{said}"
    );
}

#[test]
fn lines_of_other_files_are_not_shown() {
    let Some(office) = office() else { return };
    let secret = office.at("secret");
    fs::create_dir(&secret).expect("room");
    fs::write(secret.join("key"), "hunter2 is the key\n").expect("room");
    let place = office.at("own");
    fs::create_dir(&place).expect("room");
    for text in [
        "include!(\"../secret/key\");",
        "#[path = \"../secret/key\"]\nmod key;",
        "pub const K: u32 = include!(\"../secret/key\");",
        "const S: &str = include_str!(\"../secret/key\");\nconst _: () = panic!(\"{}\", S);",
        "const S: &str = include_str!(\"../secret/key\");\nconst _: () = panic!(\"internal compiler error {}\", S);",
        "compile_error!(include_str!(\"../secret/key\"));",
        "compile_error!(include_str!(\"../secret/key\"));\nmacro_rules! m { () => { m!(); } }\nm!();",
        "#!/*\nuse core::include_str as concat;\nconst _: () = panic!(\"{}\", concat!(\"../secret/key\"));",
    ] {
        fs::write(place.join("a.rs"), text).expect("room");
        let source = place.join("a.rs").display().to_string();
        let output = office.compile(&["--check", "--type", &office.own_type(""), &source]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(!said.contains("hunter2"), "{said}");
    }
}

/// A program that is only judged has no code, and the judge looks for all that would run.
#[test]
fn a_program_that_may_call_by_pointers_is_judged_without_code() {
    let Some(office) = office() else { return };
    let module_type = examples().join("types/system-programmer-rust.toml");
    let module_type = module_type.display().to_string();
    let text = "use environment::jiffies;\npub fn module() -> i32 { jiffies(); 1 }\n";
    let output = office.compile(&[
        "--check",
        "--type",
        &module_type,
        &office.file("a.rs", text),
    ]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

/// Types of which each is twice as large as the one in front.
fn doubled_types() -> String {
    let lines = (1..70).map(|at| format!("type A{at} = (A{0}, A{0});\n", at - 1));
    let types: String = std::iter::once("type A0 = u64;\n".to_owned())
        .chain(lines)
        .collect();
    format!("{types}pub fn f(a: &A69) -> usize {{ core::mem::size_of_val(a) }}\n")
}

#[test]
fn hostile_source_ends_in_a_refusal() {
    let Some(office) = office() else { return };
    let deep = |open: &str, inner: &str, close: &str, count: usize| {
        format!("{}{inner}{}", open.repeat(count), close.repeat(count))
    };
    let cases = [
        // More memory or time than there is, at compile time.
        "pub const C: [u8; 1 << 40] = [0; 1 << 40];\npub fn f() -> u8 { C[3] }".to_owned(),
        "macro_rules! m { () => { m!() } }\npub fn f() { m!() }".to_owned(),
        format!("pub fn f() -> u32 {{ {} }}", deep("(", "1", ")", 100_000)),
        format!("pub fn f() {{ {} }}", deep("{", "", "}", 100_000)),
        format!("pub type T = {};", deep("&", "u8", "", 100_000)),
        format!("pub fn f() -> u32 {{ 0{} }}", "+1".repeat(200_000)),
        "pub struct S(S);".to_owned(),
        // Types and functions without an end, or with one that is far away.
        "pub fn f<T>(n: u32, t: T) { if n > 0 { f(n - 1, (t, 1)) } }\npub fn g() { f(9, 1) }"
            .to_owned(),
        doubled_types(),
        "pub const fn f(n: u64) -> u64 { f(n + 1) + 1 }\npub const C: u64 = f(0);".to_owned(),
        "pub const C: usize = [0u8; C].len();".to_owned(),
        format!(
            "pub fn f(n: u32) -> u32 {{ {}1{} }}",
            "if n == 1 { 2 } else { ".repeat(5000),
            " }".repeat(5000)
        ),
        "//".to_owned() + &"x".repeat(2 << 20),
        "pub fn f(".to_owned(),
        "\u{0}\u{1}\u{feff}".to_owned(),
    ];
    for text in cases {
        let said = office.refused("", &text);
        let start: String = text.chars().take(60).collect();
        assert!(said.contains("mullion: refused:"), "{start}: {said}");
    }
}

/// Half a minute of processor time, and 4 GiB of address space.
#[test]
#[ignore = "takes as long as the limits let it: cargo test -p mullion-cli --test compile_rust -- --ignored"]
fn source_that_meets_the_limits_ends_in_a_refusal() {
    let Some(office) = office() else { return };
    for text in [
        "#![allow(long_running_const_eval)]\npub const C: u32 = { let mut n = 0u64; loop { n += 1; if n == 1 << 60 { break 3; } } };",
        "macro_rules! m { ($($t:tt)*) => { m!($($t)* $($t)*); } }\nm!(a);",
    ] {
        let said = office.refused("", text);
        assert!(said.contains("error[compiler-bounds]"), "{said}");
    }
}

#[test]
fn a_type_of_rust_says_what_it_can() {
    let Some(office) = office() else { return };
    for (table, expected) in [
        (
            "wall = \"language\"",
            "the table [elastic] wants the mechanism `language` and no other",
        ),
        (
            "memory = \"checked\"",
            "the memory of Rust is checked by its own rules",
        ),
        ("forbid = [\"goto\"]", "`goto` is no rule of elastic rust"),
    ] {
        let output = office.compile(&[
            "--check",
            "--type",
            &office.own_type(table),
            &office.file("a.rs", ""),
        ]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && said.contains(expected),
            "{said}"
        );
    }
}

#[test]
fn what_is_missing_is_said_with_how_to_get_it() {
    let place = tempfile::tempdir().expect("a directory");
    let text = "version = 1\nid = \"own\"\nlanguage = \"rust\"\nprotection = \"read-write-call\"\nmechanism = [\"window\"]\n[elastic]\n";
    fs::write(place.path().join("own.toml"), text).expect("room");
    fs::write(place.path().join("a.rs"), "").expect("room");
    let mut command = Command::new(env!("CARGO_BIN_EXE_mullion"));
    command.args(["compile", "--check", "--type", "own.toml", "a.rs"]);
    command
        .current_dir(place.path())
        .env("MULLION_RUST", place.path().join("none"));
    let output = command.output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("rustup toolchain install 1.99.1"), "{said}");
}
