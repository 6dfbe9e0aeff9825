//! A step of `mullion compile` that meets hostile text: a process of its own, with limits. It opens the compilers' files, those that the
//! step is for, and its scratch directory, and makes no socket. Whatever becomes of it but success is a refusal.

use crate::output::sayln;
use anyhow::Context as _;
use mullion_closed::{drop_sockets, keep_files};
use mullion_driver::{Arguments, Language, rust};
use mullion_elastic::{Elastic, Rule};
use mullion_judge::{JudgedProgram, ProgramSource, SourceRefusal, judge};
use rustix::process::{Resource, Rlimit, Signal, setrlimit};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Once;
use std::time::{Duration, Instant};

/// Seconds of processor time, and of the clock.
const PROCESSOR: u64 = 30;
const CLOCK: Duration = Duration::from_secs(600);
/// Bytes of address space, and of each file.
const MEMORY: u64 = 4 << 30;
const FILE: u64 = 64 << 20;

/// Directories with compilers, linkers, their libraries and headers.
const COMPILERS: [&str; 7] = [
    "bin", "lib", "lib32", "lib64", "libx32", "libexec", "include",
];

/// A step writes this file if Linux has no Landlock.
const UNCONFINED: &str = "unconfined";

/// `judge-rust` of a program whose recursion checks the depth of the stack.
pub(super) const DEEP: &str = "judge-deep";

/// Limits, then what is to be done.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct StepArgs {
    /// What it may read besides the compilers' files. May be repeated.
    #[arg(long)]
    read: Vec<PathBuf>,
    /// No limits, and all files: of a text of our own.
    #[arg(long)]
    open: bool,
    /// `judge IN OUT`, or `cc`, `rustc`, `judge-rust`, `judge-deep`, `link` and its arguments. `alone` in front: the language is the
    /// only wall.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    words: Vec<OsString>,
}

/// What the judge of the child process is told.
#[derive(Serialize, Deserialize)]
pub(super) struct Told {
    pub(super) path: PathBuf,
    pub(super) module_type: String,
    pub(super) environment: String,
    pub(super) program: String,
    pub(super) files: HashMap<String, String>,
}

impl StepArgs {
    fn confine(&self) -> anyhow::Result<()> {
        let limits = [
            (Resource::Cpu, PROCESSOR),
            (Resource::As, MEMORY),
            (Resource::Fsize, FILE),
            (Resource::Core, 0),
        ];
        for (resource, most) in limits {
            let limit = Rlimit {
                current: Some(most),
                maximum: Some(most),
            };
            setrlimit(resource, limit).context("the limits of the compiler")?;
        }
        let scratch = std::env::current_dir()?;
        let mut read: Vec<PathBuf> = ["/usr", "/usr/local", "/"]
            .iter()
            .flat_map(|place| COMPILERS.map(|name| Path::new(place).join(name)))
            .collect();
        read.push("/etc/ld.so.cache".into());
        read.push(std::env::current_exe()?);
        let cache = mullion_fetch::cache_directory()?;
        read.extend(["bin", "sysroot", "rust"].map(|name| cache.join(name)));
        if let Ok(toolchain) = rust::Toolchain::find() {
            read.push(toolchain.directory().to_owned());
        }
        let read = read.iter().chain(&self.read).map(PathBuf::as_path);
        let write = [scratch.as_path(), Path::new("/dev/null")];
        if !keep_files(read, write).context("the files of the compiler")? {
            std::fs::write(scratch.join(UNCONFINED), "")?;
        }
        drop_sockets().context("the sockets of the compiler")
    }

    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        if !self.open {
            self.confine()?;
        }
        let alone = self.words.first().is_some_and(|word| word == "alone");
        let words = &self.words[usize::from(alone)..];
        match words.split_first() {
            Some((word, rest)) if word == "cc" => {
                let compiled = mullion_driver::compile(Language::C, &Arguments::parse(rest)?)?;
                Ok(ExitCode::from(compiled.code))
            }
            Some((word, [exports, rest @ ..])) if word == "rustc" => {
                let elastic = rust::elastic::Elastic {
                    compiler: None,
                    exports: names(exports),
                    checks_depth: false,
                    alone,
                };
                Ok(rust::elastic::rustc(elastic, rest)?.into())
            }
            Some((word, [compiler, rest @ ..])) if word == "judge-rust" || word == DEEP => {
                let elastic = rust::elastic::Elastic {
                    compiler: Some(compiler.into()),
                    exports: Vec::new(),
                    checks_depth: word == DEEP,
                    alone,
                };
                Ok(rust::elastic::rustc(elastic, rest)?.into())
            }
            Some((word, [exports, output, crates @ ..])) if word == "link" => {
                let crates: Vec<PathBuf> = crates.iter().map(PathBuf::from).collect();
                rust::elastic::link(&crates, &names(exports), Path::new(output))?;
                Ok(ExitCode::SUCCESS)
            }
            Some((word, [from, to])) if word == "judge" => {
                let told: Told = serde_json::from_slice(&std::fs::read(from)?)?;
                let (_, elastic) = Elastic::parse(&told.module_type, &told.path)?;
                let elastic = elastic.context("no elastic language")?;
                let source = ProgramSource {
                    environment: told.environment,
                    program: told.program,
                    files: told.files,
                };
                let answer: Result<JudgedProgram, Vec<SourceRefusal>> = judge(&elastic, &source);
                std::fs::write(to, serde_json::to_vec(&answer)?)?;
                Ok(ExitCode::SUCCESS)
            }
            _ => Ok(ExitCode::from(2)),
        }
    }
}

