//! `mullion sip run` as the tests have it: a configuration in a directory of its own, and everything that is said.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::built::libraries;

/// For what is to come: a test that waits for ever says nothing.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) fn mullion() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mullion"));
    command.arg("sip");
    command
}

/// A directory with a configuration and a status socket, and `mullion sip run` of it.
pub(crate) struct Run {
    directory: tempfile::TempDir,
    pub(crate) supervisor: Child,
    log: Arc<Mutex<String>>,
    readers: Vec<JoinHandle<()>>,
}

impl Run {
    /// `LIB_` stands for the beginning of libraries' paths, as `target/release/libsip_` does in the examples.
    pub(crate) fn of(configuration: &str) -> Run {
        Run::within(tempfile::tempdir().expect("a directory"), configuration)
    }

    /// An example's configuration, after `change`.
    pub(crate) fn example(name: &str, change: impl Fn(String) -> String) -> Run {
        Run::of(&change(example(name)))
    }

    pub(crate) fn within(directory: tempfile::TempDir, configuration: &str) -> Run {
        let path = directory.path().join("sips.toml");
        let place = format!("{}/libsip_", libraries().display());
        let configuration = configuration
            .replace("LIB_", &place)
            .replace("target/release/libsip_", &place);
        std::fs::write(&path, configuration).expect("written");
        let mut supervisor = mullion()
            .arg("run")
            .arg(&path)
            .arg("--status")
            .arg(directory.path().join("socket"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it runs");
        let log = Arc::default();
        let readers = vec![
            read(supervisor.stdout.take().expect("piped"), &log),
            read(supervisor.stderr.take().expect("piped"), &log),
        ];
        Run {
            directory,
            supervisor,
            log,
            readers,
        }
    }

    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// What a view says, once it says `wanted`.
    pub(crate) fn look(&self, arguments: &[&str], wanted: &str) -> String {
        let begin = Instant::now();
        loop {
            let socket = self.directory.path().join("socket");
            let seen = mullion()
                .args(arguments)
                .arg("--status")
                .arg(socket)
                .output();
            let text = String::from_utf8(seen.expect("it runs").stdout).expect("text");
            if text.contains(wanted) {
                return text;
            }
            assert!(begin.elapsed() < PATIENCE, "no {wanted} in {text}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The first line with `wanted`, once it is there.
    pub(crate) fn said(&mut self, wanted: &str) -> String {
        let begin = Instant::now();
        loop {
            let over = self.supervisor.try_wait().expect("our child").is_some();
            let log = self.log.lock().expect("no panic").clone();
            if let Some(line) = log.lines().find(|line| line.contains(wanted)) {
                return line.to_owned();
            }
            assert!(!over, "it ended without {wanted:?}: {log}");
            assert!(begin.elapsed() < PATIENCE, "no {wanted:?}: {log}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Asks it to end.
    pub(crate) fn terminate(&self) {
        let number = self.supervisor.id().cast_signed();
        let pid = rustix::process::Pid::from_raw(number).expect("a number");
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it lives");
    }

    /// Waits for its end: its exit status, and all that was said.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        let status = self.supervisor.wait().expect("it ends");
        for reader in std::mem::take(&mut self.readers) {
            reader.join().expect("no panic");
        }
        let log = self.log.lock().expect("no panic").clone();
        (status.code(), log)
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // A test that failed leaves nothing behind; after `end` there is nothing.
        let _ = self.supervisor.kill();
        let _ = self.supervisor.wait();
    }
}

/// An example's configuration.
pub(crate) fn example(name: &str) -> String {
    let path = format!(
        "{}/../../examples/sip/{name}.toml",
        env!("CARGO_MANIFEST_DIR")
    );
    std::fs::read_to_string(path).expect("there")
}

fn read(from: impl Read + Send + 'static, log: &Arc<Mutex<String>>) -> JoinHandle<()> {
    let log = Arc::clone(log);
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines() {
            let line = line.expect("text");
            let mut log = log.lock().expect("no panic");
            log.push_str(&line);
            log.push('\n');
        }
    })
}
