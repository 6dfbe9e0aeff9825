//! `mullion policy`.

use crate::output::outln;
use mullion_trust::Policy;
use std::path::PathBuf;
use std::process::ExitCode;

/// Check a host's policy file.
///
/// A policy names the root keys and the module types of a host.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Check a policy file and the files that it names.
    Check {
        /// The file.
        file: PathBuf,
    },
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let Action::Check { file } = self.action;
        let policy = Policy::read(&file)?;
        outln!(
            "{} assertions, {} keys",
            policy.store().len(),
            policy.keys().len()
        )?;
        for found in policy.module_types() {
            let trusted = if policy.trusts_type(&found.id) {
                ", NOT VERIFIED"
            } else {
                ""
            };
            outln!("type {}: {}{trusted}", found.id, found.limits)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
