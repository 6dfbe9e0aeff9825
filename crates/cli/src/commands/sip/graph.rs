//! `mullion sip graph`: processes and channels as a picture.

use std::path::PathBuf;
use std::process::ExitCode;

use mullion_sip_host::{graph, status};

use crate::output::{file, print};

use super::Socket;

/// Paint processes and the channels between them as SVG.
#[derive(clap::Args)]
#[command(after_help = "Exit status:
  0 when it is painted; 1 when no supervisor answers, or the file cannot be written; 2 for bad usage.

Lines go from clients to servers; their numbers are messages to the server and back.

Example:\n  mullion sip graph --output channels.svg")]
pub(crate) struct Args {
    #[command(flatten)]
    socket: Socket,
    /// Where to write; standard output by default.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let picture = graph::svg(&self.socket.ask(status::ask)?);
        match self.output {
            None => print(&picture)?,
            Some(path) => file(&path, picture)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}
