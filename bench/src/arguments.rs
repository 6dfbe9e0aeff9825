//! The command line.

use crate::column::Column;
use crate::crossing::{Peer, Question, Selection};
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

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
    /// Run these workloads or groups only, `crossings`, or one group of them as
    /// `crossings.call` (repeat, or separate by commas).
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    pub(crate) only: Vec<String>,
    /// Measure these columns; native code always is [default: all but the controls, `register` and `counted`].
    #[arg(long, value_delimiter = ',', value_name = "COLUMN", value_parser = column_name)]
    pub(crate) columns: Vec<Column>,
    /// Crossings with so many domains alive only [default: all three].
    #[arg(long, value_delimiter = ',', value_name = "1|100|10000", value_parser = population)]
    pub(crate) domains: Vec<u64>,
    /// Crossings of these peers only [default: all].
    #[arg(long, value_delimiter = ',', value_name = "PEER")]
    pub(crate) peers: Vec<Peer>,
    /// Measure the control columns as well: native code with fewer registers, and with musl.
    #[arg(long)]
    pub(crate) controls: bool,
    /// Rounds: in each every workload has its turns [default: 7, with --quick 3].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) rounds: Option<u64>,
    /// Turns of a workload in a round: each runs it once in every column [default: 5, with --quick 3].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) turns: Option<u64>,
    /// Calibrate native runs to this many seconds [default: 0.06, with --quick 0.03].
    #[arg(long, value_name = "SECONDS")]
    pub(crate) seconds: Option<f64>,
    /// Let native and walled code lie so many times 16 bytes further on, to tell what a wall
    /// costs from where code happens to lie in its cache lines.
    #[arg(long, value_name = "0..3", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=3))]
    pub(crate) place: u8,
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
    /// What of the table "crossings" was asked for; `None`: nothing.
    pub(crate) fn crossings(&self) -> Option<Selection<'_>> {
        let named: Vec<&str> = self
            .only
            .iter()
            .filter_map(|name| crossings(name))
            .collect();
        let all = self.only.is_empty() || named.contains(&"");
        (all || !named.is_empty()).then(|| Selection {
            groups: if all { Vec::new() } else { named },
            peers: &self.peers,
            domains: &self.domains,
        })
    }

    /// The workloads and groups that were asked for; `None`: none of them.
    pub(crate) fn workloads(&self) -> Option<Vec<String>> {
        let names = self.only.iter().filter(|name| crossings(name).is_none());
        let names: Vec<String> = names.cloned().collect();
        (self.only.is_empty() || !names.is_empty()).then_some(names)
    }

    /// Whether this column was asked for, expressly or by default.
    pub(crate) fn wants(&self, column: Column) -> bool {
        let by_default = self.columns.is_empty() && !column.is_control() && !column.is_by_name();
        let control = self.controls && column.is_control();
        column == Column::Native || by_default || control || self.columns.contains(&column)
    }
}

/// The group of `crossings.GROUP`, nothing for all of `crossings`; `None`: a workload.
fn crossings(name: &str) -> Option<&str> {
    let rest = name.strip_prefix("crossings")?;
    if rest.is_empty() {
        Some(rest)
    } else {
        rest.strip_prefix('.')
    }
}

fn population(number: &str) -> Result<u64, String> {
    match number {
        "1" => Ok(1),
        "100" => Ok(100),
        "10000" => Ok(10_000),
        _ => Err("there are populations of 1, 100 and 10000".to_owned()),
    }
}

fn column_name(name: &str) -> Result<Column, String> {
    let all: Vec<&str> = Column::ALL.iter().map(|c| c.name()).collect();
    Column::by_name(name).ok_or_else(|| format!("the columns are {}", all.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &[&str]) -> Arguments {
        Arguments::parse_from([&["mullion-bench"], line].concat())
    }

    #[test]
    fn crossings_are_one_more_name_of_only() {
        let all = parsed(&[]);
        assert!(all.crossings().unwrap().groups.is_empty());
        assert_eq!(all.workloads(), Some(Vec::new()));
        let both = parsed(&["--only", "fib,crossings.call"]);
        assert_eq!(both.crossings().unwrap().groups, ["call"]);
        assert_eq!(both.workloads(), Some(vec!["fib".to_owned()]));
        let neither = parsed(&["--only", "fib"]);
        assert!(neither.crossings().is_none());
        let alone = parsed(&["--only", "crossings"]);
        assert!(alone.crossings().unwrap().groups.is_empty());
        assert_eq!(alone.workloads(), None);
    }
}
