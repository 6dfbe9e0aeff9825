//! `mullion type`.

use crate::output::{outln, sayln};
use mullion_trust::ModuleType;
use std::path::PathBuf;
use std::process::ExitCode;

/// Check module type files.
///
/// A module type says what an image of it must be, and may use.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Check type files, and print each type's identifier, digest and limits.
    Check {
        /// The files.
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let Action::Check { files } = self.action;
        let mut good = true;
        for file in files {
            match ModuleType::read(&file) {
                Ok(found) => outln!("{}\t{}\t{}", found.id, found.digest, found.limits)?,
                Err(error) => {
                    sayln!("mullion: {error}");
                    good = false;
                }
            }
        }
        Ok(ExitCode::from(u8::from(!good)))
    }
}
