//! `conformance rust`: ten crates from crates.io, unmodified, natively and in a domain.
//!
//! `conformance/rust` is a program with one hot loop for each. Cargo fetches the crates, which
//! `Cargo.lock` pins with their checksums. Both builds are by the same rustc with the same profile.
//! What the domain prints must be what the native program prints; the table has the times of both.

use crate::Tested;
use crate::process::{self, Ended};
use anyhow::{Context, bail};
use clap::Args;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// What `conformance rust` can be told.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    pub(crate) tested: Tested,
    /// The package with the ten crates.
    #[arg(long, default_value = "conformance/rust")]
    package: PathBuf,
    /// Where it is built.
    #[arg(long, default_value = "build/rust")]
    directory: PathBuf,
    /// Rounds; each runs every crate on both sides, one side after the other.
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// Runs of a crate in a round; the fastest counts.
    #[arg(long, default_value_t = 50)]
    runs: u32,
    /// The release of rustc, by rustup, for the native side.
    #[arg(long, default_value = mullion_driver::rust::RELEASE)]
    release: String,
}

/// Builds, runs, compares and prints the table; false if something differed.
pub(crate) fn run(options: &Options) -> anyhow::Result<bool> {
    let directory = std::path::absolute(&options.directory)?;
    let (native, walled) = (directory.join("native"), directory.join("walled"));
    let mut cargo = Command::new("cargo");
    cargo.env("RUSTUP_TOOLCHAIN", &options.release).arg("build");
    build(&mut cargo, options, &native)?;
    let mut mullion = Command::new(&options.tested.mullion);
    mullion.args(["cargo", "build"]);
    build(&mut mullion, options, &walled)?;
    let native = native.join("release/ten-crates");
    let walled = walled.join(format!(
        "{}/release/ten-crates",
        mullion_driver::rust::TARGET
    ));
    let listed = ended(&mut Command::new(&native))?;
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let names: Vec<&str> = listed.lines().collect();
    let mut best = vec![[u64::MAX; 2]; names.len()];
    let mut same = true;
    for _ in 0..options.rounds {
        for (name, best) in names.iter().zip(&mut best) {
            let runs = options.runs.to_string();
            let plain = ended(Command::new(&native).args([name, runs.as_str()]))?;
            let mut command = Command::new(&options.tested.mullion);
            command.args(["run", "--clock", "--"]).arg(&walled);
            let confined = ended(command.args([name, runs.as_str()]))?;
            if plain.stdout != confined.stdout {
                same = false;
                eprintln!(
                    "{name}: natively {}in a domain {}",
                    String::from_utf8_lossy(&plain.stdout),
                    String::from_utf8_lossy(&confined.stdout)
                );
            }
            for (best, ended) in best.iter_mut().zip([plain, confined]) {
                *best = (*best).min(time(name, &ended)?);
            }
        }
    }
    print!("{}", table(&names, &best));
    Ok(same)
}

fn build(command: &mut Command, options: &Options, target: &Path) -> anyhow::Result<()> {
    let command = command
        .args(["--release", "--locked", "--manifest-path"])
        .arg(options.package.join("Cargo.toml"))
        .env("CARGO_TARGET_DIR", target);
    let status = command.status();
    let status =
        status.with_context(|| format!("{} cannot be started", command.get_program().display()))?;
    match status.success() {
        true => Ok(()),
        false => bail!("the crates were not built"),
    }
}

/// Runs a program that must succeed.
fn ended(command: &mut Command) -> anyhow::Result<Ended> {
    let ended = process::run(command, LONGEST)?;
    match ended.succeeded() {
        true => Ok(ended),
        false => bail!("{}: {}", command.get_program().display(), ended.tail(5)),
    }
}

const LONGEST: Duration = Duration::from_secs(600);

/// The nanoseconds that a run says it took.
fn time(name: &str, ended: &Ended) -> anyhow::Result<u64> {
    let last = ended.stderr.lines().last().unwrap_or_default();
    last.parse()
        .with_context(|| format!("{name} says {last:?} for its time"))
}

/// A row for each crate, and the geometric mean.
fn table(names: &[&str], best: &[[u64; 2]]) -> String {
    let mut text = String::from(
        "| crate | native, µs | walled, µs | walled / native |\n| --- | --- | --- | --- |\n",
    );
    let mut logarithms = 0.0;
    for (name, [native, walled]) in names.iter().zip(best) {
        let (native, walled) = (*native as f64 / 1000.0, *walled as f64 / 1000.0);
        let ratio = walled / native;
        logarithms += ratio.ln();
        text.push_str(&format!(
            "| {name} | {native:.0} | {walled:.0} | {ratio:.3} |\n"
        ));
    }
    let mean = (logarithms / names.len().max(1) as f64).exp();
    text.push_str(&format!("| geometric mean | | | {mean:.3} |\n"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_ends_with_the_geometric_mean() {
        let text = table(&["a", "b"], &[[100_000, 400_000], [200_000, 200_000]]);
        assert!(text.contains("| a | 100 | 400 | 4.000 |\n| b | 200 | 200 | 1.000 |"));
        assert!(text.ends_with("| geometric mean | | | 2.000 |\n"));
    }
}
