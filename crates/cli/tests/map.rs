//! `mullion map`: what it writes, what it refuses, and how it ends.

use std::path::Path;
use std::process::{Command, Output};

fn map(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mullion"));
    command
        .arg("map")
        .args(arguments)
        .output()
        .expect("the command runs")
}

fn pictures() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/pictures");
    root.to_str().expect("a path of text").to_owned()
}

fn failure(output: &Output) -> String {
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr.clone()).expect("text")
}

#[test]
fn the_picture_of_a_committed_state_is_the_committed_picture() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("map.svg");
    let state = format!("{}/figure-5-after.json", pictures());
    let output = map(&[&state, "-o", file.to_str().expect("text")]);
    assert!(output.status.success(), "{output:?}");
    let expected = std::fs::read(format!("{}/figure-5-after.svg", pictures())).expect("committed");
    assert_eq!(std::fs::read(file).expect("written"), expected);
}

#[test]
fn a_title_and_a_theme_can_be_chosen() {
    let state = format!("{}/figure-4.json", pictures());
    let output = map(&[&state, "--title", "R&D <1>", "--theme", "dark"]);
    let picture = String::from_utf8(output.stdout).expect("text");
    assert!(picture.contains("R&amp;D &lt;1&gt;") && !picture.contains("@media"));
}

#[test]
fn a_state_that_does_not_hold_together_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("state.json");
    let path = file.to_str().expect("text");
    let whole =
        std::fs::read_to_string(format!("{}/figure-4.json", pictures())).expect("committed");
    let cases = [
        (whole[..whole.len() / 2].to_owned(), "EOF while parsing"),
        (
            whole.replace("\"owner\":1", "\"owner\":77"),
            "domain 77, which is not in the file",
        ),
        (
            whole.replace("\"mullion_state\": 1", "\"mullion_state\": 9"),
            "version 9",
        ),
        ("\u{0}".to_owned(), "not a state"),
    ];
    for (text, reason) in cases {
        std::fs::write(&file, text).expect("written");
        let output = map(&[path]);
        let message = failure(&output);
        assert_eq!(output.status.code(), Some(1));
        assert!(
            message.starts_with("mullion: ") && message.contains(path),
            "{message}"
        );
        assert!(message.contains(reason), "{message}");
    }
}

#[test]
fn a_missing_file_is_a_failure_and_no_argument_a_usage_error() {
    let output = map(&["/nonexistent/state.json"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(failure(&output).starts_with("mullion: /nonexistent/state.json: "));
    assert_eq!(map(&[]).status.code(), Some(2));
}

#[test]
fn the_format_is_explained() {
    let output = map(&["--explain"]);
    assert!(output.status.success());
    assert!(
        String::from_utf8(output.stdout)
            .expect("text")
            .contains("\"mullion_state\": 1")
    );
}

#[test]
fn domains_and_addresses_can_be_chosen() {
    let state = format!("{}/front.json", pictures());
    let painted = |arguments: &[&str]| {
        let output = map(&[&[state.as_str()], arguments].concat());
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("text")
    };
    let column = |picture: &str, name: &str| picture.contains(&format!("</title>{name}</text>"));
    let two = painted(&["--domain", "unix", "--domain", "1"]);
    assert!(column(&two, "unix") && column(&two, "kernel") && !column(&two, "printk"));
    assert!(two.contains("Shown: 2 chosen of 10 domains."));
    for range in ["disk buffers", "0x68000..0x6a000", "425984..434176"] {
        let part = painted(&["--range", range]);
        assert!(
            column(&part, "ide-disk") && !column(&part, "unix"),
            "{range}"
        );
        assert!(
            part.contains("0x6a000") && !part.contains("0x70010"),
            "{range}"
        );
    }
    let few = painted(&["--most-domains", "3", "--most-rows", "5"]);
    assert!(few.contains("See them with --range START..END"), "{few}");
}

#[test]
fn a_choice_of_what_is_not_there_is_refused_with_what_is() {
    let state = format!("{}/front.json", pictures());
    for (arguments, reason) in [
        (
            ["--domain", "linux"],
            "no domain is called \"linux\"; the state has 10 domains, up to number 9, such as kernel, printk",
        ),
        (
            ["--range", "0x80000..0x90000"],
            "nothing lies at 0x80000..0x90000; the state has 0x0..0x80000",
        ),
        (
            ["--range", "0x2000..0x1000"],
            "nothing lies at 0x2000..0x1000",
        ),
        (["--range", "packet"], "nor a label of the state"),
    ] {
        let output = map(&[&state, arguments[0], arguments[1]]);
        let message = failure(&output);
        assert_eq!(output.status.code(), Some(1));
        assert!(message.contains(reason), "{message}");
    }
    assert_eq!(map(&[&state, "--most-rows", "many"]).status.code(), Some(2));
}
