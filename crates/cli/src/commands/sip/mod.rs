//! `mullion sip`: software isolated processes that were built on their own.

mod check;
mod graph;
mod map;
mod run;
mod top;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use mullion_sip_host::status;

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
    /// Show what runs: processes, threads, messages, memory, limits, restarts.
    Top(top::Args),
    /// Paint processes and the channels between them as SVG.
    Graph(graph::Args),
    /// Print which memory is whose, as JSON for `mullion map`.
    Map(map::Args),
    /// Print a library's manifest, and say whether this host takes it. None of its code runs.
    Check(check::Args),
}

/// Where a running supervisor is asked.
#[derive(clap::Args)]
struct Socket {
    /// The status socket of `mullion sip run` [default: mullion-sip.sock in $XDG_RUNTIME_DIR, or in
    /// a directory of this user alone].
    #[arg(long, value_name = "SOCKET")]
    status: Option<PathBuf>,
}

impl Socket {
    fn path(&self) -> std::io::Result<PathBuf> {
        self.status.clone().map_or_else(status::default_path, Ok)
    }

    /// Asks whoever serves it.
    fn ask<T>(&self, ask: fn(&Path) -> std::io::Result<T>) -> anyhow::Result<T> {
        use std::io::ErrorKind::{ConnectionRefused, NotFound};
        let path = self.path()?;
        ask(&path).map_err(|error| {
            let way_out = match error.kind() {
                ConnectionRefused | NotFound => {
                    ": no `mullion sip run` answers there; start one, or name its socket with --status"
                }
                _ => "",
            };
            anyhow::Error::new(error).context(format!("{}{way_out}", path.display()))
        })
    }
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self.action {
            Action::Run(args) => args.run(),
            Action::Check(args) => args.run(),
            Action::Top(args) => args.run(),
            Action::Graph(args) => args.run(),
            Action::Map(args) => args.run(),
        }
    }
}
