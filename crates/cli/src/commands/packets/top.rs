//! `mullion packets top`: what runs, again and again.

use super::ask::ControlArgs;
use super::show;
use crate::output::print;
use crate::units;
use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

/// Show what runs: ports, modules, packets in each second, time for each frame, refusals.
#[derive(clap::Args)]
#[command(after_help = "Exit status:
  0 after one view (--once), or when the forwarder has ended; 1 when none answers; 2 for bad usage.

Example:\n  mullion packets top --to ./forwarder --once --every 500ms")]
pub(super) struct Args {
    #[command(flatten)]
    control: ControlArgs,
    /// One view, and no more.
    #[arg(long)]
    once: bool,
    /// How long between two looks.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = units::time)]
    every: Duration,
}

impl Args {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let mut before = (self.control.status()?, Instant::now());
        let clear = !self.once && io::stdout().is_terminal();
        loop {
            std::thread::sleep(self.every);
            let Ok(status) = self.control.status() else {
                return Ok(());
            };
            let now = Instant::now();
            let mut text = show::table(&status, Some((&before.0, now - before.1)));
            for hint in show::hints(&status) {
                text.push_str(&format!("\n{hint}\n"));
            }
            print(&format!(
                "{}{text}",
                if clear { "\x1b[H\x1b[J" } else { "" }
            ))?;
            if self.once {
                return Ok(());
            }
            before = (status, now);
        }
    }
}
