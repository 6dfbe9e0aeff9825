//! `mullion model` as its users meet it.

use std::path::Path;
use std::process::{Command, Output};

fn mullion(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_mullion"))
        .current_dir(directory)
        .arg("model")
        .args(arguments)
        .output()
        .unwrap()
}

/// Standard output of what must succeed.
fn succeed(directory: &Path, arguments: &[&str]) -> String {
    let output = mullion(directory, arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

/// Standard error of what must fail with this status.
fn fail(directory: &Path, arguments: &[&str], status: i32) -> String {
    let output = mullion(directory, arguments);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        output.status.code(),
        Some(status),
        "{arguments:?}: {stderr}"
    );
    stderr
}

fn synth(directory: &Path, more: &[&str]) {
    let mut arguments = vec!["synth", "-o", "t.mmt", "--events", "60000"];
    arguments.extend(more);
    succeed(directory, &arguments);
}

#[test]
fn a_trace_is_made_run_and_swept() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    synth(at, &["--modules", "3", "--calls-per-kilocycle", "4"]);
    let text = succeed(at, &["run", "t.mmt", "--strict"]);
    for part in [
        "Table 5",
        "Table 6",
        "Table 8",
        "paper: MySQL",
        "nothing was refused",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    let json = succeed(
        at,
        &["run", "t.mmt", "--json", "--plb", "16", "--format", "runs"],
    );
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["events"], 60000);
    assert_eq!(json["config"]["plb"]["entries"], 16);
    assert_eq!(json["config"]["tables"]["format"], "runs");
    let arguments = [
        "sweep",
        "t.mmt",
        "-o",
        "out",
        "--plb",
        "8,64",
        "--granularity",
        "4,64",
    ];
    let written = succeed(at, &arguments);
    assert_eq!(written.lines().count(), 7);
    let csv = std::fs::read_to_string(at.join("out/sweep.csv")).unwrap();
    assert_eq!(csv.lines().count(), 1 + 3 * 2 * 2);
    let columns = csv.lines().map(|line| line.split(',').count());
    assert!(columns.eq(std::iter::repeat_n(32, 13)));
    let svg = std::fs::read_to_string(at.join("out/plb-miss-rate.svg")).unwrap();
    assert!(svg.starts_with("<svg"));
}

#[test]
fn the_gate_buffer_and_the_caches_are_swept() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    synth(at, &["--modules", "6", "--calls-per-kilocycle", "8"]);
    let sizes = [
        "--glb",
        "2,64",
        "--instruction-cache",
        "2K,16K",
        "--data-cache",
        "4K",
    ];
    let run = |more: &[&str]| {
        let arguments = [&["sweep", "t.mmt"], &sizes[..], more].concat();
        succeed(at, &arguments)
    };
    let lines = run(&["--json"]);
    let runs: Vec<serde_json::Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    // What is not named keeps the configuration's value, the protection buffer's entries too.
    assert_eq!(runs.len(), 4);
    for (run, (glb, cache)) in runs
        .iter()
        .zip([(2, 2048), (2, 16384), (64, 2048), (64, 16384)])
    {
        assert_eq!(run["glb_entries"], glb);
        assert_eq!(run["instruction_cache_bytes"], cache);
        assert_eq!(run["data_cache_bytes"], 4096);
        assert_eq!(run["unified_cache_bytes"], 2 << 20);
        assert_eq!(run["plb_entries"], 64);
        assert_eq!(run["format"], "vector");
    }
    let number = |run: usize, name: &str| runs[run][name].as_f64().unwrap();
    assert!(number(0, "glb_misses") > number(2, "glb_misses"));
    let misses = "instruction_cache_miss_rate";
    assert!(number(0, misses) > number(1, misses));
    let table = run(&[]);
    let head = table.lines().nth(2).unwrap();
    for (column, there) in [
        ("GLB", true),
        ("instruction cache", true),
        ("data cache", false),
    ] {
        assert_eq!(head.contains(column), there, "{column} in\n{table}");
    }
    assert_eq!(table.trim_end().lines().count(), 3 + 4);
    let written = run(&["-o", "out"]);
    let names: Vec<&str> = written.lines().collect();
    assert_eq!(
        names,
        [
            "out/sweep.csv",
            "out/glb-miss-rate.svg",
            "out/glb-time.svg",
            "out/slowdown-instruction-cache.svg"
        ]
    );
    let stderr = fail(at, &["sweep", "t.mmt", "--data-cache", "5000"], 1);
    assert!(stderr.contains("5000 bytes"), "{stderr}");
    let many = (1..200).map(|size| size.to_string());
    let many = many.collect::<Vec<_>>().join(",");
    let stderr = fail(at, &["sweep", "t.mmt", "--plb", &many, "--glb", &many], 1);
    assert!(stderr.contains("more than 10000 runs"), "{stderr}");
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let trace = |more: &[&str]| {
        synth(at, more);
        std::fs::read(at.join("t.mmt")).unwrap()
    };
    assert_eq!(trace(&["--seed", "7"]), trace(&["--seed", "7"]));
    assert_ne!(trace(&["--seed", "7"]), trace(&["--seed", "8"]));
}

