//! `mullion get`: known C libraries, ready behind a wall.

use super::fetch::LOCK;
use crate::output::{outln, sayln};
use anyhow::Context;
use mullion_fetch::Lock;
use mullion_get::{Kitchen, NAMES, Recipe};
use std::path::PathBuf;
use std::process::ExitCode;

/// Make a known C library ready behind a wall, with stubs for a host in Rust or C.
///
/// Make a known C library ready behind a wall, with stubs for a host in Rust or C.
///
/// Without a name, the libraries are listed. The sources come from package clients, as with
/// `mullion fetch`. The library is built by its own build system with `mullion cc`, which takes
/// from seconds to a minute, once; the result is kept in $XDG_CACHE_HOME/mullion.
///
/// The directory then has the verified image NAME.mx, its interface walled_NAME.h, stubs for
/// hosts in C (walled_NAME_host.h) and Rust (walled_NAME.rs), an example host.c, and the licences.
#[derive(clap::Args)]
#[command(after_help = "Example:
  mullion get zlib
  cc -Izlib zlib/host.c $(pkg-config --cflags --libs mullion) -o host && ./host zlib/zlib.mx")]
pub(crate) struct Args {
    /// The library; without one, all are listed.
    name: Option<String>,
    /// Where everything goes; the library's name, if it is left out.
    directory: Option<PathBuf>,
    /// Replace files that are there already.
    #[arg(long)]
    force: bool,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let lock = Lock::parse(LOCK).context("sysroot/sources.toml")?;
        let Some(name) = self.name else {
            return list(&lock);
        };
        let recipe = Recipe::named(&name)?;
        let directory = self.directory.unwrap_or_else(|| PathBuf::from(recipe.name));
        let command = std::env::current_exe().context("the mullion command itself")?;
        let kitchen = Kitchen {
            command: &command,
            lock: &lock,
        };
        mullion_get::make(&kitchen, &recipe, &directory, self.force)?;
        let (place, stem) = (directory.display(), recipe.stem());
        outln!("{place}/{name}.mx       the library, verified")?;
        outln!("{place}/{stem}.h        what it offers")?;
        outln!("{place}/{stem}_host.h   the same for a host in C, {stem}.rs for one in Rust")?;
        outln!("{place}/licences        of the library and of what it is built on")?;
        sayln!("the example:");
        sayln!(
            "  cc -I{place} {place}/host.c $(pkg-config --cflags --libs mullion) -o host && ./host {place}/{name}.mx"
        );
        Ok(ExitCode::SUCCESS)
    }
}

/// Name, version, licence and purpose of each.
fn list(lock: &Lock) -> anyhow::Result<ExitCode> {
    for name in NAMES {
        let recipe = Recipe::named(name)?;
        let source = match recipe.sources.first() {
            Some(source) => lock.source(source)?,
            None => continue,
        };
        let packaged = source
            .releases
            .first()
            .map_or("", |release| &release.version);
        let version = recipe.version.as_deref().unwrap_or(packaged);
        outln!(
            "{name:14} {version:14} {:30} {}",
            source.licence,
            recipe.summary
        )?;
    }
    Ok(ExitCode::SUCCESS)
}
