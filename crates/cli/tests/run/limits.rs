//! Time, memory, stack, and what is not granted.

use crate::{command, expect, mullion, run, text};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Instant;

#[test]
fn an_endless_loop_is_stopped() {
    let mut beyond = Vec::new();
    for _ in 0..5 {
        // On a busy machine the program needs a while to come so far as to loop.
        let output = run(&["--max-time", "400ms"], "faults", &["spin"]);
        expect(&output, 124, "");
        let report = text(&output.stderr);
        for part in [
            "time limit of 400ms exceeded",
            " spin (",
            "hint: see --max-time",
        ] {
            assert!(report.contains(part), "{part:?} is missing:\n{report}");
        }
        let line = report
            .lines()
            .find_map(|line| line.strip_prefix("  stopped after "));
        let (number, scale) = match line.and_then(|line| line.strip_suffix("ms")) {
            Some(number) => (number, 1.0),
            None => (
                line.and_then(|line| line.strip_suffix('s'))
                    .expect("a time"),
                1000.0,
            ),
        };
        let elapsed = scale * number.parse::<f64>().expect("a number");
        assert!(elapsed >= 400.0, "{elapsed} ms are less than was granted");
        beyond.push(elapsed - 400.0);
    }
    println!("stopped so many ms behind the budget: {beyond:.2?}");
}

#[test]
fn an_endless_loop_is_stopped_by_its_processor_time() {
    let output = run(&["--max-processor-time", "50ms"], "faults", &["spin"]);
    expect(&output, 124, "");
    let report = text(&output.stderr);
    for part in [
        "limit of 50ms on a processor exceeded",
        " spin (",
        "  stopped after ",
        "hint: see --max-processor-time",
    ] {
        assert!(report.contains(part), "{part:?} is missing:\n{report}");
    }
}

#[test]
fn a_program_that_waits_is_stopped_too() {
    let begin = Instant::now();
    let mut waiting = command(&["--max-time", "100ms"], "streams", &["echo"]);
    let mut child = waiting
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    let pipe = child.stdin.take();
    assert_eq!(child.wait().expect("it ends").code(), Some(124));
    drop(pipe);
    let sleeping = run(&["--max-time", "100ms", "--clock"], "streams", &["sleep"]);
    expect(&sleeping, 124, "");
    assert!(
        begin.elapsed().as_secs() < 1800,
        "the program sleeps for an hour"
    );
}

/// However the program ends, its figures are there.
#[test]
fn figures_are_written_at_the_end() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("figures.prom");
    let figures = |options: &[&str], program, word| {
        let path = file.to_str().expect("a name");
        let all = [&["--metrics", path], options].concat();
        let output = run(&all, program, &[word]);
        let written = std::fs::read_to_string(&file).expect("the figures");
        std::fs::remove_file(&file).expect("removed");
        (output, written)
    };
    let name = "domain=\"faults-read-write-call.mx\"";
    let has = |text: &str, family: &str, end: &str| {
        let beginning = format!("mullion_domain_{family}{{{name}");
        let mut lines = text.lines();
        assert!(
            lines.any(|line| line.starts_with(&beginning) && line.ends_with(end)),
            "{beginning} ... {end} is missing:\n{text}"
        );
    };
    let (output, spun) = figures(&["--max-time", "50ms"], "faults", "spin");
    expect(&output, 124, "");
    has(&spun, "faults_total", "kind=\"time_limit\"} 1");
    has(&spun, "limit_hits_total", "limit=\"time\"} 1");
    has(&spun, "calls_total", " 1");
    let seconds = spun
        .lines()
        .find(|line| line.starts_with("mullion_domain_call_seconds_total"));
    let seconds = seconds.and_then(|line| line.rsplit(' ').next());
    let seconds: f64 = seconds.expect("a line").parse().expect("a number");
    assert!(seconds >= 0.05, "{seconds}");
    let (_, memory) = figures(&["--max-memory", "16M"], "streams", "memory");
    assert!(memory.contains("mullion_domain_memory_limit_bytes"));
    let refused = run(
        &["--max-time", "10ms", "--metrics", "/does/not/exist/x"],
        "faults",
        &["spin"],
    );
    assert_eq!(refused.status.code(), Some(126));
}

