//! One test for each kind of fault: status 125, and a report that names cause and place.

use crate::{IMAGES, expect, mullion, run, text};

/// What the report must hold for the program's word.
#[track_caller]
fn reports(word: &str, parts: &[&str]) {
    let output = run(&[], "faults", &[word]);
    expect(&output, 125, "");
    holds(&text(&output.stderr), parts);
}

#[track_caller]
fn holds(report: &str, parts: &[&str]) {
    for part in parts {
        assert!(report.contains(part), "{part:?} is missing:\n{report}");
    }
}

#[test]
fn a_write_through_null() {
    reports(
        "null-write",
        &[
            "write to memory that is not mapped",
            "offset 0x8 of the window",
            " null_write (",
            "faults.c:14)",
            "called from",
            " main (",
            "(/sysroot/musl/src/env/__libc_start_main.c:",
            "hint: a null pointer plus 0x8",
        ],
    );
}

#[test]
fn a_read_through_a_wild_pointer() {
    let parts = [
        "read of memory that is not mapped",
        "offset 0xdead0000",
        " wild_read (",
        "faults.c:15)",
    ];
    reports("wild-read", &parts);
}

#[test]
fn a_write_to_a_constant() {
    reports(
        "write-constant",
        &[
            "write to read-only memory",
            " write_constant (",
            "faults.c:16)",
        ],
    );
}

#[test]
fn a_call_through_a_bad_pointer() {
    reports(
        "call-nowhere",
        &[
            "indirect call or jump to offset 0x1234",
            " call (",
            "faults.c:18)",
        ],
    );
}

#[test]
fn a_jump_into_data_and_into_the_middle_of_code() {
    for word in ["call-data", "call-middle"] {
        reports(
            word,
            &[
                "indirect call or jump to something that is no labelled target",
                " call (",
            ],
        );
    }
}

#[test]
fn a_trap_a_breakpoint_and_a_division() {
    reports("trap", &["trap instruction (ud2)", " main ("]);
    reports("breakpoint", &["breakpoint (int3)", " main ("]);
    reports("divide", &["division by zero", " divide (", "faults.c:17)"]);
}

#[test]
fn stacks_that_overflow() {
    reports(
        "data-stack",
        &["data stack overflow (8128 KiB)", " stack_hog (", "more\n"],
    );
    reports(
        "control-stack",
        &[
            "control stack overflow",
            " recurse (",
            "hint: endless recursion",
        ],
    );
}

#[test]
fn signals_that_a_program_sends_itself() {
    reports(
        "abort",
        &[
            "aborted",
            " abort (",
            " main (",
            "hint: the program called abort",
        ],
    );
    reports(
        "assert",
        &["Assertion failed: zero == 1", "aborted", " main ("],
    );
    reports("terminate", &["raised signal 15", " raise (", " main ("]);
    expect(&run(&[], "faults", &["ignored"]), 7, "");
}

#[test]
fn trap_protection_finds_a_wild_pointer_where_it_is_used() {
    let mut command = mullion(&["run"]);
    command
        .arg(IMAGES.path().join("faults-trap.mx"))
        .arg("wild-read");
    let output = command.output().expect("the command starts");
    expect(&output, 125, "");
    let parts = [
        "access outside of the window, found by `trap` protection",
        " wild_read (",
    ];
    holds(&text(&output.stderr), &parts);
}

#[test]
fn a_report_that_nobody_can_read_leaves_the_status() {
    let full = std::fs::File::options().write(true).open("/dev/full");
    let mut command = crate::command(&[], "faults", &["abort"]);
    let status = command.stderr(full.expect("a full device")).status();
    assert_eq!(status.expect("the command starts").code(), Some(125));
}

/// What the program's author wrote is not read if the user does not want that.
#[test]
fn a_report_without_debug_information_has_names_alone() {
    let report = |options: &[&str]| text(&run(options, "faults", &["null-write"]).stderr);
    let (with, without) = (report(&[]), report(&["--no-debug-information"]));
    assert!(
        with.contains(" null_write (") && with.contains("faults.c:"),
        "{with}"
    );
    assert!(
        without.contains(" null_write\n") && !without.contains("faults.c"),
        "{without}"
    );
}
