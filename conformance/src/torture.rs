//! gcc's C torture tests: small programs that return 0 or abort.

use crate::Common;
use crate::build::{self, Outcome, Program};
use crate::expect::{self, Expectations, Line};
use crate::pool;
use crate::progress::{self, Progress, Verdict};
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
    /// Keeps what has passed in this file, and does not run it again (with the same build of `mullion`, levels
    /// and protections); the rest is looked at again.
    #[arg(long)]
    state: Option<PathBuf>,
}

/// Where the package puts its archive, `gcc-12.N.N.tar.xz` (Debian's name has `-dfsg` in it).
const PACKAGE: &str = "/usr/src/gcc-12";

pub(crate) fn run(options: &Options) -> anyhow::Result<bool> {
    let expectations = Expectations::load()?;
    let directory = match &options.tests {
        Some(directory) => directory.clone(),
        None => unpack()?,
    };
    let tests = list(&directory, options)?;
    let progress = match &options.state {
        Some(file) => Progress::open(file, &progress::identity(&options.common, "torture")?)?,
        None => Progress::default(),
    };
    let work: Vec<(&PathBuf, &String)> = options
        .common
        .levels
        .iter()
        .flat_map(|level| tests.iter().map(move |test| (test, level)))
        .collect();
    let results = pool::map(&work, options.common.jobs, "torture", |(test, level)| {
        remembered(options, &progress, test, level)
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
    let archive = archive().with_context(|| {
        format!("no archive in {PACKAGE}: apt-get install gcc-12-source (or give --tests DIR)")
    })?;
    fs::create_dir_all(&target)?;
    let status = Command::new("tar")
        .arg("-xf")
        .arg(&archive)
        .args(["--wildcards", "--strip-components=4", "-C"])
        .arg(&target)
        .arg("*/gcc/testsuite/gcc.c-torture/execute/*")
        .status()
        .context("tar")?;
    if !status.success() {
        bail!("tar could not read {}", archive.display());
    }
    Ok(done)
}

/// The archive that the package holds.
fn archive() -> Option<PathBuf> {
    let named = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("gcc-12.") && name.ends_with(".tar.xz")
    };
    fs::read_dir(PACKAGE)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(named)
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

/// [`one`], unless it is known to pass.
fn remembered(
    options: &Options,
    progress: &Progress,
    test: &Path,
    level: &str,
) -> anyhow::Result<Vec<Line>> {
    let folder = test.parent().and_then(Path::file_name).unwrap_or_default();
    let key = format!("{}/{} {level}", folder.display(), name(test));
    if progress.get(&key) == Some(Verdict::Same) {
        let passed = |protection: &String| Line {
            test: name(test),
            level: level.to_owned(),
            protection: protection.clone(),
            outcome: Outcome::Pass,
        };
        return Ok(options.common.protections.iter().map(passed).collect());
    }
    let lines = one(options, test, level)?;
    if lines.iter().all(|line| line.outcome == Outcome::Pass) {
        progress.keep(&key, Verdict::Same)?;
    }
    Ok(lines)
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