#[test]
fn memory_is_limited() {
    let output = run(&["--max-memory", "16M"], "streams", &["memory"]);
    assert_eq!(output.status.code(), Some(9), "{}", text(&output.stderr));
    let pieces: u32 = text(&output.stdout).parse().expect("a number");
    assert!((8..16).contains(&pieces), "{pieces} MiB");
    let output = run(&["--max-memory", "8K"], "streams", &["memory"]);
    expect(&output, 126, "");
    assert!(text(&output.stderr).contains("--max-memory"));
}

#[test]
fn the_stack_is_limited() {
    let output = run(&["--max-stack", "256K"], "faults", &["data-stack"]);
    expect(&output, 125, "");
    assert!(text(&output.stderr).contains("data stack overflow (256 KiB)"));
}

#[test]
fn hostile_mappings_are_refused() {
    let mut command = command(&[], "streams", &["mappings"]);
    let status = command.stdout(Stdio::null()).status().expect("started");
    assert_eq!(status.code(), Some(42));
}

#[test]
fn an_alarm_ends_a_sleep_and_a_program_without_a_handler() {
    let output = run(&["--clock"], "streams", &["alarm"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{said}");
    assert!(said.contains("raised signal 14"), "{said}");
}

#[test]
fn no_clock_without_the_grant() {
    const EPERM: i32 = 1;
    expect(&run(&[], "streams", &["clock"]), 0, &format!("-1 {EPERM}"));
    expect(&run(&["--clock"], "streams", &["clock"]), 0, "0 0");
    expect(&run(&[], "streams", &["sleep"]), EPERM, "");
}

/// An image with so many MiB of constants, and the words of a shell that runs it with so many MiB of memory of its own.
fn large(directory: &Path, constants: u32) -> impl Fn(&str, u32) -> Output {
    let (source, image) = (directory.join("large.c"), directory.join("large.mx"));
    let program = format!(
        "#include <stdio.h>\nconst char big[{constants} << 20] = {{1}};\n\
         int main(int count, char **words) {{ (void)words; printf(\"%d\\n\", big[count - 1]); return 0; }}\n"
    );
    std::fs::write(&source, program).expect("written");
    let mut build = mullion(&["cc", "-O1", "-w"]);
    let built = build.arg(&source).arg("-o").arg(&image).output();
    let built = built.expect("the command starts");
    assert!(built.status.success(), "{}", text(&built.stderr));
    move |max_memory, own| {
        // What a process has for itself, and may write: files in memory and reservations are not in it.
        let line = format!("ulimit -d {}; exec \"$@\"", own << 10);
        let mut shell = Command::new("sh");
        shell.args(["-c", &line, "sh", env!("CARGO_BIN_EXE_mullion")]);
        shell.args(["run", "--max-memory", max_memory]);
        shell.arg(&image).stdin(Stdio::null());
        shell.output().expect("the shell starts")
    }
}

/// A module of 64 MiB is not read where a domain may have 32, however little the process itself could have.
#[test]
fn a_file_that_takes_more_than_the_memory_limit_is_not_read() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let run = large(directory.path(), 64);
    let output = run("32M", 56);
    expect(&output, 126, "");
    let said = text(&output.stderr);
    assert!(
        said.contains("larger than 24403200 bytes: to verify more takes more than 33554432"),
        "{said}"
    );
    expect(&run("128M", 256), 0, "1\n");
}

/// A file is in memory once, and beside it what the verifier learns of its code.
#[test]
fn a_file_is_not_in_memory_twice() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let run = large(directory.path(), 40);
    expect(&run("64M", 104), 0, "1\n");
}
