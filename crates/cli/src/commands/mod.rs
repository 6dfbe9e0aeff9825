//! The subcommands. Each lives in a module of its own, with its arguments and its `run`.

mod model;
mod rewrite;
mod version;

use clap::Subcommand;
use std::process::ExitCode;

/// Everything that `mullion` can be asked to do.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Confine the assembler text of a C or C++ compiler.
    Rewrite(rewrite::Args),
    /// Run the Mondriaan hardware model: traces, sweeps, synthetic workloads.
    Model(model::Args),
    /// Print the version of the command and of the window's binary interface.
    Version(version::Args),
}

impl Command {
    /// Runs the subcommand; an error is printed by `main` and ends with status 1.
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Command::Rewrite(args) => args.run(),
            Command::Model(args) => args.run(),
            Command::Version(args) => args.run(),
        }
    }
}
