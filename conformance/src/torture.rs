//! gcc's C torture tests: small programs that return 0 or abort.

use crate::Common;
use crate::build::{self, Outcome, Program};
use crate::expect::{self, Expectations, Line};
use crate::pool;
use anyhow::{Context, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// `conformance torture`.
#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Directory with the tests; by default they are taken out of the gcc-12-source package.
    #[arg(long)]
    tests: Option<PathBuf>,
    /// Only tests whose name contains this.
    #[arg(long, default_value = "")]
    only: String,
    /// Every nth test only (1: all), for a short run.
    #[arg(long, default_value_t = 1)]
    every: usize,
}

/// The archive that Debian's package holds.
const ARCHIVE: &str = "/usr/src/gcc-12/gcc-12.2.0-dfsg.tar.xz";

pub(crate) fn run(options: &Options) -> anyhow::Result<bool> {
    let expectations = Expectations::load()?;
    let directory = match &options.tests {
        Some(directory) => directory.clone(),
        None => unpack()?,
    };
    let tests = list(&directory, options)?;
    let work: Vec<(&PathBuf, &String)> = options
        .common
        .levels
        .iter()
        .flat_map(|level| tests.iter().map(move |test| (test, level)))
        .collect();
    let results = pool::map(&work, options.common.jobs, "torture", |(test, level)| {
        one(options, test, level)
    });
    let mut lines = Vec::new();
    for result in results {
        lines.extend(result?);
    }
    Ok(expect::report("gcc torture", &lines, &expectations))
}

/// Takes the tests out of the package's archive, once.
fn unpack() -> anyhow::Result<PathBuf> {
    let target = PathBuf::from("build/torture");
    let done = target.join("execute");
    if done.join("execute.exp").exists() {
        return Ok(done);
    }
    if !Path::new(ARCHIVE).exists() {
        bail!("{ARCHIVE} is missing: apt-get install gcc-12-source (or give --tests DIR)");
    }
    fs::create_dir_all(&target)?;
    let status = Command::new("tar")
        .args(["-xf", ARCHIVE, "--wildcards", "--strip-components=4", "-C"])
        .arg(&target)
        .arg("*/gcc/testsuite/gcc.c-torture/execute/*")
        .status()
        .context("tar")?;
    if !status.success() {
        bail!("tar could not read {ARCHIVE}");
    }
    Ok(done)
}

/// The tests' source files, in order of their names.
fn list(directory: &Path, options: &Options) -> anyhow::Result<Vec<PathBuf>> {
    let mut tests = Vec::new();
    for directory in [directory.to_owned(), directory.join("ieee")] {
        let entries = fs::read_dir(&directory).with_context(|| directory.display().to_string())?;
        for entry in entries {
            let path = entry?.path();
            if path.extension().is_some_and(|e| e == "c") && name(&path).contains(&options.only) {
                tests.push(path);
            }
        }
    }
    tests.sort();
    Ok(tests.into_iter().step_by(options.every.max(1)).collect())
}

fn name(path: &Path) -> String {
    path.file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// One test at one level, in every protection.
fn one(options: &Options, test: &Path, level: &str) -> anyhow::Result<Vec<Line>> {
    let directory = tempfile::tempdir()?;
    let flags = flags(test)?;
    let source = fs::canonicalize(test)?;
    let program = Program {
        source: &source,
        flags: &flags,
        level,
    };
    let protections = &options.common.protections;
    let limit = build::limit(&options.common);
    let outcomes = match build::native(&program, limit, directory.path())? {
        Ok(ended) if !ended.succeeded() => {
            let outcome = Outcome::NotNative(format!("status {:?}", ended.code()));
            vec![outcome; protections.len()]
        }
        Ok(ended) => build::domains(&options.common, &program, directory.path(), &ended)?,
        Err(outcome) => vec![outcome; protections.len()],
    };
    let lines = protections.iter().zip(outcomes);
    let line = |(protection, outcome): (&String, Outcome)| Line {
        test: name(test),
        level: level.to_owned(),
        protection: protection.clone(),
        outcome,
    };
    Ok(lines.map(line).collect())
}

/// The options that a test asks for in its `dg-options` and `dg-additional-options` lines, where they
/// are not for other machines. The language is gcc's older default, as the suite's driver has it.
fn flags(test: &Path) -> anyhow::Result<Vec<String>> {
    let text = String::from_utf8_lossy(&fs::read(test)?).into_owned();
    let mut flags = vec!["-std=gnu17".to_owned()];
    if test.parent().is_some_and(|parent| parent.ends_with("ieee")) {
        flags.push("-ffloat-store".to_owned());
    }
    for line in text
        .lines()
        .filter(|l| l.contains("dg-options") || l.contains("dg-additional-options"))
    {
        let mut quoted = line.split('"');
        let (Some(_), Some(options), rest) = (quoted.next(), quoted.next(), quoted.next()) else {
            continue;
        };
        let target = rest.unwrap_or_default();
        if !target.contains("target") || target.contains("x86_64") {
            flags.extend(options.split_whitespace().map(str::to_owned));
        }
    }
    Ok(flags)
}
