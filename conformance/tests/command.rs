//! The command before any suite begins: what it tests, and what it says if that is missing.

use std::process::{Command, Output};

fn conformance(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_conformance"));
    let command = command.args(arguments).env_remove("MULLION");
    command.output().expect("it starts")
}

#[test]
fn a_missing_command_is_named_with_a_way_out() {
    let output = conformance(&["torture", "--mullion", "/nowhere/mullion"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("/nowhere/mullion (build it, or give --mullion)"),
        "{said}"
    );
}

/// So what was built in one profile is never mistaken for another.
#[test]
fn the_command_under_test_is_the_one_beside_it() {
    let output = conformance(&["torture", "--help"]);
    let said = String::from_utf8_lossy(&output.stdout);
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_conformance"));
    let beside = program.with_file_name("mullion");
    let default = format!("[default:{}]", beside.display());
    // Where a line of the help ends depends on the length of the path.
    let unbroken: String = said.split_whitespace().collect();
    assert!(unbroken.contains(&default), "{default}: {said}");
}

#[test]
fn a_list_of_suites_may_be_another_and_names_a_source_that_none_lists() {
    let program = env!("CARGO_BIN_EXE_conformance");
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name).display().to_string();
    let suite = "[[suite]]\nname = \"mine\"\nsource = \"nobodys-suite\"\nsteps = []\ncount = {}\ntests = 1\n";
    std::fs::write(path("mine.toml"), suite).expect("a file");
    let (list, build) = (path("mine.toml"), path("build"));
    let common = ["suites", "--mullion", program, "--directory", &build];
    let own = conformance(&[&common[..], &["--suites", &list]].concat());
    let said = String::from_utf8_lossy(&own.stdout);
    assert_eq!(own.status.code(), Some(1), "{said}");
    let missing = "mine         FAILED: no list has a source named nobodys-suite";
    assert!(said.contains(missing), "{said}");
    // The list that comes with the command has no such suite.
    let given = conformance(&[&common[..], &["--only", "mine"]].concat());
    let said = String::from_utf8_lossy(&given.stderr);
    assert!(said.contains("the list has no suite named mine"), "{said}");
}
