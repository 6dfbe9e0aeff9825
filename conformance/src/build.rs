//! Building one program natively and for a domain, running both, and comparing.

use crate::Common;
use crate::process::{self, Ended};
use anyhow::Context;
use std::fmt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// One program to build and compare.
pub(crate) struct Program<'a> {
    pub(crate) source: &'a Path,
    pub(crate) flags: &'a [String],
    pub(crate) level: &'a str,
}

/// What came of one program in one protection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Same output and status as natively.
    Pass,
    /// The plain compiler cannot build it here, or its program fails natively: nothing to compare.
    NotNative(String),
    /// `mullion cc` did not build it.
    NotBuilt(String),
    /// The verifier or loader refused the image.
    Refused(String),
    /// It faulted in its domain (an `abort` is a fault too).
    Fault(String),
    /// It took too long.
    Slow,
    /// It ended by itself, with another status or other output than natively.
    Wrong(String),
}

impl Outcome {
    /// The word that `expectations.toml` uses.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Outcome::Pass => "pass",
            Outcome::NotNative(_) => "not-native",
            Outcome::NotBuilt(_) => "not-built",
            Outcome::Refused(_) => "refused",
            Outcome::Fault(_) => "fault",
            Outcome::Slow => "slow",
            Outcome::Wrong(_) => "wrong",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind())?;
        match self {
            Outcome::NotNative(text)
            | Outcome::NotBuilt(text)
            | Outcome::Refused(text)
            | Outcome::Fault(text)
            | Outcome::Wrong(text) => write!(f, ": {text}"),
            Outcome::Pass | Outcome::Slow => Ok(()),
        }
    }
}

/// How long a build may take.
const BUILD: Duration = Duration::from_secs(120);

/// Builds `program` natively in `directory` and runs it for at most `limit`; what it did is the measure.
pub(crate) fn native(
    program: &Program<'_>,
    limit: Duration,
    directory: &Path,
) -> anyhow::Result<Result<Ended, Outcome>> {
    let output = directory.join("native");
    let mut command = Command::new("gcc");
    arguments(&mut command, program);
    command
        .arg(program.source)
        .arg("-lm")
        .arg("-o")
        .arg(&output);
    let built = process::run(&mut command, BUILD).context("gcc")?;
    if !built.succeeded() {
        return Ok(Err(Outcome::NotNative(built.tail(3))));
    }
    let ran = process::run(Command::new(&output).current_dir(directory), limit)?;
    Ok(match ran.code() {
        Some(_) => Ok(ran),
        None => Err(Outcome::NotNative(
            "the native program was killed".to_owned(),
        )),
    })
}

/// Builds `program` for a domain in every protection, runs it, and compares it with what `native` did.
/// The compiler proper runs once: protections differ only from the assembler on.
pub(crate) fn domains(
    common: &Common,
    program: &Program<'_>,
    directory: &Path,
    native: &Ended,
) -> anyhow::Result<Vec<Outcome>> {
    let mut texts: [Option<Ended>; 2] = [None, None];
    let mut outcomes = Vec::new();
    for protection in &common.protections {
        let word = word_protection(protection);
        let text = directory.join(match word {
            Some(_) => "word.s",
            None => "program.s",
        });
        let compiled = match &mut texts[usize::from(word.is_some())] {
            Some(compiled) => compiled,
            none => none.insert(compile(common, program, word.is_some(), &text)?),
        };
        outcomes.push(match (compiled.succeeded(), word) {
            (false, _) => Outcome::NotBuilt(compiled.tail(4)),
            (true, None) => domain(common, &text, protection, directory, native)?,
            (true, Some(word)) => module(common, &text, word, directory, native)?,
        });
    }
    Ok(outcomes)
}

/// What is checked, if the protection is one of the word wall.
fn word_protection(protection: &str) -> Option<&str> {
    protection.strip_prefix("word-")
}

/// The compiler proper, for one wall.
fn compile(
    common: &Common,
    program: &Program<'_>,
    word: bool,
    text: &Path,
) -> anyhow::Result<Ended> {
    let mut command = Command::new(&common.tested.mullion);
    command.arg("cc").args(word.then_some("--wall=word"));
    arguments(&mut command, program);
    command.arg("-S").arg(program.source).arg("-o").arg(text);
    process::run(&mut command, BUILD).context("mullion cc")
}

