//! `mullion sip top`: what runs, again and again.

use crate::output::{outln, print};
use std::fmt::Write as _;
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::time::Duration;

use mullion_sip_host::{RunView, status};

use super::Socket;
use crate::units;

/// Show what runs: processes, threads, messages, memory, limits, restarts.
#[derive(clap::Args)]
#[command(after_help = "Exit status:
  0 after one view (--once, --json), or when the supervisor has ended; 1 when none answers;
  2 for bad usage.

Messages are those that a process has sent; per second, since the view before (with --once or --json: if --every
is given, which takes two views). The number of the OS process is shown where a domain has one of its own; `?` is
what one has not said that did not answer within 400 ms.

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
    /// How long between two views [default: 1s].
    #[arg(long, value_name = "TIME", value_parser = units::time)]
    every: Option<Duration>,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let mut view = self.socket.ask(status::ask)?;
        if let Some(every) = self.every.filter(|_| self.once || self.json) {
            std::thread::sleep(every);
            let before = std::mem::replace(&mut view, self.socket.ask(status::ask)?);
            view.compare(&before);
        }
        if self.json {
            outln!("{}", serde_json::to_string_pretty(&view)?)?;
            return Ok(ExitCode::SUCCESS);
        }
        let clear = !self.once && io::stdout().is_terminal();
        loop {
            let text = table(&view);
            print(&format!(
                "{}{text}",
                if clear { "\x1b[H\x1b[J" } else { "" }
            ))?;
            if self.once {
                return Ok(ExitCode::SUCCESS);
            }
            std::thread::sleep(self.every.unwrap_or(Duration::from_secs(1)));
            match self.socket.ask(status::ask) {
                Ok(next) => {
                    let before = std::mem::replace(&mut view, next);
                    view.compare(&before);
                }
                Err(_) => return Ok(ExitCode::SUCCESS),
            }
        }
    }
}

fn table(view: &RunView) -> String {
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
        "{:<20} {:<12} {:>8} {:<8} {:>6} {:>12} {:>17} {:>17} {:>12} {:>10} {:>8}  LAST END",
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
    for process in &view.processes {
        let known = |text: String| match process.silent {
            true => "?".to_owned(),
            false => text,
        };
        let rate = process.messages_per_second;
        let rate = rate.map_or("-".to_owned(), |rate| format!("{rate:.0}"));
        let _ = writeln!(
            text,
            "{:<20} {:<12} {:>8} {:<8} {:>6} {:>12} {:>17} {:>17} {:>12} {:>10} {:>8}  {}",
            process.name,
            process.domain,
            number(process.os_process),
            process.state,
            number(process.worker.map(u32::from)),
            known(format!("{} / {}", process.threads, process.thread_limit)),
            known(of(process.heap as u64, process.heap_limit as u64)),
            known(of(process.exchange, process.exchange_limit)),
            known(process.messages.to_string()),
            known(rate),
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
