//! `mullion sip`: software isolated processes that were built on their own.

mod check;
mod run;

use std::process::ExitCode;

/// Run separately built SIPs by a configuration, and look at them.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Start the processes of a configuration, and keep them as it says.
    Run(run::Args),
    /// Print a library's manifest, and say whether this host takes it. None of its code runs.
    Check(check::Args),
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self.action {
            Action::Run(args) => args.run(),
            Action::Check(args) => args.run(),
        }
    }
}
