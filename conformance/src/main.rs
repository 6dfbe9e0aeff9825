//! Foreign test suites, run in a domain and beside it.
//!
//! `conformance torture` runs gcc's C torture tests, `conformance csmith` random programs. Every
//! program is built twice, by the plain compiler and by `mullion cc`; what the plain build prints
//! and returns is what the domain must print and return. A difference is a failure unless
//! `expectations.toml` lists it with its reason; a listed one that does not occur any more is a
//! failure too, so the list stays true.
#![forbid(unsafe_code)]

mod build;
mod csmith;
mod expect;
mod pool;
mod process;
mod torture;

use anyhow::Context;
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

/// Run test suites that others wrote, in a domain.
#[derive(Parser)]
#[command(name = "conformance", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    suite: Suite,
}

#[derive(Subcommand)]
enum Suite {
    /// gcc's C torture tests (gcc.c-torture/execute of Debian's gcc-12-source).
    Torture(torture::Options),
    /// Random programs from csmith, native against domain.
    Csmith(csmith::Options),
}

/// What every suite can be told.
#[derive(Args, Clone)]
struct Common {
    /// The `mullion` command under test.
    #[arg(long, env = "MULLION", default_value = "target/release/mullion")]
    mullion: PathBuf,
    /// Optimisation levels, by commas.
    #[arg(long, value_delimiter = ',', default_value = "O0,O1,O2,O3,Os")]
    levels: Vec<String>,
    /// Protections, by commas: write-call, read-write-call, trap.
    #[arg(long, value_delimiter = ',', default_value = "read-write-call")]
    protections: Vec<String>,
    /// Programs built and run at a time (0: one for each core).
    #[arg(long, default_value_t = 0)]
    jobs: usize,
    /// Seconds that one program may run.
    #[arg(long, default_value_t = 20)]
    seconds: u64,
}

fn main() -> ExitCode {
    match run(Cli::parse().suite) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("conformance: {error:#}");
            ExitCode::from(1)
        }
    }
}

/// Runs a suite; true if nothing unexpected came up.
fn run(mut suite: Suite) -> anyhow::Result<bool> {
    let (Suite::Torture(torture::Options { common, .. })
    | Suite::Csmith(csmith::Options { common, .. })) = &mut suite;
    // Programs run in directories of their own, from where a relative path would not lead back.
    common.mullion = std::fs::canonicalize(&common.mullion)
        .with_context(|| format!("{} (build it, or give --mullion)", common.mullion.display()))?;
    match suite {
        Suite::Torture(options) => torture::run(&options),
        Suite::Csmith(options) => csmith::run(&options),
    }
}
