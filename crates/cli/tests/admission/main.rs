//! Who may load what, end to end: keys, grants, records, policies and real images, by the command.

mod bits;
mod commands;
mod example;
mod keynote;
mod limits;
mod run;
mod service;
mod sign;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

/// Images, built once for all tests of this process.
static IMAGES: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for (name, source, options) in [
        ("uses.mx", "uses.c", &[][..]),
        (
            "write-call.mx",
            "uses.c",
            &["--mullion-protection=write-call"],
        ),
        ("module.mx", "module.c", &["--mullion-kind=extension"]),
    ] {
        let source =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/admission/{source}"));
        let mut build = Command::new(env!("CARGO_BIN_EXE_mullion"));
        build.args(["cc", "-O1", "-w"]).args(options).arg(source);
        let output = build.arg("-o").arg(directory.path().join(name)).output();
        let output = output.expect("the command starts");
        assert!(output.status.success(), "{name}: {}", text(&output.stderr));
    }
    directory
});

/// A place with keys, types and a policy of its own.
struct World {
    directory: tempfile::TempDir,
}

/// The type of the programs here.
const TYPE: &str = "version = 1\nid = \"tool\"\nlanguage = \"c\"\nprotection = \"read-write-call\"\n\
    mechanism = [\"window\"]\nimports = [\"__mullion_system\"]\n";

impl World {
    /// Root may load and cc may sign; alice and bob have keys.
    fn new() -> Self {
        Self::of_type(TYPE, "")
    }

    /// The same, with a type of its own and more lines in the policy.
    fn of_type(module_type: &str, policy: &str) -> Self {
        let world = World {
            directory: tempfile::tempdir().expect("a temporary directory"),
        };
        let mut keys = String::new();
        for name in ["root", "cc", "alice", "bob"] {
            let made = world.succeed(&["key", "new", name]);
            keys += &format!("{name} = \"{}\"\n", made.trim());
        }
        world.write("tool.toml", module_type);
        world.write(
            "policy.toml",
            &format!(
                "version = 1\ntypes = [\"tool.toml\"]\nlog = \"log\"\n{policy}\n[keys]\n{keys}\
                 [allow]\nload = [\"root\"]\ncompile = [\"cc\"]\n"
            ),
        );
        world.take("uses.mx");
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("a file");
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).expect("a file")
    }

    /// Takes an image, and signs it.
    fn take(&self, image: &str) {
        std::fs::copy(IMAGES.path().join(image), self.path(image)).expect("a file");
        self.sign(image);
    }

    fn sign(&self, image: &str) {
        self.succeed(&["sign", image, "--type", "tool.toml", "--key", "cc"]);
    }

    /// A grant of root to alice, as `alice.kn`.
    fn grant(&self, options: &[&str]) {
        let start = ["grant", "--from", "root", "--to", "alice", "--type", "tool"];
        let _replaced = std::fs::remove_file(self.path("alice.kn"));
        self.succeed(&[&start[..], options, &["-o", "alice.kn"]].concat());
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mullion"));
        command.args(arguments).stdin(Stdio::null());
        command.current_dir(self.directory.path());
        command.env("MULLION_KEYS", self.path("keys"));
        for name in ["MULLION_POLICY", "MULLION_AS", "MULLION_RUN"] {
            command.env_remove(name);
        }
        command
    }

    fn mullion(&self, arguments: &[&str]) -> Output {
        self.command(arguments)
            .output()
            .expect("the command starts")
    }

    #[track_caller]
    fn succeed(&self, arguments: &[&str]) -> String {
        let output = self.mullion(arguments);
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            text(&output.stderr)
        );
        text(&output.stdout)
    }

    /// `mullion run` under the policy, as alice with her grant.
    fn run(&self, words: &[&str]) -> Output {
        self.run_with(&["--credentials", "alice.kn"], words)
    }

    fn run_with(&self, options: &[&str], words: &[&str]) -> Output {
        let start = ["run", "--policy", "policy.toml", "--as", "alice"];
        self.mullion(&[&start[..], options, &["uses.mx"], words].concat())
    }

    /// The log's events.
    fn events(&self) -> Vec<serde_json::Value> {
        self.succeed(&["log", "verify", "log"]);
        let line = |line: &str| serde_json::from_str::<serde_json::Value>(line).expect("JSON");
        let lines = self.read("log");
        lines
            .lines()
            .map(|text| line(text)["event"].clone())
            .collect()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Refused with status 126, for these reasons, without having run.
#[track_caller]
fn refused(output: &Output, reasons: &[&str]) {
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(126), "{said}");
    assert_eq!(text(&output.stdout), "", "it ran");
    for reason in reasons {
        assert!(said.contains(reason), "{reason:?} is missing:\n{said}");
    }
}
