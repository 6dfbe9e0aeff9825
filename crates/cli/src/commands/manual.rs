//! `mullion manual`: the manual pages, from the command line's own description.

use anyhow::Context as _;
use std::path::PathBuf;
use std::process::ExitCode;

/// Write manual pages of all subcommands into a directory.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The directory, such as /usr/local/share/man/man1.
    directory: PathBuf,
}

impl Args {
    /// `command` is the whole command line, as it is parsed.
    pub(crate) fn run(&self, command: clap::Command) -> anyhow::Result<ExitCode> {
        // Without it every level has one more page, of `help`.
        let command = command.disable_help_subcommand(true);
        clap_mangen::generate_to(command, &self.directory)
            .with_context(|| self.directory.display().to_string())?;
        Ok(ExitCode::SUCCESS)
    }
}
