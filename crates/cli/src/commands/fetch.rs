//! `mullion fetch`: third-party sources by name.

use crate::output::outln;
use anyhow::Context;
use mullion_fetch::Lock;
use std::process::ExitCode;

/// Get the sources of a third-party library, checked against a lock file.
///
/// Get the sources of a third-party library and print the directory that holds them.
///
/// The sources come from package clients (cargo, apt-get), are checked against the digests of
/// Mullion's lock file, and are kept in $XDG_CACHE_HOME/mullion. A second call finds them there.
/// With MULLION_SOURCES=DIR archives are taken from that directory instead, so that a machine
/// without a network can build too.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Names from the lock file; without any, they are listed.
    names: Vec<String>,
}

/// The lock file of this build.
pub(crate) const LOCK: &str = include_str!("../../../../sysroot/sources.toml");

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let lock = Lock::parse(LOCK).context("sysroot/sources.toml")?;
        if self.names.is_empty() {
            for source in &lock.sources {
                let version = source
                    .releases
                    .first()
                    .map_or("", |release| &release.version);
                outln!("{:16} {:24} {}", source.name, version, source.licence)?;
            }
        }
        for name in &self.names {
            outln!("{}", mullion_fetch::fetch(lock.source(name)?)?.display())?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
