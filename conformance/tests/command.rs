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
