//! `mullion rustc` and `mullion cargo`, and what they have Cargo and rustc call.

use std::ffi::OsString;
use std::process::ExitCode;

/// A command line of another program's, as it is.
#[derive(clap::Args)]
#[command(disable_help_flag = true, disable_version_flag = true)]
pub(crate) struct Args {
    /// Its options and files.
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGUMENTS"
    )]
    arguments: Vec<OsString>,
}

impl Args {
    pub(crate) fn rustc(self) -> anyhow::Result<ExitCode> {
        Ok(mullion_driver::rust::rustc(&self.arguments)?.into())
    }

    pub(crate) fn cargo(self) -> anyhow::Result<ExitCode> {
        Ok(mullion_driver::rust::cargo(&self.arguments)?.into())
    }

    pub(crate) fn wrapped(self) -> anyhow::Result<ExitCode> {
        Ok(mullion_driver::rust::wrapped(&self.arguments)?.into())
    }

    pub(crate) fn link(self) -> anyhow::Result<ExitCode> {
        Ok(mullion_driver::rust::link(self.arguments)?.into())
    }
}
