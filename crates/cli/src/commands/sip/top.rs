//! `mullion sip top`: what runs, again and again.

use crate::output::{outln, print};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::time::Duration;

use mullion_sip_host::View;
use mullion_sip_host::view::ProcessView;

use super::Socket;
use crate::units;

/// Show what runs: processes, threads, messages, memory, limits, restarts.
#[derive(clap::Args)]
#[command(after_help = "Exit status:
  0 after one view (--once, --json), or when the supervisor has ended; 1 when none answers;
  2 for bad usage.

Messages are those that a process has sent; per second, since the view before. The number of the OS process is
shown where a domain has one of its own.

Example:\n  mullion sip top --once")]
pub(crate) struct Args {
    #[command(flatten)]
    socket: Socket,
    /// One view, and no more.
    #[arg(long)]
    once: bool,
    /// One view, as JSON.
    #[arg(long)]
    json: bool,
    /// How long between two views.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = units::time)]
    every: Duration,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let mut view = self.socket.ask()?;
        if self.json {
            outln!("{}", serde_json::to_string_pretty(&view)?)?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut before = None;
        let clear = !self.once && io::stdout().is_terminal();
        loop {
            let text = table(&view, before.as_ref());
            print(&format!(
                "{}{text}",
                if clear { "\x1b[H\x1b[J" } else { "" }
            ))?;
            if self.once {
                return Ok(ExitCode::SUCCESS);
            }
            std::thread::sleep(self.every);
            match self.socket.ask() {
                Ok(next) => before = Some(std::mem::replace(&mut view, next)),
                Err(_) => return Ok(ExitCode::SUCCESS),
            }
        }
    }
}

fn table(view: &View, before: Option<&View>) -> String {
    let running = view
        .processes
        .iter()
        .filter(|process| process.state == "running");
    let mut text = format!(
        "up {:.1} s   {} processes, {} running   {} channels\n\n",
        view.seconds,
        view.processes.len(),
        running.count(),
        view.channels.len()
    );
    // Writing to a string does not fail.
    let _ = writeln!(
        text,
        "{:<20} {:<12} {:>8} {:<8} {:>6} {:>7} {:>17} {:>17} {:>12} {:>10} {:>8}  LAST END",
        "PROCESS",
        "DOMAIN",
        "PID",
        "STATE",
        "WORKER",
        "THREADS",
        "HEAP KiB",
        "EXCHANGE KiB",
        "MESSAGES",
        "PER SECOND",
        "RESTARTS"
    );
    let earlier: HashMap<&str, &ProcessView> = before
        .iter()
        .flat_map(|view| &view.processes)
        .map(|process| (&*process.name, process))
        .collect();
    let seconds = before.map_or(0.0, |before| view.seconds - before.seconds);
    for process in &view.processes {
        let rate = earlier
            .get(&*process.name)
            .filter(|_| seconds > 0.0)
            .map_or("-".to_owned(), |earlier| {
                format!(
                    "{:.0}",
                    process.messages.saturating_sub(earlier.messages) as f64 / seconds
                )
            });
        let _ = writeln!(
            text,
            "{:<20} {:<12} {:>8} {:<8} {:>6} {:>7} {:>17} {:>17} {:>12} {:>10} {:>8}  {}",
            process.name,
            process.domain,
            number(process.os_process),
            process.state,
            number(process.worker.map(u32::from)),
            process.threads,
            of(process.heap as u64, process.heap_limit as u64),
            of(process.exchange, process.exchange_limit),
            process.messages,
            rate,
            process.restarts,
            process.last_end.as_deref().unwrap_or("-")
        );
    }
    text
}

fn number(number: Option<u32>) -> String {
    number.map_or("-".to_owned(), |number| number.to_string())
}

/// What is used of what may be, in KiB.
fn of(used: u64, limit: u64) -> String {
    format!("{} / {}", used >> 10, limit >> 10)
}
