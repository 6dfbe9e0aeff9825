//! `mullion version`.

use crate::output::outln;
use std::process::ExitCode;

/// No arguments.
#[derive(clap::Args)]
pub(crate) struct Args {}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        outln!("mullion {}", env!("CARGO_PKG_VERSION"))?;
        Ok(ExitCode::SUCCESS)
    }
}
