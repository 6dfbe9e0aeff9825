//! Building one program natively and for a domain, running both, and comparing.

use crate::Common;
use crate::process::{self, Ended};
use anyhow::Context;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// One program to build and compare.
pub(crate) struct Program<'a> {
    pub(crate) sources: &'a [PathBuf],
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

/// Builds `program` natively in `directory` and runs it; what it did is the measure.
pub(crate) fn native(
    common: &Common,
    program: &Program<'_>,
    directory: &Path,
) -> anyhow::Result<Result<Ended, Outcome>> {
    let output = directory.join("native");
    let mut command = Command::new("gcc");
    arguments(&mut command, program, &output);
    let built = process::run(&mut command, Duration::from_secs(120)).context("gcc")?;
    if !built.succeeded() {
        return Ok(Err(Outcome::NotNative(built.tail(3))));
    }
    let ran = process::run(Command::new(&output).current_dir(directory), limit(common))?;
    Ok(match ran.code() {
        Some(_) => Ok(ran),
        None => Err(Outcome::NotNative(
            "the native program was killed".to_owned(),
        )),
    })
}

/// Builds `program` for a domain, runs it, and compares it with what `native` did.
pub(crate) fn domain(
    common: &Common,
    program: &Program<'_>,
    protection: &str,
    directory: &Path,
    native: &Ended,
) -> anyhow::Result<Outcome> {
    let output = directory.join(format!("{protection}.mx"));
    let mut command = Command::new(&common.mullion);
    command
        .arg("cc")
        .arg(format!("--mullion-protection={protection}"));
    arguments(&mut command, program, &output);
    let built = process::run(&mut command, Duration::from_secs(120)).context("mullion cc")?;
    if !built.succeeded() {
        return Ok(Outcome::NotBuilt(built.tail(4)));
    }
    let mut command = Command::new(&common.mullion);
    command
        .arg("run")
        .arg("--max-time")
        .arg(format!("{}s", common.seconds))
        .arg("--dir")
        .arg(format!("{}::/tmp", directory.display()))
        .arg(&output);
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

fn arguments(command: &mut Command, program: &Program<'_>, output: &Path) {
    command
        .arg(format!("-{}", program.level))
        .arg("-w")
        .args(program.flags);
    command
        .args(program.sources)
        .arg("-lm")
        .arg("-o")
        .arg(output);
}

fn limit(common: &Common) -> Duration {
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
