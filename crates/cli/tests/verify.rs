//! `mullion verify` and `mullion inspect`, as their users see them.

#[allow(dead_code, reason = "made for the verifier's tests")]
#[path = "../../window/verifier/tests/support/build.rs"]
mod build;

use mullion_abi::Protection;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const GOOD: &[u8] = &[0xe8, 0xf4, 0x01, 0xff, 0xff, 0xc3]; // call import; ret
const BAD: &[u8] = &[0xc7, 0x07, 1, 0, 0, 0, 0x0f, 0x05, 0xc3]; // movl $1, (%rdi); syscall; ret

fn image(directory: &Path, name: &str, code: &[u8]) -> PathBuf {
    let path = directory.join(name);
    std::fs::write(&path, build::build(code, Protection::ReadWriteCall).bytes).expect("an image");
    path
}

fn mullion(arguments: &[&str], files: &[&Path]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mullion"));
    command
        .args(arguments)
        .args(files)
        .output()
        .expect("the command")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_good_image_verifies() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let good = image(directory.path(), "good.mx", GOOD);
    let output = mullion(&["verify"], &[&good]);
    assert_eq!(output.status.code(), Some(0));
    assert!(
        text(&output.stdout)
            .ends_with("good.mx: verified: extension, read-write-call, 3 instructions\n")
    );
    assert!(mullion(&["verify", "--quiet"], &[&good]).stdout.is_empty());
}

#[test]
fn a_bad_image_is_reported_with_rule_place_and_disassembly() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let bad = image(directory.path(), "bad.mx", BAD);
    let good = image(directory.path(), "good.mx", GOOD);
    let output = mullion(&["verify"], &[&good, &bad]);
    assert_eq!(output.status.code(), Some(1));
    let text = text(&output.stdout);
    for part in [
        "good.mx: verified",
        "bad.mx: rejected: 2 violations",
        "0x20007: write-unconfined",
        "movl $1,(%rdi)",
        "0x2000d: instruction",
        "syscall",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn json_lists_every_file() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let bad = image(directory.path(), "bad.mx", BAD);
    let missing = directory.path().join("missing.mx");
    let output = mullion(&["verify", "--json"], &[&bad, &missing]);
    assert_eq!(output.status.code(), Some(1));
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(value[0]["violations"][0]["rule"], "write-unconfined");
    assert_eq!(value[0]["violations"][0]["address"], 0x20007);
    assert_eq!(value[1]["verified"], false);
    assert!(
        text(&output.stderr).starts_with("mullion: "),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn rules_are_explained_and_unknown_ones_are_misuse() {
    let output = mullion(&["verify", "--explain", "stack-probe"], &[]);
    assert!(text(&output.stdout).contains("%r15") && output.status.success());
    assert_eq!(
        mullion(&["verify", "--explain", "no-such-rule"], &[])
            .status
            .code(),
        Some(2)
    );
    assert_eq!(mullion(&["verify"], &[]).status.code(), Some(2));
    assert!(
        text(&mullion(&["verify", "--rules"], &[]).stdout)
            .lines()
            .count()
            > 40
    );
}

#[test]
fn inspect_describes_what_verifies_and_says_when_it_does_not() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let good = image(directory.path(), "good.mx", GOOD);
    let output = mullion(&["inspect", "--json"], &[&good]);
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(value["verified"], true);
    assert_eq!(value["imports"][0]["name"], "import");
    assert_eq!(value["imports"][0]["direct_branches"], 1);
    assert_eq!(value["exports"][0]["name"], "export");
    assert_eq!(value["segments"].as_array().map(Vec::len), Some(3));
    let bad = image(directory.path(), "bad.mx", BAD);
    let output = mullion(&["inspect"], &[&bad]);
    assert!(output.status.success() && text(&output.stdout).contains("NOT verified"));
    let output = mullion(&["inspect"], &[Path::new("/dev/null")]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr).contains("not an image"),
        "{}",
        text(&output.stderr)
    );
}
