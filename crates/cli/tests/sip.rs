//! `mullion sip`: separately built SIPs, from the command line.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

/// Where the examples' libraries are, built as their authors would build them.
fn libraries() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sips");
        let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/sip/Cargo.toml");
        let done = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--locked", "--manifest-path", manifest])
            .arg("--target-dir")
            .arg(&target)
            .status()
            .expect("cargo runs");
        assert!(done.success(), "the examples are built");
        target.join("debug")
    })
}

fn mullion() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mullion"));
    command.arg("sip");
    command
}

/// A directory with a configuration and a status socket, and `mullion sip run` of it.
struct Run {
    directory: tempfile::TempDir,
    supervisor: Child,
}

impl Run {
    fn of(configuration: &str) -> Run {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("sips.toml");
        let place = format!("{}/libsip_", libraries().display());
        std::fs::write(&path, configuration.replace("LIB_", &place)).expect("written");
        let supervisor = mullion()
            .arg("run")
            .arg(&path)
            .arg("--status")
            .arg(directory.path().join("socket"))
            .stderr(Stdio::piped())
            .spawn()
            .expect("it runs");
        Run {
            directory,
            supervisor,
        }
    }

    /// What a view says, once it says `wanted`.
    fn look(&self, arguments: &[&str], wanted: &str) -> String {
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
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn end(self) -> (Option<i32>, String) {
        let output = self.supervisor.wait_with_output().expect("it ends");
        let log = String::from_utf8(output.stderr).expect("text");
        (output.status.code(), log)
    }
}

#[test]
fn a_configuration_is_run_looked_at_and_ended() {
    let run = Run::of(
        r#"
        [processes.echo]
        library = "LIB_echo.so"
        bind = ["/echo"]
        [processes.asker]
        library = "LIB_asker.so"
        arguments = ["0", "100"]
        look-up = ["/echo"]
        [processes.failing]
        library = "LIB_odd.so"
        arguments = ["panic"]
        "#,
    );
    let table = run.look(&["top", "--once"], "Panic: ");
    assert!(table.contains("3 processes, 2 running"), "{table}");
    run.look(&["top", "--json"], "\"contract\": \"echo\"");
    run.look(&["graph"], ">domain main</text>");
    let number = run.supervisor.id().cast_signed();
    let pid = rustix::process::Pid::from_raw(number).expect("a number");
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it lives");
    let (code, log) = run.end();
    assert_eq!(code, Some(143), "{log}");
    for line in [
        "started process=\"echo\"",
        "ended process=\"failing\" cause=Panic",
        "ended process=\"asker\" cause=Killed",
    ] {
        assert!(log.contains(line), "{line} in {log}");
    }
}

#[test]
fn the_status_says_how_it_went() {
    let good = "[processes.good]\nlibrary = \"LIB_odd.so\"\narguments = [\"return\"]";
    assert_eq!(Run::of(good).end().0, Some(0));
    let (code, log) = Run::of(&good.replace("return", "fail")).end();
    assert_eq!(code, Some(1));
    assert!(log.contains("as it was told"), "{log}");
    let (code, log) = Run::of(&good.replace("_odd", "_hostile")).end();
    assert_eq!(code, Some(1));
    assert!(
        log.contains("processes.good") && log.contains("constructor"),
        "{log}"
    );
    let (code, log) = Run::of(&good.replace("arguments", "argumants")).end();
    assert_eq!(code, Some(1));
    assert!(log.contains("line 3") && log.contains("argumants"), "{log}");
}

#[test]
fn a_library_is_checked() {
    let check = |name: &str| {
        let path = libraries().join(format!("libsip_{name}.so"));
        mullion().arg("check").arg(path).output().expect("it runs")
    };
    let taken = check("echo");
    let text = String::from_utf8(taken.stdout).expect("text");
    assert!(
        taken.status.success() && text.contains("name       echo"),
        "{text}"
    );
    let refused = check("hostile");
    assert_eq!(refused.status.code(), Some(1));
    assert!(refused.stdout.is_empty());
}
