//! `mullion sip map`: who may touch which memory.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use mullion_sip_host::status;

use super::Socket;

/// Print which memory is whose, as JSON for `mullion map`.
///
/// Processes are domains; pages of their heaps, stacks and blocks of the exchange heap are regions. Each OS process of
/// the configuration has an address space to itself: the upper 16 bits of an address say which.
#[derive(clap::Args)]
#[command(after_help = "Exit status:
  0 when it is written; 1 when no supervisor answers, or processes began or ended meanwhile; 2 for bad usage.

Example:\n  mullion sip map | mullion map - --output memory.svg")]
pub(crate) struct Args {
    #[command(flatten)]
    socket: Socket,
    /// Where to write; standard output by default.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let state = self.socket.ask(status::ask_map)?;
        match self.output {
            None => std::io::stdout().write_all(&state)?,
            Some(path) => {
                std::fs::write(&path, state).with_context(|| path.display().to_string())?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}
