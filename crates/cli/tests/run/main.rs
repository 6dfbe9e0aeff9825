//! `mullion run`, end to end: programs in C, built by `mullion cc`, that do what programs do and
//! what they must not.

mod debugger;
mod faults;
mod files;
mod limits;
mod locks;
mod refused;
mod steps;
mod streams;
mod threads;
mod trace;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;
use std::time::{SystemTime, UNIX_EPOCH};

/// The images, built once for all tests of this process.
static IMAGES: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for (name, protection, level) in [
        ("faults", "read-write-call", "-O1"),
        ("faults", "trap", "-O1"),
        ("streams", "read-write-call", "-O1"),
        ("files", "read-write-call", "-O1"),
        ("locks", "read-write-call", "-O1"),
        ("arguments", "read-write-call", "-O0"),
        ("threads", "read-write-call", "-O1"),
    ] {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/run/{name}.c"));
        let mut build = mullion(&["cc", "-g", level, "-w"]);
        build.arg(format!("--mullion-protection={protection}"));
        let image = directory.path().join(format!("{name}-{protection}.mx"));
        let output = build.arg(source).arg("-o").arg(image).output();
        let output = output.expect("the command starts");
        assert!(output.status.success(), "{name}: {}", text(&output.stderr));
    }
    directory
});

fn mullion(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mullion"));
    command.args(arguments).stdin(Stdio::null());
    command
}

/// The image of one of the programs here, in the default protection.
fn image(name: &str) -> PathBuf {
    IMAGES.path().join(format!("{name}-read-write-call.mx"))
}

/// `mullion run OPTIONS PROGRAM WORDS`.
fn command(options: &[&str], program: &str, words: &[&str]) -> Command {
    let mut command = mullion(&["run"]);
    command.args(options).arg(image(program)).args(words);
    command
}

fn run(options: &[&str], program: &str, words: &[&str]) -> Output {
    let mut command = command(options, program, words);
    command.output().expect("the command starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The status, and what was said; a signal has no status.
#[track_caller]
fn expect(output: &Output, status: i32, stdout: &str) {
    let said = (output.status.code(), text(&output.stdout));
    let error = text(&output.stderr);
    assert_eq!(said, (Some(status), stdout.to_owned()), "{error}");
}

/// A file's last change, in seconds.
fn changed(path: &Path) -> u64 {
    let time = path.metadata().and_then(|data| data.modified());
    let since = time.map(|time: SystemTime| time.duration_since(UNIX_EPOCH));
    since.expect("a file").expect("after 1970").as_secs()
}
