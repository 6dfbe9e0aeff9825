//! `mullion version`.

use std::process::ExitCode;

/// No arguments.
#[derive(clap::Args)]
pub(crate) struct Args {}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        println!("mullion {}", env!("CARGO_PKG_VERSION"));
        Ok(ExitCode::SUCCESS)
    }
}
