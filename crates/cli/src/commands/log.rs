//! `mullion log`.

use super::keys::KeyringArgs;
use crate::output::{outln, print, sayln};
use anyhow::Context as _;
use mullion_trust::log::{Log, checkpoint};
use std::path::PathBuf;
use std::process::ExitCode;

/// Show and verify the record of decisions.
///
/// The log is lines of JSON, each with the SHA-256 of the one before.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    keyring: KeyringArgs,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Verify a log and print its events.
    Show {
        /// The log.
        file: PathBuf,
    },
    /// Verify that no line is missing, changed or moved.
    Verify {
        /// The log.
        file: PathBuf,
        /// A checkpoint that the log must go on from.
        #[arg(long, value_name = "FILE", requires = "signed_by")]
        checkpoint: Option<PathBuf>,
        /// Who must have signed the checkpoint.
        #[arg(long, value_name = "KEY")]
        signed_by: Option<String>,
    },
    /// Print the head of a log, signed, to be kept elsewhere.
    Checkpoint {
        /// The log.
        file: PathBuf,
        /// The key that signs.
        #[arg(long, value_name = "NAME")]
        key: String,
    },
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let mut printed = Ok(());
        let report = match &self.action {
            Action::Show { file } => Log::new(file).verify(|entry| {
                if let Ok(()) = printed {
                    printed = outln!("{}\t{}\t{}", entry.seq, entry.time, entry.event);
                }
            })?,
            Action::Verify {
                file,
                checkpoint: Some(path),
                signed_by: Some(signer),
            } => {
                let text =
                    mullion_trust::text::read(path).with_context(|| path.display().to_string())?;
                let signer = self.keyring.open()?.resolve(signer)?;
                Log::new(file).verify_since(&text, &signer, |_| {})?
            }
            Action::Verify { file, .. } => Log::new(file).verify(|_| {})?,
            Action::Checkpoint { file, key } => {
                let report = Log::new(file).verify(|_| {})?;
                print(&checkpoint(&report.head, &self.keyring.secret(key)?))?;
                return Ok(ExitCode::SUCCESS);
            }
        };
        printed?;
        if report.head_behind {
            sayln!(
                "mullion: note: a writer was interrupted after its line; the next one repairs the head"
            );
        }
        if report.torn > 0 {
            sayln!(
                "mullion: note: the last {} bytes are the beginning of a line that was interrupted, and count for nothing; \
                 the next writer removes them and notes it",
                report.torn
            );
        }
        if let Action::Verify { .. } = self.action {
            outln!(
                "good: {} lines, last {}{}",
                report.head.lines,
                report.head.last,
                if report.torn > 0 {
                    ", and an unfinished one"
                } else {
                    ""
                }
            )?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
