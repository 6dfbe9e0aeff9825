//! `mullion sip graph`: processes and channels as a picture.

use std::path::PathBuf;
use std::process::ExitCode;

use mullion_sip_host::{graph, status};

use crate::output::{file, print};

use super::Socket;

/// Paint processes and the channels between them as SVG, or write them for Graphviz.
#[derive(clap::Args)]
#[command(after_help = "Exit status:
  0 when it is painted; 1 when no supervisor answers, or the file cannot be written; 2 for bad usage.

Lines go from clients to servers; their numbers are messages to the server and back.

Examples:\n  mullion sip graph --output channels.svg\n  mullion sip graph --dot | dot -Tsvg -o channels.svg")]
pub(crate) struct Args {
    #[command(flatten)]
    socket: Socket,
    /// Where to write; standard output by default.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write the graph as text for Graphviz instead of painting it.
    #[arg(long)]
    dot: bool,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let view = self.socket.ask(status::ask)?;
        let picture = match self.dot {
            true => graph::dot(&view),
            false => graph::svg(&view),
        };
        match self.output {
            None => print(&picture)?,
            Some(path) => file(&path, picture)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}
