//! `mullion word` and `mullion bind --wall=word`.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn mullion(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mullion"));
    command.current_dir(folder).args(arguments);
    command.output().expect("it starts")
}

fn said(output: &Output) -> (String, String, Option<i32>) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        text(&output.stdout),
        text(&output.stderr),
        output.status.code(),
    )
}

#[test]
fn a_policy_is_held_against_an_interface() {
    let scratch = tempfile::tempdir().expect("a temporary directory");
    let at = |name: &str, text: &str| fs::write(scratch.path().join(name), text).expect("written");
    at(
        "host.toml",
        "[call.fill]\nparameters = [\"to\", \"n\"]\neffects = [\"out(to, n)\"]\n",
    );
    at("good.toml", "allow = [\"fill\", \"free\"]\n");
    let check = |policy: &str| {
        mullion(
            scratch.path(),
            &["word", "check", policy, "--interface", "host.toml"],
        )
    };
    let (out, _, code) = said(&check("good.toml"));
    assert_eq!(out, "allows fill: out(to, n)\nallows free: frees(block)\n");
    assert_eq!(code, Some(0));

    at("bad.toml", "allow = [\"fill\",\n  \"f-ill\"]\n");
    let (_, error, code) = said(&check("bad.toml"));
    assert!(error.contains("bad.toml: line 2, column 3: "), "{error}");
    assert_eq!(code, Some(1));

    at("unknown.toml", "allow = [\"host_fill\"]\n");
    let (_, error, code) = said(&check("unknown.toml"));
    assert!(
        error.contains("`host_fill` is no function") && error.contains("`fill` is"),
        "{error}"
    );
    assert_eq!(code, Some(1));
}

#[test]
fn hosts_learn_and_enforce_by_a_folder() {
    let scratch = tempfile::tempdir().expect("a temporary directory");
    let folder = scratch
        .path()
        .canonicalize()
        .expect("a path")
        .join("learnt");
    let script = "echo \"$MULLION_WORD_LEARN,$MULLION_WORD_POLICIES\"; exit 7";
    let run = |arguments: &[&str]| {
        let command = [&["word"], arguments, &["--", "sh", "-c", script]].concat();
        said(&mullion(scratch.path(), &command))
    };
    let (_, error, code) = run(&["enforce", "--policies", "learnt"]);
    assert!(error.contains("learnt is no folder"), "{error}");
    assert_eq!(code, Some(1));
    let (out, _, code) = run(&["learn", "--to", "learnt"]);
    assert_eq!((out, code), (format!("{},\n", folder.display()), Some(7)));
    let (out, _, code) = run(&["enforce", "--policies", "learnt"]);
    assert_eq!((out, code), (format!(",{}\n", folder.display()), Some(7)));
    let absent = ["word", "learn", "--to", "learnt", "--", "./absent"];
    assert_eq!(said(&mullion(scratch.path(), &absent)).2, Some(126));
}

#[test]
fn an_interface_comes_from_a_header_without_marks() {
    let scratch = tempfile::tempdir().expect("a temporary directory");
    let at = |name: &str, text: &str| fs::write(scratch.path().join(name), text).expect("written");
    at(
        "host.h",
        "int say(const char *text);\nint load(void *to, unsigned long bytes);\nint peek(void *at);\n",
    );
    at(
        "notes.toml",
        "[call.load]\neffects = [\"out(to, bytes)\"]\n",
    );
    let arguments = [
        "bind",
        "--wall=word",
        "host.h",
        "--annotations",
        "notes.toml",
        "-o",
        "host.toml",
    ];
    let (_, error, code) = said(&mullion(scratch.path(), &arguments));
    assert_eq!(code, Some(0), "{error}");
    assert!(error.contains("peek is left out"), "{error}");
    at("policy.toml", "allow = [\"say\", \"load\"]\n");
    let check = ["word", "check", "policy.toml", "--interface", "host.toml"];
    let (out, _, _) = said(&mullion(scratch.path(), &check));
    assert_eq!(
        out,
        "allows load: out(to, bytes)\nallows say: string(text)\n"
    );
}
