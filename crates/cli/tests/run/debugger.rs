//! `mullion run --gdb`: breakpoints by line and name, and a backtrace through both stacks.

use crate::{command, text};
use std::io::Write;
use std::process::{Command, Stdio};

const COMMANDS: &str =
    "break null_write\ncontinue\nbacktrace\ndelete\ncontinue\nbacktrace\nkill\nquit\n";

#[test]
fn gdb_shows_lines_and_callers_of_a_program() {
    if Command::new("gdb").arg("--version").output().is_err() {
        assert!(
            std::env::var_os("MULLION_REQUIRE_GDB").is_none(),
            "there is no gdb"
        );
        println!("not tested: there is no gdb on this machine");
        return;
    }
    let mut command = command(&["--gdb"], "faults", &["null-write"]);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut gdb = command.env("TERM", "dumb").spawn().expect("started");
    let mut stdin = gdb.stdin.take().expect("a pipe");
    stdin.write_all(COMMANDS.as_bytes()).expect("gdb reads");
    drop(stdin);
    let output = gdb.wait_with_output().expect("it ends");
    let said = text(&output.stdout);
    let errors = text(&output.stderr);
    let refusals = ["ptrace: Operation not permitted", "Could not trace"];
    if refusals
        .iter()
        .any(|words| said.contains(words) || errors.contains(words))
    {
        assert!(
            std::env::var_os("MULLION_REQUIRE_GDB").is_none(),
            "gdb may not trace here"
        );
        println!("not tested: gdb may not trace programs here");
        return;
    }
    for part in [
        "null_write () at",
        "faults.c:14",
        " in main (",
        " in _start (",
        "SIGSEGV",
    ] {
        assert!(
            said.contains(part),
            "{part:?} is missing:\n{said}\n{}",
            errors
        );
    }
}
