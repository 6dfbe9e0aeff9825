//! `mullion sip graph`: processes and channels as a picture.

use std::io::{ErrorKind, Read, Write};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use mullion_sip_host::{graph, status};

use crate::output::{file, print, sayln};

use super::Socket;

/// Longer than this no user wants to wait for a layout. Graphviz takes a second for 500 processes.
const PATIENCE: Duration = Duration::from_secs(20);

/// Paint processes and the channels between them as SVG, or write them for Graphviz.
#[derive(clap::Args)]
#[command(after_help = "Exit status:
  0 when it is painted; 1 when no supervisor answers, no layout is found, or the file cannot be written; 2 for bad usage.

Lines go from clients to servers; their numbers are messages to the server and back.

Examples:\n  mullion sip graph --output channels.svg\n  mullion sip graph --dot | neato -Tpng -o channels.png")]
pub(crate) struct Args {
    #[command(flatten)]
    socket: Socket,
    /// Where to write; standard output by default.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write the graph as text for Graphviz instead of painting it.
    #[arg(long)]
    dot: bool,
    /// Where boxes and lines go.
    #[arg(
        long,
        value_enum,
        default_value = "auto",
        value_name = "NAME",
        conflicts_with = "dot"
    )]
    layout: Layout,
}

#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
enum Layout {
    /// Graphviz where its `dot` is installed and has an answer in 20 seconds, else one column.
    Auto,
    /// By Graphviz (the Debian package `graphviz`), in layers.
    Graphviz,
    /// All processes in one column, each channel on a track of its own.
    Column,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let view = self.socket.ask(status::ask)?;
        let picture = match self.layout {
            _ if self.dot => graph::dot(&view),
            Layout::Column => graph::svg(&view),
            Layout::Graphviz => graphviz(&graph::dot(&view))?,
            Layout::Auto => graphviz(&graph::dot(&view)).unwrap_or_else(|why| {
                sayln!("mullion: painted in one column: {why:#}");
                graph::svg(&view)
            }),
        };
        match self.output {
            None => print(&picture)?,
            Some(path) => file(&path, picture)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Has Graphviz lay the graph out.
fn graphviz(text: &str) -> anyhow::Result<String> {
    let started = Command::new("dot")
        .arg("-Tsvg")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let mut dot = match started {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            bail!("`dot` is not installed (Debian package graphviz)")
        }
        started => started.context("dot cannot be started")?,
    };
    let (mut to, mut from) = (dot.stdin.take(), dot.stdout.take());
    let text = text.to_owned();
    // Both at once, since it may write before it has read everything. Both end when it ends.
    let writer = thread::spawn(move || to.take().map(|mut to| to.write_all(text.as_bytes())));
    let reader = thread::spawn(move || {
        let mut svg = String::new();
        let from = from.as_mut();
        from.map(|from| from.read_to_string(&mut svg)).transpose()?;
        std::io::Result::Ok(svg)
    });
    let begun = Instant::now();
    let status = loop {
        match dot.try_wait()? {
            Some(status) => break status,
            None if begun.elapsed() < PATIENCE => thread::sleep(Duration::from_millis(5)),
            None => {
                dot.kill()?;
                dot.wait()?;
                bail!("dot has no layout after {} s", PATIENCE.as_secs());
            }
        }
    };
    // It is the status that tells whether all was read.
    let _ = writer.join();
    let svg = reader.join();
    match svg {
        Ok(Ok(svg)) if status.success() => Ok(svg),
        _ => bail!("dot ended with {status}"),
    }
}
