//! The command line.

use crate::column::Column;
use crate::crossing::Question;
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// What stands for the table of that name among the workloads.
const CROSSINGS: &str = "crossings";

/// Measure what each wall costs, beside native code and WebAssembly.
///
/// Every workload is built natively (gcc -O2, the 1.0), with `mullion cc` in three protection
/// modes, for wasmtime and for wasm2c. All must compute the same. A peer that is not installed
/// is named and left out; set MULLION_BENCH_REQUIRE_PEERS to make that a failure.
///
/// Beside the workloads there is the table "crossings": what a call into a domain and out of
/// it costs, and what making, restarting and sharing cost, with 1, 100 and 10,000 domains
/// alive, beside plain calls, system calls, other processes and wasmtime. `--only crossings`
/// measures it alone, in about a minute.
///
/// Exits 0, or 1 if anything could not be built or computed something else.
#[derive(Parser)]
#[command(version, args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    /// Fewer rounds of shorter runs: a first impression in about three minutes.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Run these workloads or groups only, or `crossings` (repeat, or separate by commas).
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    pub(crate) only: Vec<String>,
    /// Measure these columns; native code always is [default: all but the controls].
    #[arg(long, value_delimiter = ',', value_name = "COLUMN", value_parser = column_name)]
    pub(crate) columns: Vec<Column>,
    /// Measure the control columns as well: native code with fewer registers, and with musl.
    #[arg(long)]
    pub(crate) controls: bool,
    /// Rounds: each runs every workload once in every column [default: 7, with --quick 3].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) rounds: Option<u64>,
    /// Calibrate native runs to this many seconds [default: 0.3, with --quick 0.1].
    #[arg(long, value_name = "SECONDS")]
    pub(crate) seconds: Option<f64>,
    /// Write all numbers to this file as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write a page with plots to this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Stay on this processor while measuring [default: the last one allowed].
    #[arg(long, value_name = "NUMBER")]
    pub(crate) cpu: Option<usize>,
    /// Builds at the same time [default: one for each processor].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=256))]
    pub(crate) jobs: Option<u64>,
    /// Only show the workloads and columns.
    #[arg(long)]
    pub(crate) list: bool,
    /// Only build what would be measured.
    #[arg(long)]
    pub(crate) build_only: bool,
    /// The `mullion` command [default: beside this program].
    #[arg(long, value_name = "FILE")]
    pub(crate) mullion: Option<PathBuf>,
    /// Where workloads and peers lie.
    #[arg(long, value_name = "DIR", default_value = "bench")]
    pub(crate) bench: PathBuf,
    /// Where built programs go.
    #[arg(long, value_name = "DIR", default_value = "build/bench")]
    pub(crate) build: PathBuf,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Show the results of a run again, from its JSON.
    Report(Report),
    /// Be a peer of the table "crossings".
    #[command(hide = true)]
    Answer(Question),
}

#[derive(Args)]
pub(crate) struct Report {
    /// What `--json` has written.
    pub(crate) results: PathBuf,
    /// The tables of docs/benchmarks.md instead of the terminal's.
    #[arg(long)]
    pub(crate) markdown: bool,
    /// Write the page with plots to this file as well.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

impl Arguments {
    /// Whether the table "crossings" was asked for.
    pub(crate) fn wants_crossings(&self) -> bool {
        self.only.is_empty() || self.only.iter().any(|name| name == CROSSINGS)
    }

    /// The workloads and groups that were asked for; `None`: none of them.
    pub(crate) fn workloads(&self) -> Option<Vec<String>> {
        let names: Vec<String> = self
            .only
            .iter()
            .filter(|name| *name != CROSSINGS)
            .cloned()
            .collect();
        (self.only.is_empty() || !names.is_empty()).then_some(names)
    }

    /// Whether this column was asked for, expressly or by default.
    pub(crate) fn wants(&self, column: Column) -> bool {
        let by_default = self.columns.is_empty() && !column.is_control();
        let control = self.controls && column.is_control();
        column == Column::Native || by_default || control || self.columns.contains(&column)
    }
}

fn column_name(name: &str) -> Result<Column, String> {
    let all: Vec<&str> = Column::ALL.iter().map(|c| c.name()).collect();
    Column::by_name(name).ok_or_else(|| format!("the columns are {}", all.join(", ")))
}
