//! The code in the guides is compiled, each piece as a file of its own. (That of
//! docs/host-rust.md is a doctest of `crates/host/mullion`.)

#[path = "../../crates/host/mullion/tests/support/mod.rs"]
mod support;

use std::path::Path;
use std::process::Command;

/// The pieces of a page in one language.
fn pieces(page: &str, language: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../docs")
        .join(page);
    let text = std::fs::read_to_string(path).expect("a page");
    let fence = format!("```{language}\n");
    let parts = text.split(&fence).skip(1);
    parts
        .map(|part| part.split("```").next().unwrap_or_default().to_owned())
        .collect()
}

fn compile_for_the_host(kind: &str, compiler: &str, standard: &str, pieces: &[String]) {
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../include");
    for (number, piece) in pieces.iter().enumerate() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let source = directory.path().join(format!("piece.{kind}"));
        std::fs::write(&source, piece).expect("written");
        let output = Command::new(compiler)
            .args([
                standard,
                "-Wall",
                "-Wextra",
                "-pedantic",
                "-Werror",
                "-c",
                "-o",
                "/dev/null",
                "-I",
            ])
            .arg(&include)
            .arg(&source)
            .output()
            .expect("a compiler");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "piece {number}: {said}");
    }
}

#[test]
fn the_guide_for_hosts_in_c_and_cxx() {
    let c = pieces("host-c.md", "c");
    assert_eq!(c.len(), 6);
    compile_for_the_host("c", "gcc", "-std=c99", &c);
    let cxx = pieces("host-c.md", "cpp");
    assert_eq!(cxx.len(), 3);
    compile_for_the_host("cc", "g++", "-std=c++17", &cxx);
}

#[test]
fn the_hosts_of_the_first_steps() {
    let c = pieces("first-steps.md", "c");
    assert_eq!(c.len(), 3, "a program, a library, a host");
    compile_for_the_host("c", "gcc", "-std=c99", &c[2..]);
    let cxx = pieces("first-steps.md", "cpp");
    assert_eq!(cxx.len(), 1);
    compile_for_the_host("cc", "g++", "-std=c++17", &cxx);
}

#[test]
fn the_guide_for_extensions() {
    for (language, kind) in [("c", "c"), ("cpp", "cc")] {
        let pieces = pieces("extension.md", language);
        assert_eq!(pieces.len(), if kind == "c" { 2 } else { 1 });
        for piece in &pieces {
            let directory = tempfile::tempdir().expect("a temporary directory");
            let source = directory.path().join(format!("piece.{kind}"));
            std::fs::write(&source, piece).expect("written");
            let image = directory.path().join("piece.mx");
            support::build(&source, &image, &["-Wall", "-Wextra", "-Werror"]);
        }
    }
}
