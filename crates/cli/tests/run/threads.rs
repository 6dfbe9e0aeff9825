//! Threads of a program's own: what they do, how many there are, and that all end with the program.

use crate::{expect, mullion, run, text};
use std::path::Path;

#[test]
fn threads_share_memory_and_wait_for_each_other() {
    for (word, threads, said) in [
        // Each thread's local begins at 7; results are that, the turns and the thread's place.
        ("sums", "8", "160000 160084 7\n"),
        ("queues", "6", "1501500 0\n"),
        ("meetings", "4", "400\n"),
        ("turns", "2", "300\n"),
        ("values", "1", "3 3\n"),
        ("leave", "1", "the last one\n"),
        ("deep", "1", "1000\n"),
    ] {
        let output = run(&["--threads", threads], "threads", &[word]);
        expect(&output, 0, said);
    }
    let output = run(&["--threads", "1", "--clock"], "threads", &["timed"]);
    expect(&output, 0, "ETIMEDOUT\n");
}

#[test]
fn there_are_as_many_as_granted() {
    for granted in ["1", "5", "94"] {
        let output = run(&["--threads", granted], "threads", &["limit", granted]);
        expect(&output, 0, &format!("{granted}: EAGAIN\n"));
    }
    expect(&run(&[], "threads", &["limit", "0"]), 0, "0: EAGAIN\n");
    let refused = run(&["--threads", "95"], "threads", &["sums"]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
}

/// No process is made: a thread is all that was granted.
#[test]
fn threads_are_no_processes() {
    let said = run(&["--threads", "8"], "threads", &["fork"]);
    expect(&said, 0, "-1 Function not implemented\n");
}

#[test]
fn all_end_with_the_program() {
    let threads = ["--threads", "4"];
    // Those that sleep may see the end before the thread that ended the program has said why.
    for _ in 0..30 {
        expect(&run(&threads, "threads", &["exit", "3"]), 3, "");
    }
    expect(&run(&threads, "threads", &["return"]), 5, "");
    let fault = run(&threads, "threads", &["fault"]);
    expect(&fault, 125, "");
    let report = text(&fault.stderr);
    for part in [
        "write to memory that is not mapped",
        " fall (",
        "threads.c:",
    ] {
        assert!(report.contains(part), "{part:?} is missing:\n{report}");
    }
}

#[test]
fn limits_hold_for_threads() {
    for (option, said) in [
        ("--max-time", "time limit of 200ms exceeded"),
        (
            "--max-processor-time",
            "limit of 200ms on processors for all calls exceeded",
        ),
    ] {
        let words = ["--threads", "3", option, "200ms"];
        let output = run(&words, "threads", &["spin"]);
        expect(&output, 124, "");
        let report = text(&output.stderr);
        assert!(report.contains(said), "{said:?} is missing:\n{report}");
    }
}

#[test]
fn the_cpp_library_has_its_threads() {
    let directory = tempfile::tempdir().expect("a directory");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/run/threads.cc");
    let image = directory.path().join("threads.mx");
    let mut build = mullion(&["c++", "-std=c++20", "-O2"]);
    let built = build.arg(source).arg("-o").arg(&image).output();
    let built = built.expect("the command starts");
    assert!(built.status.success(), "{}", text(&built.stderr));
    let mut command = mullion(&["run", "--threads", "4"]);
    let output = command.arg(&image).output().expect("the command starts");
    // Four thread-locals and one static, of which the static stays.
    expect(&output, 0, "4004 5 4\n500500\nkept\n4 1\n");
}
