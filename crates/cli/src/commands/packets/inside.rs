//! `mullion packets inside`: the process of a module with `wall = "process"`. The forwarder starts it.

use crate::commands::run::closed;
use anyhow::anyhow;
use mullion_packets::process;

#[derive(clap::Args)]
pub(super) struct Args {
    /// What the forwarder tells of the module. The image and the memory that both have come as the standard streams.
    module: String,
}

impl Args {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let give_up = || {
            // The image is read, and the memory is mapped.
            let nothing = std::fs::File::open("/dev/null").map_err(|error| error.to_string())?;
            rustix::stdio::dup2_stdin(&nothing).map_err(|error| error.to_string())?;
            rustix::stdio::dup2_stdout(&nothing).map_err(|error| error.to_string())?;
            closed::give_up().map_err(|error| format!("{error:#}"))
        };
        let close = || mullion_closed::close_program().map_err(|error| error.to_string());
        process::inside(&self.module, give_up, close).map_err(|error| anyhow!("{error}"))
    }
}
