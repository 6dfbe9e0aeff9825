//! Foreign test suites, run in a domain and beside it.
//!
//! `conformance torture` runs gcc's C torture tests, `conformance csmith` random programs. Every
//! program is built twice, by the plain compiler and by `mullion cc`. What the plain build prints
//! and returns is what the domain must print and return. A difference is a failure unless
//! `expectations.toml` lists it with its reason. A listed one that does not occur any more is a
//! failure too, so the list stays true. `conformance suites` builds real libraries by their own build
//! systems and runs their own tests, which know what is right. `conformance crates` does that with crates of Rust.
#![forbid(unsafe_code)]

mod build;
mod crates;
mod csmith;
mod expect;
mod libstdcxx;
mod pool;
mod process;
mod progress;
mod rust;
mod suites;
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
    /// Test suites of real libraries, built by their own build systems.
    Suites(suites::Options),
    /// libstdc++'s own tests, from gcc's sources.
    Libstdcxx(libstdcxx::Options),
    /// Ten crates from crates.io, built and timed natively and in a domain.
    Rust(rust::Options),
    /// The own tests of those crates, natively and in a domain.
    Crates(crates::Options),
}

/// What is tested.
#[derive(Args, Clone)]
struct Tested {
    /// The `mullion` command under test; by default the one beside this program.
    #[arg(long, env = "MULLION", default_value_os_t = beside_this_program("mullion"))]
    mullion: PathBuf,
}

/// What a comparison with native programs can be told.
#[derive(Args, Clone)]
struct Common {
    #[command(flatten)]
    tested: Tested,
    /// Optimisation levels, by commas.
    #[arg(long, value_delimiter = ',', default_value = "O0,O1,O2,O3,Os")]
    levels: Vec<String>,
    /// Protections, by commas: write-call, read-write-call, trap; word-write and word-read-write for the word wall.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "write-call,read-write-call,trap"
    )]
    protections: Vec<String>,
    /// How memory is reached: segment, or register (without `%gs`).
    #[arg(long, default_value = "segment")]
    base: String,
    /// Programs built and run at a time (0: one for each core).
    #[arg(long, default_value_t = 0)]
    jobs: usize,
    /// Seconds that one program may run.
    #[arg(long, default_value_t = 20)]
    seconds: u64,
}

/// A program that was built with this one, in the same profile.
fn beside_this_program(name: &str) -> PathBuf {
    std::env::current_exe()
        .map(|program| program.with_file_name(name))
        .unwrap_or_else(|_| name.into())
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
    let tested = match &mut suite {
        Suite::Torture(options) => &mut options.common.tested,
        Suite::Csmith(options) => &mut options.common.tested,
        Suite::Suites(options) => &mut options.tested,
        Suite::Libstdcxx(options) => &mut options.tested,
        Suite::Rust(options) => &mut options.tested,
        Suite::Crates(options) => &mut options.tested,
    };
    // Programs run in directories of their own, from where a relative path would not lead back.
    tested.mullion = std::fs::canonicalize(&tested.mullion)
        .with_context(|| format!("{} (build it, or give --mullion)", tested.mullion.display()))?;
    match suite {
        Suite::Torture(options) => torture::run(&options),
        Suite::Csmith(options) => csmith::run(&options),
        Suite::Suites(options) => suites::run(&options),
        Suite::Libstdcxx(options) => libstdcxx::run(&options),
        Suite::Rust(options) => rust::run(&options),
        Suite::Crates(options) => crates::run(&options),
    }
}
