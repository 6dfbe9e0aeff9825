//! Time, memory, stack, and what is not granted.

use crate::{command, expect, run, text};
use std::process::Stdio;
use std::time::Instant;

#[test]
fn an_endless_loop_is_stopped() {
    let mut beyond = Vec::new();
    for _ in 0..5 {
        let output = run(&["--max-time", "50ms"], "faults", &["spin"]);
        expect(&output, 124, "");
        let report = text(&output.stderr);
        for part in [
            "time limit of 50ms exceeded",
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
        assert!(elapsed >= 50.0, "{elapsed} ms are less than was granted");
        beyond.push(elapsed - 50.0);
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
fn no_clock_without_the_grant() {
    const EPERM: i32 = 1;
    expect(&run(&[], "streams", &["clock"]), 0, &format!("-1 {EPERM}"));
    expect(&run(&["--clock"], "streams", &["clock"]), 0, "0 0");
    expect(&run(&[], "streams", &["sleep"]), EPERM, "");
}
