//! What `word-host` answers when there is nothing that it could call: scripts tell these ends from those of `main`.

use std::path::Path;
use std::process::{Command, Output};

fn word_host(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_word-host"));
    command.args(arguments).output().expect("it starts")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn bad_usage_is_127_and_says_what_is_expected() {
    for arguments in [&[][..], &["--seconds", "soon", "module.so"]] {
        let output = word_host(arguments);
        assert_eq!(output.status.code(), Some(127), "{arguments:?}");
        assert!(said(&output).contains("usage: word-host [--seconds N] MODULE.so"));
    }
}

#[test]
fn a_file_that_is_not_there_is_126_and_named() {
    let output = word_host(&["/nowhere/module.so"]);
    assert_eq!(output.status.code(), Some(126));
    assert!(said(&output).contains("/nowhere/module.so"));
}

/// The compiler alone made it, so nothing in it is checked. Its constructor would say so if it ran.
#[test]
fn an_ordinary_shared_object_is_126_and_never_runs() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let place = |name: &str| directory.path().join(name);
    let text = r#"
        #include <stdio.h>
        __attribute__((constructor)) static void begin(void) { fputs("it ran", stderr); }
        int main(void) { fputs("it ran", stderr); return 0; }
    "#;
    std::fs::write(place("module.c"), text).expect("it is written");
    let compile = |source: &Path, object: &Path| {
        let mut gcc = Command::new("gcc");
        gcc.args(["-shared", "-fPIC", "-o"]).arg(object).arg(source);
        gcc.status().expect("a compiler")
    };
    assert!(compile(&place("module.c"), &place("module.so")).success());
    let output = word_host(&[place("module.so").to_str().expect("text")]);
    assert_eq!(output.status.code(), Some(126), "{}", said(&output));
    assert!(!said(&output).contains("it ran"), "{}", said(&output));
    assert!(said(&output).starts_with("word-host: "));
}