/// As [`domain`], behind the word wall: the host is `word-host`, beside `mullion`.
fn module(
    common: &Common,
    text: &Path,
    protection: &str,
    directory: &Path,
    native: &Ended,
) -> anyhow::Result<Outcome> {
    let output = directory.join(format!("{protection}.so"));
    let mut command = Command::new(&common.tested.mullion);
    command
        .args(["cc", "--wall=word"])
        .arg(format!("--protection={protection}"))
        .arg(text)
        .arg("-o")
        .arg(&output);
    let built = process::run(&mut command, BUILD).context("mullion cc")?;
    if !built.succeeded() {
        return Ok(Outcome::NotBuilt(built.tail(4)));
    }
    let mut command = Command::new(common.tested.mullion.with_file_name("word-host"));
    command
        .args(["--seconds", &common.seconds.to_string()])
        .arg(&output);
    compare(common, &mut command, directory, native)
}

/// Assembles and links `text` in one protection, runs it, and compares.
fn domain(
    common: &Common,
    text: &Path,
    protection: &str,
    directory: &Path,
    native: &Ended,
) -> anyhow::Result<Outcome> {
    let output = directory.join(format!("{protection}.mx"));
    let mut command = Command::new(&common.tested.mullion);
    command
        .arg("cc")
        .arg(format!("--mullion-protection={protection}"))
        .arg(format!("--mullion-base={}", common.base))
        .arg(text)
        .arg("-lm")
        .arg("-o")
        .arg(&output);
    let built = process::run(&mut command, BUILD).context("mullion cc")?;
    if !built.succeeded() {
        return Ok(Outcome::NotBuilt(built.tail(4)));
    }
    let mut command = Command::new(&common.tested.mullion);
    command
        .arg("run")
        .arg("--max-time")
        .arg(format!("{}s", common.seconds))
        .arg("--dir")
        .arg(format!("{}::/tmp", directory.display()))
        .arg(&output);
    compare(common, &mut command, directory, native)
}

/// Runs what was built, and compares it with what the native program did.
fn compare(
    common: &Common,
    command: &mut Command,
    directory: &Path,
    native: &Ended,
) -> anyhow::Result<Outcome> {
    let ran = process::run(
        command.current_dir(directory),
        limit(common) + Duration::from_secs(5),
    )?;
    Ok(match ran.code() {
        Some(126) => Outcome::Refused(ran.tail(4)),
        Some(125) => Outcome::Fault(ran.tail(12)),
        Some(124) | None => Outcome::Slow,
        code if code != native.code() => {
            Outcome::Wrong(format!("status {code:?}, natively {:?}", native.code()))
        }
        _ if ran.stdout != native.stdout && is_steady(common, directory, native)? => {
            Outcome::Wrong(difference(&native.stdout, &ran.stdout))
        }
        _ => Outcome::Pass,
    })
}

/// Whether the native program prints the same again: one that prints addresses does not, and then its
/// status alone is compared.
fn is_steady(common: &Common, directory: &Path, native: &Ended) -> anyhow::Result<bool> {
    let mut again = Command::new(directory.join("native"));
    let again = process::run(again.current_dir(directory), limit(common))?;
    Ok(again.stdout == native.stdout)
}

fn arguments(command: &mut Command, program: &Program<'_>) {
    command
        .arg(format!("-{}", program.level))
        .arg("-w")
        .args(program.flags);
}

/// How long a program may run.
pub(crate) fn limit(common: &Common) -> Duration {
    Duration::from_secs(common.seconds)
}

/// The first line in which two outputs differ.
fn difference(native: &[u8], domain: &[u8]) -> String {
    let (native, domain) = (
        String::from_utf8_lossy(native),
        String::from_utf8_lossy(domain),
    );
    let (mut left, mut right) = (native.lines(), domain.lines());
    for number in 1.. {
        match (left.next(), right.next()) {
            (None, None) => break,
            (a, b) if a != b => {
                let show = |line: Option<&str>| line.unwrap_or("<end>").to_owned();
                return format!(
                    "line {number}: natively {:?}, in the domain {:?}",
                    show(a),
                    show(b)
                );
            }
            _ => {}
        }
    }
    "outputs differ in their line ends".to_owned()
}
