//! Locks of files: a program in a domain locks as one does that the host runs, and both keep each other out.

use crate::{command, run, text};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

/// Where a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Domain,
    Host,
}

/// A directory with a file of 64 bytes, and the same program built for the host.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let top = tempfile::tempdir().expect("a temporary directory");
        std::fs::create_dir(top.path().join("d")).expect("a directory");
        std::fs::write(top.path().join("d/file"), [0; 64]).expect("a file");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/run/locks.c");
        let mut build = Command::new("gcc");
        build
            .arg("-w")
            .arg(source)
            .arg("-o")
            .arg(top.path().join("native"));
        assert!(build.status().expect("gcc").success());
        Self(top)
    }

    /// `which` with a number for its random ones; its input stays open, until it is dropped.
    fn start(&self, side: Side, which: &str, seed: u32) -> Running {
        let seed = seed.to_string();
        let mut command = match side {
            Side::Domain => {
                let grant = format!("--dir={}::/d", self.0.path().join("d").display());
                command(&[&grant], "locks", &[which, "/d/file", &seed])
            }
            Side::Host => {
                let mut command = Command::new(self.0.path().join("native"));
                command
                    .arg(which)
                    .arg(self.0.path().join("d/file"))
                    .arg(&seed);
                command
            }
        };
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        Running { child, output }
    }
}

struct Running {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Running {
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("its output");
        line.trim_end().to_owned()
    }

    /// Its lines until it is done, or ends.
    fn said(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            match self.line() {
                line if line.is_empty() || line == "done" => return lines,
                line => lines.push(line),
            }
        }
    }

    /// Closes its input, and waits for its end.
    fn end(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().expect("it was started").success());
    }
}

/// 400 attempts with four descriptors beside another program's locks: each comes to the same, and what is locked at
/// the end is the same.
#[test]
fn a_program_locks_as_the_kernel_has_processes_lock() {
    let place = Place::new();
    for seed in 1..=12 {
        let sides = [Side::Host, Side::Domain].map(|side| {
            let mut other = place.start(Side::Host, "hold", seed);
            other.said();
            let mut tried = place.start(side, "random", seed + 100);
            let said = tried.said();
            let mut map = place.start(Side::Host, "map", 0);
            let found = map.said();
            for program in [map, tried, other] {
                program.end();
            }
            (said, found)
        });
        assert_eq!(sides[0], sides[1], "seed {seed}");
        assert_eq!(sides[0].0.len(), 1, "{sides:?}");
        assert_eq!(sides[0].1[0].len(), 64, "{sides:?}");
    }
}

#[test]
fn whoever_waits_gets_a_lock_when_it_is_free() {
    let place = Place::new();
    for (keeper, waiter) in [
        (Side::Host, Side::Host),
        (Side::Host, Side::Domain),
        (Side::Domain, Side::Host),
        (Side::Domain, Side::Domain),
    ] {
        let mut keeping = place.start(keeper, "keep", 0);
        assert_eq!(keeping.said(), ["0 0"], "{keeper:?}");
        let mut waiting = place.start(waiter, "wait", 0);
        let found = [waiting.line(), waiting.line()];
        assert_eq!(found, ["11 11", "1 0 0 0"], "{keeper:?} {waiter:?}");
        keeping.end();
        assert_eq!(waiting.line(), "0 0", "{keeper:?} {waiter:?}");
        waiting.end();
    }
}

#[test]
fn locks_are_limited_and_need_a_directory_that_may_be_written() {
    let place = Place::new();
    let directory = place.0.path().join("d");
    let grant = format!("--dir={}::/d", directory.display());
    let output = run(&[&grant], "locks", &["many", "/d/file"]);
    assert_eq!(text(&output.stdout), "1024 37 0\n");
    // Reading: no. Writing by a descriptor that reads: no, and that is said first. A stream: no. No descriptor: no.
    let output = run(&[&format!("{grant}:ro")], "locks", &["refused", "/d/file"]);
    assert_eq!(text(&output.stdout), "37 9 37 22 9\n");
    let output = run(&[&grant], "locks", &["refused", "/d/file"]);
    assert_eq!(text(&output.stdout), "0 9 0 22 9\n");
}