/// The names in a list.
fn names(list: &OsStr) -> Vec<String> {
    let list = list.to_string_lossy();
    let names = list.split(',').filter(|name| !name.is_empty());
    names.map(str::to_owned).collect()
}

/// What became of a step.
pub(super) enum Outcome {
    Done,
    /// It ended with a status, and said this.
    Failed(String),
    /// It met a limit, or crashed.
    Lost(SourceRefusal),
}

/// Runs a step in `directory`, which may read `read` besides the compilers' files. Nothing of the environment variables decides which
/// compiler it is, or how it compiles.
pub(super) fn run(
    directory: &Path,
    read: &[PathBuf],
    words: &[OsString],
) -> anyhow::Result<Outcome> {
    let read = read
        .iter()
        .flat_map(|path| [OsString::from("--read"), path.into()]);
    let outcome = start(directory, read.collect(), words, CLOCK)?;
    static TOLD: Once = Once::new();
    if directory.join(UNCONFINED).exists() {
        TOLD.call_once(|| {
            sayln!(
                "mullion: this kernel has no Landlock: the compilers can read all that their user can"
            );
        });
    }
    Ok(outcome)
}

/// Runs a step of a text of our own, by which a compiler's library is built when it is first needed. No limit hinders that.
pub(super) fn prepare(directory: &Path, words: &[OsString]) -> anyhow::Result<Outcome> {
    start(directory, vec!["--open".into()], words, Duration::MAX)
}

fn start(
    directory: &Path,
    options: Vec<OsString>,
    words: &[OsString],
    clock: Duration,
) -> anyhow::Result<Outcome> {
    let said = directory.join("said");
    let mut command = Command::new(std::env::current_exe()?);
    command
        .arg("compile-step")
        .args(options)
        .arg("--")
        .args(words)
        .env_clear();
    for name in ["HOME", "XDG_CACHE_HOME", "RUSTUP_HOME", "MULLION_RUST"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("LC_ALL", "C")
        .env("TMPDIR", directory)
        // Where the judge of Rust finds what is forbidden.
        .env("MULLION_JUDGE", directory);
    command.current_dir(directory).process_group(0);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(&said)?);
    let mut child = command.spawn()?;
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if begin.elapsed() > clock {
            if let Ok(id) = i32::try_from(child.id())
                && let Some(group) = rustix::process::Pid::from_raw(id)
            {
                let _gone = rustix::process::kill_process_group(group, Signal::KILL);
            }
            child.wait()?;
            return Ok(Outcome::Lost(SourceRefusal::nowhere(
                Rule::Bounds,
                "a program that takes too long to compile",
            )));
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let text = std::fs::read(&said)?;
    let text = String::from_utf8_lossy(&text).into_owned();
    Ok(match status.code() {
        Some(0) => Outcome::Done,
        // gcc tells of a crash of its parts by an exit status, and rustc of its own.
        Some(code)
            if code < 128
                && code != 101
                && !text.contains("internal compiler error")
                && !text.contains("out of memory")
                && !text.contains("Killed signal") =>
        {
            Outcome::Failed(text)
        }
        _ => {
            // Without a word of the compiler's: it may quote a file that the program has named.
            Outcome::Lost(SourceRefusal::nowhere(
                Rule::Bounds,
                "a program that the compiler does not survive",
            ))
        }
    })
}
