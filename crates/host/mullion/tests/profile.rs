//! `perf` names a domain's functions: the real one, where there is one.

mod support;

use mullion::Host;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Where the program that is profiled finds its extension.
const IMAGE: &str = "MULLION_PROFILED_IMAGE";

/// Why `perf` cannot be asked here, unless it is required.
fn not_tested(why: &str) {
    assert!(
        std::env::var_os("MULLION_REQUIRE_PERF").is_none(),
        "perf is required: {why}"
    );
    println!("not tested: {why}");
}

#[test]
#[ignore = "the program that the test below profiles"]
fn profiled() {
    let image = std::env::var_os(IMAGE).expect("run by the test below");
    let host = Host::builder().perf_map(true).build();
    let domain = host.open(image).unwrap().domain().name("a mill");
    let domain = domain.load().unwrap();
    let mill = domain.function::<fn(u64) -> u64>("mill").unwrap();
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_millis(400) {
        mill.call(1_000_000).unwrap();
    }
    let map = format!("/tmp/perf-{}.map", std::process::id());
    println!("map: {map}");
}

#[test]
fn perf_report_names_the_functions_of_a_domain() {
    let Ok(version) = Command::new("perf").arg("--version").output() else {
        return not_tested("there is no perf on this machine");
    };
    let directory = tempfile::tempdir().unwrap();
    let (image, data) = (
        directory.path().join("mill.mx"),
        directory.path().join("perf.data"),
    );
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/extensions/mill.c");
    support::build(&source, &image, &["-O2"]);
    // The clock of the kernel: counters of the processor's own are not there everywhere.
    let recorded = Command::new("perf")
        .args(["record", "--quiet", "--event=cpu-clock:u", "--output"])
        .arg(&data)
        .arg("--")
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "profiled", "--ignored", "--nocapture"])
        .env(IMAGE, &image)
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&recorded.stdout);
    let said = String::from_utf8_lossy(&recorded.stderr);
    let Some(map) = printed.lines().find_map(|line| line.strip_prefix("map: ")) else {
        // The program has ended with an error, unless perf did not start it.
        assert!(!printed.contains("running 1 test"), "{printed}{said}");
        return not_tested(&format!("perf may not record here: {said}"));
    };
    let report = Command::new("perf")
        .args(["report", "--stdio", "--sort=symbol", "--input"])
        .arg(&data)
        .output()
        .unwrap();
    std::fs::remove_file(map).unwrap();
    let report = String::from_utf8_lossy(&report.stdout);
    let line = report.lines().find(|line| line.contains("grind [a mill]"));
    let line = line.unwrap_or_else(|| panic!("{version:?}: {said}{report}"));
    let share: f64 = line.trim().split('%').next().unwrap().parse().unwrap();
    assert!(share > 50.0, "nearly all the time goes there: {report}");
}