#[test]
fn wild_stores_are_refused_and_told() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    synth(at, &["--faults-per-megacycle", "500"]);
    let text = succeed(at, &["run", "t.mmt"]);
    assert!(text.contains(": write of 0x"), "{text}");
    assert!(text.contains(", held is none"), "{text}");
    assert!(text.contains(" at byte 0x"), "{text}");
    fail(at, &["run", "t.mmt", "--strict"], 1);
}

#[test]
fn bad_traces_end_with_status_one_and_the_reason() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    synth(at, &[]);
    let good = std::fs::read(at.join("t.mmt")).unwrap();
    let with = |change: fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        change(&mut bytes);
        bytes
    };
    let bad = [
        (vec![], "empty"),
        (b"not a trace at all".to_vec(), "not a trace"),
        (with(|bytes| bytes[8] = 2), "version 2"),
        (with(|bytes| bytes.truncate(bytes.len() - 1)), "cut off"),
        (with(|bytes| bytes[5000] ^= 1), "checksum"),
        (with(|bytes| bytes.push(0)), "end is damaged"),
    ];
    for (bytes, reason) in bad {
        std::fs::write(at.join("bad.mmt"), bytes).unwrap();
        for arguments in [
            vec!["run", "bad.mmt"],
            vec!["sweep", "bad.mmt", "-o", "out"],
        ] {
            let stderr = fail(at, &arguments, 1);
            assert!(stderr.starts_with("mullion: bad.mmt: "), "{stderr}");
            assert!(stderr.contains(reason), "{reason} in {stderr}");
        }
    }
    let stderr = fail(at, &["run", "absent.mmt"], 1);
    assert!(stderr.starts_with("mullion: absent.mmt: "), "{stderr}");
}

#[test]
fn bad_configurations_and_parameters_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    synth(at, &[]);
    for (text, reason) in [
        ("[plb]\nentires = 3", "entires"),
        ("[plb]\nentries = 100000", "plb.entries is 100000"),
        ("[tables]\ngranularity = 12", "granularity is 12"),
        ("[caches]\ndata = { bytes = 999, ways = 4 }", "999 bytes"),
    ] {
        std::fs::write(at.join("c.toml"), text).unwrap();
        let stderr = fail(at, &["run", "t.mmt", "--config", "c.toml"], 1);
        assert!(stderr.contains(reason), "{reason} in {stderr}");
    }
    let stderr = fail(at, &["synth", "-o", "x.mmt", "--modules", "0"], 1);
    assert!(stderr.contains("modules is 0"), "{stderr}");
    fail(at, &["run"], 2);
    fail(at, &["run", "t.mmt", "--format", "tree"], 2);
}

#[test]
fn traces_of_others_are_converted_or_refused_with_the_line() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../policy/mmp/tests/samples");
    for name in ["tiny.lackey", "tiny.execlog", "tiny.toml"] {
        std::fs::copy(samples.join(name), at.join(name)).unwrap();
    }
    let map = std::fs::read_to_string(at.join("tiny.toml")).unwrap();
    let map = map.replace(
        "start = 0x1ffe801000\nend = 0x1fff001000",
        "start = 0x4000001000\nend = 0x4000801000",
    );
    std::fs::write(at.join("qemu.toml"), map).unwrap();
    for (from, trace, map) in [
        ("lackey", "tiny.lackey", "tiny.toml"),
        ("qemu", "tiny.execlog", "qemu.toml"),
    ] {
        let to = ["-o", "t.mmt", "--map", map];
        let arguments = [&["convert", "--from", from, trace], &to[..]].concat();
        let said = succeed(at, &arguments);
        assert!(said.contains("87 instructions"), "{said}");
        assert!(said.contains("2 calls of gates, 2 returns"), "{said}");
        let ran = succeed(at, &["run", "t.mmt"]);
        assert!(ran.contains("write of 0x403000, held is none"), "{ran}");
    }
    std::fs::write(at.join("bad"), "I  00401000,1\nI  00401001,x\n").unwrap();
    let convert = |map: &'static str, trace: &'static str| {
        let arguments = [
            "convert", "--from", "lackey", "--map", map, "-o", "new.mmt", trace,
        ];
        fail(at, &arguments, 1)
    };
    let stderr = convert("tiny.toml", "bad");
    assert_eq!(
        stderr,
        "mullion: new.mmt: bad: line 2: `x` is no number of bytes\n"
    );
    assert!(!at.join("new.mmt").exists());
    let stderr = convert("tiny.toml", "absent");
    assert!(stderr.starts_with("mullion: absent: "), "{stderr}");
    let stderr = convert("bad", "tiny.lackey");
    assert!(
        stderr.starts_with("mullion: bad: the map cannot be read"),
        "{stderr}"
    );
}
