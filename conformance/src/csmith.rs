//! Random programs from csmith: each prints a checksum of all it computed.

use crate::Common;
use crate::build::{self, Outcome, Program};
use crate::pool;
use anyhow::{Context, bail};
use std::fs;
use std::process::Command;

/// `conformance csmith`.
#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    pub(crate) common: Common,
    /// How many programs.
    #[arg(long, default_value_t = 200)]
    count: u64,
    /// The first program's seed; the others follow it.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Where Debian's package has the header that the programs include.
const INCLUDE: &str = "-I/usr/include/csmith";

pub(crate) fn run(options: &Options) -> anyhow::Result<bool> {
    let seeds: Vec<u64> = (options.seed..options.seed + options.count).collect();
    let results = pool::map(&seeds, options.common.jobs, "csmith", |seed| {
        one(options, *seed)
    });
    let (mut compared, mut failed, mut skipped) = (0, 0, 0);
    for (seed, result) in seeds.iter().zip(results) {
        for (what, outcome) in result? {
            match outcome {
                Outcome::Pass => compared += 1,
                Outcome::NotNative(_) => skipped += 1,
                other => {
                    failed += 1;
                    println!(
                        "DIFFERS seed {seed} {what}\n    {}",
                        other.to_string().replace('\n', "\n    ")
                    );
                }
            }
        }
    }
    println!(
        "csmith: {} programs; skipped are those that do not end natively in time",
        seeds.len()
    );
    println!("{compared} passed, {failed} failed, {skipped} skipped");
    Ok(failed == 0)
}

/// One program at every level in every protection.
fn one(options: &Options, seed: u64) -> anyhow::Result<Vec<(String, Outcome)>> {
    let directory = tempfile::tempdir()?;
    let source = directory.path().join("program.c");
    let made = Command::new("csmith")
        .args(["--seed", &seed.to_string(), "--output"])
        .arg(&source)
        .current_dir(directory.path())
        .status()
        .context("csmith is missing: apt-get install csmith libcsmith-dev")?;
    if !made.success() || !fs::exists(&source)? {
        bail!("csmith --seed {seed} made no program");
    }
    let sources = [source];
    let flags = [INCLUDE.to_owned()];
    let mut outcomes = Vec::new();
    for level in &options.common.levels {
        let program = Program {
            sources: &sources,
            flags: &flags,
            level,
        };
        let native = build::native(&options.common, &program, directory.path())?;
        for protection in &options.common.protections {
            let outcome = match &native {
                Ok(ended) => build::domain(
                    &options.common,
                    &program,
                    protection,
                    directory.path(),
                    ended,
                )?,
                Err(outcome) => outcome.clone(),
            };
            outcomes.push((format!("-{level} {protection}"), outcome));
        }
    }
    Ok(outcomes)
}
