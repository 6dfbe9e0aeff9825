//! What every program has: its streams, words, environment and status.

use crate::{command, expect, run, text};
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::process::{Command, Stdio};

#[test]
fn the_status_is_the_programs_own() {
    for status in [0, 1, 2, 124, 126, 255] {
        expect(
            &run(&[], "streams", &["status", &status.to_string()]),
            status,
            "",
        );
    }
    expect(&run(&[], "streams", &["status", "257"]), 1, "");
}

#[test]
fn words_and_environment_are_what_was_given() {
    let output = run(&[], "streams", &["words", "", "a b", "--dir", "\u{e9}"]);
    expect(&output, 0, "[][a b][--dir][\u{e9}]");
    let mut bare = command(&[], "streams", &["environment"]);
    expect(&bare.env("SECRET", "1").output().expect("started"), 0, "");
    let given = [
        "--env",
        "A=1=2",
        "--env",
        "HANDED",
        "--env",
        "UNSET_VARIABLE",
    ];
    let mut command = command(&given, "streams", &["environment"]);
    let output = command
        .env("HANDED", "over")
        .env_remove("UNSET_VARIABLE")
        .output();
    expect(&output.expect("started"), 0, "A=1=2\nHANDED=over\n");
    let mut whole = crate::command(&["--env", "*"], "streams", &["environment"]);
    let output = whole.env_clear().env("ONE", "1").env("TWO", "2").output();
    expect(&output.expect("started"), 0, "ONE=1\nTWO=2\n");
}

#[test]
fn streams_are_kept_apart() {
    let output = run(&[], "streams", &["streams"]);
    expect(&output, 0, "to output");
    assert_eq!(text(&output.stderr), "to error");
}

#[test]
fn input_is_read_to_its_end() {
    let mut child = command(&[], "streams", &["echo"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("started");
    let input: Vec<u8> = (0..300_000_u32).map(|n| (n % 251) as u8).collect();
    let mut stdin = child.stdin.take().expect("a pipe");
    let sent = input.clone();
    let writer = std::thread::spawn(move || stdin.write_all(&sent));
    let output = child.wait_with_output().expect("it ends");
    writer.join().expect("a thread").expect("all is read");
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stdout == input, "what comes out is what went in");
}

#[test]
fn what_came_is_had_without_waiting_for_more() {
    let mut child = command(&[], "streams", &["read"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("started");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(&[0; 4095]).expect("it reads");
    let mut said = String::new();
    let mut stdout = child.stdout.take().expect("a pipe");
    stdout.read_to_string(&mut said).expect("it writes");
    assert_eq!(said, "4095");
    drop(stdin);
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}

#[test]
fn much_output() {
    let output = run(&[], "streams", &["much"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(output.stdout.len(), 400_000 * 13);
    assert!(output.stdout.ends_with(b"line  399999\n"));
}

#[test]
fn outputs_that_nobody_reads_end_a_program_by_their_signal() {
    let unread = |words: &[&str]| {
        let mut command = command(&[], "streams", words);
        let pipes = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = pipes.spawn().expect("started");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(text(&output.stderr), "", "{words:?}");
        output.status.code()
    };
    const ENDED: Option<i32> = Some(128 + 13);
    assert_eq!(unread(&["write"]), ENDED);
    assert_eq!(unread(&["broken"]), ENDED);
    assert_eq!(unread(&["unread", "default"]), ENDED);
    assert_eq!(unread(&["unread", "handled"]), Some(3));
    assert_eq!(unread(&["unread", "ignored"]), Some(5));
    assert_eq!(unread(&["unread", "masked"]), ENDED);
}

#[test]
fn outputs_that_take_no_more_are_errors_of_the_program() {
    const ENOSPC: i32 = 28;
    let mut command = command(&[], "streams", &["write"]);
    let full = std::fs::File::options().write(true).open("/dev/full");
    let status = command.stdout(full.expect("a full device")).status();
    assert_eq!(status.expect("it ends").code(), Some(ENOSPC));
}

/// `mullion run` with so many blocks (of 512 bytes) for a file, and what sends a signal at the
/// limit as it is by default.
fn run_with_blocks(blocks: u32, word: &str) -> std::process::Output {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let granted = format!("--dir={}::/d", directory.path().display());
    let output = std::fs::File::create(directory.path().join("output")).expect("a file");
    let run = command(&[&granted], "streams", &[word]);
    let script = format!("ulimit -f {blocks}; exec \"$0\" \"$@\"");
    let mut limited = Command::new("sh");
    limited.arg("-c").arg(script).arg(run.get_program());
    let output = limited.args(run.get_args()).stdout(output).output();
    output.expect("the command starts")
}

#[test]
fn files_that_take_no_more_are_errors_of_the_program() {
    const EFBIG: i32 = 27;
    let output = run_with_blocks(1 << 13, "longest");
    let (status, error) = (output.status, text(&output.stderr));
    assert_eq!(status.code(), Some(EFBIG), "{status}: {error}");
}

/// The image itself is a file, in memory.
#[test]
fn an_image_larger_than_a_file_may_be_is_not_run() {
    let output = run_with_blocks(1, "status");
    let (status, error) = (output.status, text(&output.stderr));
    assert_eq!(status.code(), Some(126), "{status}: {error}");
    assert!(error.contains("File too large"), "{error}");
}

#[test]
fn descriptors_are_limited() {
    expect(&run(&[], "streams", &["descriptors"]), 0, "253");
}

#[test]
fn the_hosts_files_behind_the_streams_are_only_added_to() {
    let open = |content: &str| {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(content.as_bytes()).expect("written");
        file
    };
    let (mut input, mut out, mut error) = (open("input"), open("the host's. "), open("errors. "));
    input.rewind().expect("a file");
    let mut child = command(&[], "streams", &["positions"]);
    let same = |file: &File| Stdio::from(file.try_clone().expect("the same file"));
    let status = child
        .stdin(same(&input))
        .stdout(same(&out))
        .stderr(same(&error))
        .status();
    assert_eq!(status.expect("started").code(), Some(0));
    let content = |file: &mut File| {
        let mut text = String::new();
        file.rewind().expect("a file");
        file.read_to_string(&mut text).expect("text");
        text
    };
    assert_eq!(content(&mut input), "input");
    assert_eq!(content(&mut out), "the host's. added");
    assert_eq!(content(&mut error), "errors. ");
}
