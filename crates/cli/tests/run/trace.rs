//! `--trace`: what the supervisor decided is a trace that the hardware model accepts.

use crate::{expect, mullion, run, text};

#[test]
fn a_run_is_replayed_by_the_model() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("run.mmt");
    let trace = file.to_str().expect("a name in UTF-8");
    let output = run(&["--trace", trace], "streams", &["status", "7"]);
    expect(&output, 7, "");
    let output = mullion(&["model", "run", "--strict", "--json", trace]).output();
    let output = output.expect("the command starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["refused_calls"], 0);
    // A domain was made, its image's parts were set, and it ended.
    assert!(report["supervisor_calls"].as_u64() >= Some(6), "{report}");
    assert!(report["table_writes"].as_u64() >= Some(4), "{report}");
}

#[test]
fn a_program_that_faults_is_traced_too() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("run.mmt");
    let trace = file.to_str().expect("a name in UTF-8");
    let output = run(&["--trace", trace], "faults", &["null-write"]);
    assert_eq!(output.status.code(), Some(125), "{}", text(&output.stderr));
    let output = mullion(&["model", "run", "--strict", trace]).output();
    let output = output.expect("the command starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
}
