//! `mullion cc`, `mullion c++`, and `mullion as` and `mullion ld`, which they have gcc call.

use mullion_driver::Language;
use std::ffi::OsString;
use std::process::ExitCode;

/// gcc's command line, as it is.
#[derive(clap::Args)]
#[command(disable_help_flag = true, disable_version_flag = true)]
pub(crate) struct Args {
    /// gcc's options and files; --mullion-help lists those of this command.
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGUMENTS"
    )]
    arguments: Vec<OsString>,
}

impl Args {
    pub(crate) fn cc(self) -> anyhow::Result<ExitCode> {
        Ok(mullion_driver::compile(Language::C, &self.arguments)?)
    }

    pub(crate) fn cxx(self) -> anyhow::Result<ExitCode> {
        Ok(mullion_driver::compile(Language::Cxx, &self.arguments)?)
    }

    pub(crate) fn assemble(self) -> anyhow::Result<ExitCode> {
        Ok(mullion_driver::assemble(self.arguments)?)
    }

    pub(crate) fn link(self) -> anyhow::Result<ExitCode> {
        Ok(mullion_driver::link(self.arguments)?)
    }
}
