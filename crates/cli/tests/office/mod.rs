//! A place with keys and a policy, where the command is run. A test that needs more makes it itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The examples of elastic languages.
pub(crate) fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/elastic")
}

pub(crate) struct Office {
    directory: tempfile::TempDir,
}

impl Office {
    /// With neither keys nor a policy.
    pub(crate) fn empty() -> Self {
        Office {
            directory: tempfile::tempdir().expect("a directory"),
        }
    }

    /// With a key of each of these names, and a policy that knows these files of types. The key `root` may load all, and it
    /// and the key `compiler` may sign records.
    pub(crate) fn with(keys: &[&str], types: &[String]) -> Self {
        let office = Self::empty();
        for name in keys {
            office.must(&["key", "new", name], None);
        }
        let named: Vec<&&str> = keys
            .iter()
            .filter(|name| matches!(**name, "root" | "compiler"))
            .collect();
        let lines: Vec<String> = named
            .iter()
            .map(|name| {
                let key = fs::read_to_string(office.at(&format!("keys/{name}.pub")));
                format!("{name} = {:?}\n", key.expect("a key").trim())
            })
            .collect();
        let policy = format!(
            "version = 1\ntypes = {types:?}\n[keys]\n{}[allow]\nload = [\"root\"]\ncompile = {named:?}\n",
            lines.concat()
        );
        office.file("policy.toml", &policy);
        office
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes a file; its whole name.
    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        fs::write(self.at(name), text).expect("room");
        self.at(name).display().to_string()
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mullion"));
        command.args(words).current_dir(self.directory.path());
        command
            .env("MULLION_KEYS", self.at("keys"))
            .env("MULLION_POLICY", self.at("policy.toml"))
            .stdin(Stdio::null());
        command
    }

    /// Runs the command, with that file as its input.
    pub(crate) fn run(&self, words: &[&str], input: Option<&Path>) -> Output {
        let mut command = self.command(words);
        if let Some(path) = input {
            command.stdin(fs::File::open(path).expect("a file"));
        }
        command.output().expect("it starts")
    }

    /// The same, which must succeed: what it wrote.
    pub(crate) fn must(&self, words: &[&str], input: Option<&Path>) -> String {
        let output = self.run(words, input);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {said}");
        String::from_utf8(output.stdout).expect("text")
    }

    /// Compiles a program for a type, as `root`, to `x.mx`: whether that was done, and what was said.
    pub(crate) fn compile_as_root(&self, module_type: &str, file: &str) -> (bool, String) {
        let words = [
            "compile",
            "--type",
            module_type,
            "--as",
            "root",
            "--key",
            "root",
            "-o",
            "x.mx",
            file,
        ];
        let output = self.run(&words, None);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.success(), said)
    }

    /// What the record of `x.mx` says that it was made with.
    pub(crate) fn record(&self) -> serde_json::Value {
        let record = fs::read_to_string(self.at("x.mx.record")).expect("a record");
        let record: serde_json::Value = serde_json::from_str(&record).expect("JSON");
        let payload = record["payload"].as_str().expect("a payload");
        let payload = data_encoding::BASE64.decode(payload.as_bytes());
        let said: serde_json::Value =
            serde_json::from_slice(&payload.expect("bits")).expect("JSON");
        said["predicate"].clone()
    }
}
