//! `mullion packets`: a forwarder that runs users' modules on live traffic (docs/packets.md).

mod ask;
mod inside;
mod live;
mod show;
mod top;
mod traffic;

use crate::output::{self, sayln};
use anyhow::Context;
use ask::{ControlArgs, LoadArgs, NameArgs, ReportsArgs};
use live::{RunArgs, forwarder};
use mullion_packets::control;
use mullion_packets::run;
use show::printable;
use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::PathBuf;
use std::process::ExitCode;

/// Forward packets between two interfaces through users' modules, each behind its wall.
#[derive(clap::Args)]
#[command(
    after_help = "Exit status: 0 when it was done; 1 when it was refused or failed; 2 for bad usage."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Forward until SIGINT or SIGTERM. Needs the right to raw sockets (CAP_NET_RAW), and nothing else.
    Run(RunArgs),
    /// Take the frames of a capture through the modules, into another capture.
    File(FileArgs),
    /// Show what runs: ports, modules, time for each frame, refusals.
    Status(StatusArgs),
    /// Show what runs again and again, with packets in each second.
    Top(top::Args),
    /// Load the modules of a file into a running forwarder, behind those that are there.
    Load(LoadArgs),
    /// Take a module out.
    Unload(NameArgs),
    /// Print what a module has reported since the last time.
    Reports(ReportsArgs),
    /// Send numbered frames out at an interface, at a steady rate.
    Send(traffic::Send),
    /// Receive numbered frames at an interface: how many came, and in which order.
    Receive(traffic::Receive),
    /// Be the process of a module with `wall = "process"`: started by the forwarder alone.
    #[command(hide = true)]
    Inside(inside::Args),
}

#[derive(clap::Args)]
struct FileArgs {
    /// Modules; ports are not needed.
    config: PathBuf,
    /// A capture of Ethernet, as tcpdump -w writes.
    from: PathBuf,
    /// What comes out.
    to: PathBuf,
}

#[derive(clap::Args)]
struct StatusArgs {
    #[command(flatten)]
    control: ControlArgs,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::Run(args) => args.run()?,
            Command::File(args) => args.run()?,
            Command::Status(args) => args.run()?,
            Command::Top(args) => args.run()?,
            Command::Load(args) => args.run()?,
            Command::Unload(args) => args.unload()?,
            Command::Send(args) => args.run()?,
            Command::Receive(args) => args.run()?,
            Command::Reports(args) => args.run()?,
            Command::Inside(args) => args.run()?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl FileArgs {
    fn run(self) -> anyhow::Result<()> {
        let (_, forwarder) = forwarder(&self.config)?;
        let from = File::open(&self.from).with_context(|| self.from.display().to_string())?;
        let to = File::create(&self.to).with_context(|| self.to.display().to_string())?;
        run::file(&forwarder, BufReader::new(from), BufWriter::new(to))
            .with_context(|| self.from.display().to_string())?;
        for module in forwarder.modules().iter() {
            for report in module.take_reports() {
                output::print(&printable(&String::from_utf8_lossy(&report)))?;
            }
        }
        output::print(&show::table(&control::status(&forwarder), None))?;
        Ok(())
    }
}

impl StatusArgs {
    fn run(self) -> anyhow::Result<()> {
        let status = self.control.status()?;
        match self.json {
            true => output::print(&format!("{}\n", serde_json::to_string_pretty(&status)?))?,
            false => output::print(&show::table(&status, None))?,
        }
        for hint in show::hints(&status) {
            sayln!("mullion packets: {hint}");
        }
        Ok(())
    }
}
