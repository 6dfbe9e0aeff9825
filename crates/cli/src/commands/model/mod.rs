//! `mullion model`: the Mondriaan hardware model.

mod chart;
mod convert;
mod run;
mod sweep;
mod synth;
mod trace;

use anyhow::Context;
use mullion_mmp::config::Config;
use std::path::Path;
use std::process::ExitCode;

/// The subcommands of the model.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Run a trace on the model and print what it cost.
    ///
    /// Every fetch, load and store of the trace is checked against the permission tables that the
    /// supervisor's decisions produced, every cycle is counted, and the result is laid out as Tables 5, 6
    /// and 8 of the Mondrix paper, with the paper's own rows below it, marked "paper".
    Run(run::Args),
    /// Run a trace on many machines and show what changes.
    ///
    /// Every combination of the given table formats, granularities, sizes of the two lookaside buffers and sizes
    /// of the three caches is one run. Results are a table on standard output, or go to a directory: sweep.csv
    /// with a line for each run, and charts as SVG.
    Sweep(sweep::Args),
    /// Make a trace of a program that does not exist, by its parameters.
    ///
    /// A kernel and modules in domains of their own call each other through gates, share memory through a
    /// group, allocate objects, lend buffers and open words of their stacks. The same parameters and seed
    /// give the same trace.
    Synth(synth::Args),
    /// Make a trace of one that another program wrote.
    ///
    /// Such traces have addresses only. A map says which addresses belong to which domain, and which functions are
    /// gates; calls and returns are found in what was pushed and popped. The file is read once, line by line.
    Convert(convert::Args),
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::Run(args) => args.run(),
            Command::Sweep(args) => args.run(),
            Command::Synth(args) => args.run(),
            Command::Convert(args) => args.run(),
        }
    }
}

/// The configuration in a file, or the paper's.
fn load_config(path: Option<&Path>) -> anyhow::Result<Config> {
    let Some(path) = path else {
        return Ok(Config::default());
    };
    let text = mullion_trust::text::read(path).with_context(|| path.display().to_string())?;
    Config::from_toml(&text).with_context(|| path.display().to_string())
}
