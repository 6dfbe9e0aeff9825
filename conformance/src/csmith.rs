//! Random programs from csmith: each prints a checksum of all it computed.

use crate::Common;
use crate::build::{self, Outcome, Program};
use crate::pool;
use crate::progress::{self, Progress, Verdict};
use anyhow::{Context, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// `conformance csmith`.
#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    pub(crate) common: Common,
    /// How many programs to compare; those that are skipped do not count.
    #[arg(long, default_value_t = 200)]
    count: usize,
    /// The first program's seed; the others follow it.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Seconds that a program may run natively; one that takes longer is skipped.
    #[arg(long, default_value_t = 2)]
    native_seconds: u64,
    /// Keeps each seed's result in this file, and does not run again what it holds (of the same build of
    /// `mullion`, levels and protections).
    #[arg(long)]
    state: Option<PathBuf>,
}

/// Where Debian's package has the header that the programs include.
const INCLUDE: &str = "-I/usr/include/csmith";

/// Smaller than csmith's own defaults: more programs in the same time find more than larger ones do.
const SHAPE: &[&str] = &[
    "--max-funcs",
    "6",
    "--max-block-depth",
    "4",
    "--max-array-len-per-dim",
    "6",
];

pub(crate) fn run(options: &Options) -> anyhow::Result<bool> {
    let progress = match &options.state {
        Some(file) => Progress::open(file, &identity(options)?)?,
        None => Progress::default(),
    };
    let (mut next, mut compared, mut skipped) = (options.seed, 0, 0);
    let mut different = Vec::new();
    while compared < options.count {
        let seeds: Vec<u64> = (next..).take(options.count - compared).collect();
        next += seeds.len() as u64;
        let verdicts = pool::map(&seeds, options.common.jobs, "csmith", |seed| match progress
            .get(&seed.to_string())
        {
            Some(verdict) => Ok(verdict),
            None => progress.keep(&seed.to_string(), one(options, *seed)?),
        });
        for (seed, verdict) in seeds.into_iter().zip(verdicts) {
            match verdict? {
                Verdict::Same => compared += 1,
                Verdict::Skipped => skipped += 1,
                Verdict::Different(what) => {
                    compared += 1;
                    println!("DIFFERS seed {seed} {}", what.replace('\n', "\n    "));
                    different.push(seed);
                }
            }
        }
        if skipped > 20 + 10 * options.count {
            bail!("{skipped} programs are too slow natively; give --native-seconds");
        }
    }
    let ways = options.common.levels.len() * options.common.protections.len();
    println!(
        "csmith: seeds {} to {}: {compared} programs compared, each in {ways} builds ({} in {}); {skipped} skipped, \
         which run longer than {} s natively",
        options.seed,
        next - 1,
        options.common.levels.join(", "),
        options.common.protections.join(", "),
        options.native_seconds,
    );
    let failed = different.len();
    println!(
        "{} passed, {failed} failed, {skipped} skipped",
        compared - failed
    );
    Ok(failed == 0)
}

/// What results depend on: the command under test, and how it is asked.
fn identity(options: &Options) -> anyhow::Result<String> {
    progress::identity(&options.common, (SHAPE, options.native_seconds))
}

/// One program at every level in every protection.
fn one(options: &Options, seed: u64) -> anyhow::Result<Verdict> {
    let directory = tempfile::tempdir()?;
    let source = generate(seed, directory.path())?;
    let flags = [INCLUDE.to_owned()];
    let limit = Duration::from_secs(options.native_seconds);
    let mut different = Vec::new();
    for level in &options.common.levels {
        let program = Program {
            source: &source,
            flags: &flags,
            level,
        };
        let Ok(native) = build::native(&program, limit, directory.path())? else {
            return Ok(Verdict::Skipped);
        };
        let outcomes = build::domains(&options.common, &program, directory.path(), &native)?;
        for (protection, outcome) in options.common.protections.iter().zip(outcomes) {
            if outcome != Outcome::Pass {
                different.push(format!("-{level} {protection}\n{outcome}"));
            }
        }
    }
    Ok(if different.is_empty() {
        Verdict::Same
    } else {
        Verdict::Different(different.join("\n"))
    })
}

/// Has csmith write the program of a seed.
fn generate(seed: u64, directory: &Path) -> anyhow::Result<PathBuf> {
    let source = directory.join("program.c");
    let made = Command::new("csmith")
        .args(SHAPE)
        .args(["--seed", &seed.to_string(), "--output"])
        .arg(&source)
        .current_dir(directory)
        .status()
        .context("csmith is missing: apt-get install csmith libcsmith-dev")?;
    if !made.success() || !fs::exists(&source)? {
        bail!("csmith --seed {seed} made no program");
    }
    Ok(source)
}
