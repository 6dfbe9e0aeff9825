//! `mullion run --gdb`: breakpoints by line and name, and a backtrace through both stacks.

use crate::{command, text};
use std::io::Write;
use std::process::{Command, Stdio};

const COMMANDS: &str =
    "break null_write\ncontinue\nbacktrace\ndelete\ncontinue\nbacktrace\nkill\nquit\n";

#[test]
fn gdb_shows_lines_and_callers_of_a_program() {
    let parts = [
        "null_write () at",
        "faults.c:14",
        " in main (",
        " in _start (",
        "SIGSEGV",
    ];
    finds(debug(COMMANDS, "faults", &["null-write"]), &parts);
}

#[test]
fn gdb_stops_behind_the_prologue_of_unoptimised_code() {
    let commands = "break add\nbreak scale\nbreak chosen\nbreak sum\ncontinue\ncontinue\ncontinue\n\
                    continue\nclear sum\nbreak arguments.c:9\nkill\nquit\n";
    let parts = [
        "add (a=3, b=4)",
        "arguments.c:4",
        "scale (x=2, y=3, s=",
        " \"a\")",
        "chosen (from=",
        ", at=2)",
        "sum (a=5, b=6, c=7)",
        "arguments.c:10",
        "\tlong result = a + b;",
        // A line without a statement of its own: the next one's.
        "arguments.c, line 10.",
    ];
    finds(debug(commands, "arguments", &[]), &parts);
    // `step` goes there too.
    let commands = "break main\ncontinue\nnext\nstep\nkill\nquit\n";
    let parts = ["main () at", "arguments.c:16", "scale (x=2, y=3, s="];
    finds(debug(commands, "arguments", &[]), &parts);
}

/// gdb, if it is there, said all of this.
#[track_caller]
fn finds(said: Option<String>, parts: &[&str]) {
    let Some(said) = said else { return };
    for part in parts {
        assert!(said.contains(part), "{part:?} is missing:\n{said}");
    }
}

/// What gdb says to these commands; nothing if there is no gdb that may trace programs.
fn debug(commands: &str, program: &str, words: &[&str]) -> Option<String> {
    if Command::new("gdb").arg("--version").output().is_err() {
        assert!(
            std::env::var_os("MULLION_REQUIRE_GDB").is_none(),
            "there is no gdb"
        );
        println!("not tested: there is no gdb on this machine");
        return None;
    }
    let mut command = command(&["--gdb"], program, words);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut gdb = command.env("TERM", "dumb").spawn().expect("started");
    let mut stdin = gdb.stdin.take().expect("a pipe");
    stdin.write_all(commands.as_bytes()).expect("gdb reads");
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
        return None;
    }
    Some(format!("{said}\n{errors}"))
}
