//! Extensions in Rust: compiled by `mullion rustc` and `mullion cargo`, called by a host.
//!
//! They need rustc 1.99.1 with its sources. Where that is absent it is said;
//! `MULLION_REQUIRE_RUST=1` makes it a failure.

mod support;

use mullion::{Caller, Cause, Error, Host, Imports, Location, Ptr};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};

/// Whether there is a Rust that compiles for domains; if not, says so.
fn there_is_rust() -> bool {
    let output = mullion(&["rustc", "-vV"], Path::new("."));
    if output.status.success() {
        return true;
    }
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("rustup toolchain install"), "{said}");
    assert!(
        std::env::var_os("MULLION_REQUIRE_RUST").is_none(),
        "Rust for domains is required: {said}"
    );
    println!("not tested: {said}");
    false
}

fn mullion(arguments: &[&str], directory: &Path) -> Output {
    let mut command = Command::new(&*support::MULLION);
    command.args(arguments).current_dir(directory);
    // What Cargo tells the tests of this tree is nothing for another build.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO") || text.starts_with("RUST") {
            command.env_remove(&name);
        }
    }
    for name in ["CARGO_HOME", "RUSTUP_HOME"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command.output().expect("the command starts")
}

fn done(output: &Output) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

#[test]
fn an_extension_in_rust_calls_its_host_and_panics_as_a_fault() {
    if !there_is_rust() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/extensions/rust.rs");
    let line = [
        "rustc",
        "--edition=2024",
        "-O",
        "-g",
        source.to_str().unwrap(),
        "-o",
        "rust.mx",
    ];
    let output = mullion(&line, directory.path());
    done(&output);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("reserve-r11"), "{said}");

    let host = Host::new();
    let image = host.open(directory.path().join("rust.mx")).unwrap();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let ears = Arc::clone(&heard);
    let imports = Imports::new().function("host_log", move |caller: &Caller<'_>, text: Ptr<i8>| {
        let text = text.string(caller, 64)?;
        ears.lock().unwrap().push(text);
        Ok::<(), Error>(())
    });
    let domain = image.domain().imports(imports).load().unwrap();
    let squares = domain.function::<fn(u64) -> u64>("squares").unwrap();
    assert_eq!(squares.call(10).unwrap(), 285);
    assert_eq!(squares.call(1000).unwrap(), 332_833_500);
    assert_eq!(*heard.lock().unwrap(), ["10 squares", "1000 squares"]);
    // A static is no function, so no export.
    assert!(domain.function::<fn() -> u64>("TABLE").is_err());
    let entry = domain.function::<fn(u64) -> u64>("entry").unwrap();
    assert_eq!(entry.call(2).unwrap(), 5);
    let Err(Error::Fault(fault)) = entry.call(3) else {
        panic!("the end of the table was passed");
    };
    assert!(matches!(fault.cause(), Cause::Raised { .. }), "{fault}");
    assert!(fault.to_string().contains("aborted"), "{fault}");
    let frames = fault.backtrace();
    let place = |location: &Location| {
        let file = location.file.as_deref().unwrap_or_default();
        file.ends_with("rust.rs") && location.function.as_deref() == Some("entry")
    };
    assert!(
        frames.iter().any(|frame| frame.locations.iter().any(place)),
        "{fault}"
    );
}

const PROGRAM: &str = r#"
use std::cell::Cell;
use std::collections::HashMap;
use std::io::Read;

thread_local! { static SEEN: Cell<u32> = const { Cell::new(0) } }

fn main() {
    let mut words: HashMap<String, u32> = HashMap::new();
    for word in std::env::args().skip(1) {
        SEEN.with(|seen| seen.set(seen.get() + 1));
        *words.entry(word).or_default() += 1;
    }
    let mut list: Vec<_> = words.into_iter().collect();
    list.sort();
    println!("{list:?} {}", SEEN.with(Cell::get));
    let text = std::fs::read_to_string("/etc/passwd").map(|text| text.len());
    println!("{}", text.is_err());
    let mut input = String::new();
    std::io::stdin().read_to_string(&mut input).unwrap();
    assert!(list.len() < 3, "too many words");
}

#[test]
fn adds() {
    assert_eq!(2 + 2, 4);
}

#[test]
#[should_panic]
fn panics() {
    panic!();
}
"#;

/// A package with a build script, which runs on the host, and a program that uses `std`.
fn package() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("words");
    fs::create_dir_all(root.join("src")).unwrap();
    let manifest =
        "[package]\nname = \"words\"\nversion = \"0.0.0\"\nedition = \"2024\"\n[workspace]\n";
    fs::write(root.join("Cargo.toml"), manifest).unwrap();
    fs::write(
        root.join("build.rs"),
        "fn main() { std::process::Command::new(\"true\").status().unwrap(); }\n",
    )
    .unwrap();
    fs::write(root.join("src/main.rs"), PROGRAM).unwrap();
    (directory, root)
}

#[test]
fn a_package_with_std_is_built_run_and_tested_by_cargo() {
    if !there_is_rust() {
        return;
    }
    let (_directory, root) = package();
    let output = mullion(
        &["cargo", "run", "--quiet", "--offline", "--", "a", "b", "a"],
        &root,
    );
    done(&output);
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said, "[(\"a\", 2), (\"b\", 1)] 3\ntrue\n");
    let output = mullion(
        &["cargo", "run", "--quiet", "--offline", "--", "a", "b", "c"],
        &root,
    );
    assert_eq!(output.status.code(), Some(125), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("too many words") && said.contains("aborted"),
        "{said}"
    );
    assert!(
        root.join("target/mullion/x86_64-unknown-linux-musl/debug/words")
            .is_file()
    );
    let line = ["cargo", "test", "--quiet", "--offline"];
    let output = mullion(&line, &root);
    done(&output);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("1 passed"), "{said}");
}

#[test]
fn what_a_domain_cannot_have_is_refused_with_its_line() {
    if !there_is_rust() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let source =
        "#![crate_type = \"lib\"]\npub fn f() {\n    unsafe { core::arch::asm!(\"syscall\") }\n}\n";
    fs::write(directory.path().join("a.rs"), source).unwrap();
    let output = mullion(&["rustc", "-g", "a.rs"], directory.path());
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("not an instruction that an extension may use") && said.contains("syscall"),
        "{said}"
    );
    let output = mullion(
        &["rustc", "--target", "wasm32-unknown-unknown", "a.rs"],
        directory.path(),
    );
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("leave --target out"), "{said}");
}

#[test]
fn what_is_missing_is_said_with_how_to_get_it() {
    let mut command = Command::new(&*support::MULLION);
    let output = command
        .args(["rustc", "a.rs"])
        .env("MULLION_RUST", "/nonexistent")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("rustup toolchain install 1.99.1 --profile minimal -c rust-src"),
        "{said}"
    );
}
