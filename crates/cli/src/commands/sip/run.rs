//! `mullion sip run`: the processes of a configuration.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use anyhow::Context;
use mullion_sip_host::status::RunStatus;
use mullion_sip_host::supervisor::{RunOutcome, succeeded};
use mullion_sip_host::{Configuration, Host, SipSupervisor};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::Socket;

/// Start the processes of a configuration, and keep them as it says.
///
/// Everything is judged before anything runs: the configuration, each library's manifest, and that libraries were
/// built with the same contracts. Lives and deaths go to standard error.
#[derive(clap::Args)]
#[command(after_help = "Exit status:
  0 when every process ended as it wanted to (returned, or exited with 0);
  1 when one ended otherwise for the last time, or when nothing was started: the reason is on standard error;
  2 for bad usage; 130 after SIGINT and 143 after SIGTERM, which end every process.

Example:\n  mullion sip run sips.toml")]
pub(crate) struct Args {
    /// The configuration (docs/sip-running.md).
    configuration: PathBuf,
    #[command(flatten)]
    socket: Socket,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        tracing_subscriber::fmt()
            .with_writer(std::io::stderr)
            .with_ansi(false)
            .with_target(false)
            .init();
        let configuration = Configuration::read(&self.configuration)
            .with_context(|| self.configuration.display().to_string())?;
        let mut signals = Signals::new([SIGINT, SIGTERM])?;
        let supervisor = SipSupervisor::new(&Host::begin()?, &configuration)?;
        let stop = supervisor.stop();
        let caught = Arc::new(AtomicI32::new(0));
        let catcher = Arc::clone(&caught);
        std::thread::spawn(move || {
            if let Some(signal) = signals.forever().next() {
                catcher.store(signal, Ordering::SeqCst);
                stop.stop();
            }
        });
        let path = self.socket.path()?;
        let status = RunStatus::serve(&path, supervisor.watch())
            .with_context(|| path.display().to_string())?;
        let outcomes = supervisor.run();
        drop(status);
        let signal = caught.load(Ordering::SeqCst);
        Ok(code(&outcomes, signal))
    }
}

fn code(outcomes: &[RunOutcome], signal: i32) -> ExitCode {
    match u8::try_from(signal) {
        Ok(signal) if signal != 0 => ExitCode::from(128 + signal),
        _ if succeeded(outcomes) => ExitCode::SUCCESS,
        _ => ExitCode::from(1),
    }
}
