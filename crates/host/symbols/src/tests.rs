//! Names and lines of honest programs.

use super::*;

#[test]
fn what_is_no_image_has_no_names() {
    for bytes in [&b""[..], b"\x7fELF", &[0xff; 4096]] {
        let mut symbols = Symbols::new(bytes);
        assert_eq!(symbols.functions().count(), 0);
        assert!(symbols.find(0x20000).is_empty());
    }
}

/// Whatever this tree's own tests are built with.
#[test]
fn a_program_in_rust_has_names_and_lines() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (text, program) = (directory.path().join("a.rs"), directory.path().join("a"));
    let code = "#[inline(never)]\nfn weigh(x: usize) -> usize {\n    x * 3\n}\nfn main() {\n    println!(\"{}\", weigh(std::env::args().count()));\n}\n";
    std::fs::write(&text, code).expect("a file");
    let mut rustc = std::process::Command::new("rustc");
    rustc.args(["-Cdebuginfo=line-tables-only", "-Copt-level=1"]);
    let status = rustc.arg(&text).arg("-o").arg(&program).status();
    assert!(status.expect("rustc starts").success());
    let mut symbols = Symbols::new(std::fs::read(program).expect("a program"));
    let known = symbols
        .functions()
        .find(|function| function.name.contains("weigh"))
        .expect("it is a function");
    let found = symbols.find(known.offset);
    let last = found.last().expect("a place");
    assert!(last.file.as_ref().expect("a file").ends_with("a.rs"));
    assert!(matches!(last.line, Some(2 | 3)), "{last:?}");
    assert_eq!(symbols.function_at(known.offset), Some(known.name));
}

#[test]
fn only_mangled_names_are_demangled() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (text, program) = (directory.path().join("a.cc"), directory.path().join("a"));
    let code = "extern \"C\" int f(int x) { return x + 1; }\nnamespace n { int g(int x) { return x * 3; } }\n";
    std::fs::write(&text, code).expect("a file");
    let mut gcc = std::process::Command::new("g++");
    gcc.args(["-g", "-O2", "-nostdlib", "-static", "-Wl,-e,f"]);
    let status = gcc.arg(&text).arg("-o").arg(&program).status();
    assert!(status.expect("g++ starts").success());
    let mut symbols = Symbols::new(std::fs::read(program).expect("a program"));
    let functions: Vec<_> = symbols.functions().collect();
    let found = functions.iter();
    let found = found.map(|function| symbols.find(function.offset)[0].function.clone());
    let found: Vec<_> = found.flatten().collect();
    assert_eq!(found, ["f", "n::g(int)"]);
}

#[test]
fn control_characters_are_escaped() {
    let location = Location {
        function: Some("f\n".into()),
        file: Some("a\x1b.c".into()),
        line: Some(3),
    };
    assert_eq!(location.to_string(), "f\\n (a\\u{1b}.c:3)");
}
