//! Where rustc is, and whether it will do.

use super::RELEASE;
use crate::{DriverError, tools};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A toolchain whose LLVM keeps registers free.
#[derive(Clone, Debug)]
pub struct Toolchain {
    directory: PathBuf,
}

impl Toolchain {
    /// The one that `MULLION_RUST` names, or rustup's of the known release.
    ///
    /// # Errors
    /// It is not there, or has no sources; the message says how to get it.
    pub fn find() -> Result<Self, DriverError> {
        let named = std::env::var_os("MULLION_RUST").filter(|name| !name.is_empty());
        let directory = match named {
            Some(directory) => PathBuf::from(directory),
            None => rustups().ok_or_else(|| missing(format!("rustc {RELEASE}")))?,
        };
        let toolchain = Self { directory };
        if !toolchain.rustc().is_file() {
            let place = toolchain.rustc();
            return Err(missing(format!("rustc {RELEASE} ({})", place.display())));
        }
        if !toolchain.library().join("core/src/lib.rs").is_file() {
            let place = toolchain.library();
            return Err(missing(format!("rust-src ({})", place.display())));
        }
        Ok(toolchain)
    }

    /// Its compiler.
    #[must_use]
    pub fn rustc(&self) -> PathBuf {
        self.directory.join("bin/rustc")
    }

    /// Its package manager.
    #[must_use]
    pub fn cargo(&self) -> PathBuf {
        self.directory.join("bin/cargo")
    }

    /// The sources of its library.
    pub(super) fn library(&self) -> PathBuf {
        self.directory.join("lib/rustlib/src/rust/library")
    }

    /// Where the compiler's own libraries lie.
    pub(super) fn libraries(&self) -> PathBuf {
        self.directory.join("lib")
    }

    /// The back end of its LLVM as a program, if the component `llvm-tools` is installed.
    pub(crate) fn llc(&self) -> PathBuf {
        self.libraries()
            .join("rustlib/x86_64-unknown-linux-gnu/bin/llc")
    }

    /// Whether programs can be made of the compiler's own libraries (`rustc-dev`).
    pub(super) fn has_its_own_libraries(&self) -> bool {
        let place = self
            .libraries()
            .join("rustlib/x86_64-unknown-linux-gnu/lib");
        let files = crate::sysroot::entries(&place).unwrap_or_default();
        files.iter().any(|file| {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("librustc_middle-")
        })
    }

    /// Its directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// What it says of its version.
    ///
    /// # Errors
    /// It does not start, or its LLVM cannot keep the registers free.
    pub fn version(&self) -> Result<String, DriverError> {
        let said = tools::step(Command::new(self.rustc()).arg("-vV"))?;
        let said = String::from_utf8_lossy(&said).into_owned();
        let llvm = said
            .lines()
            .find_map(|line| line.strip_prefix("LLVM version: "));
        let major = llvm.and_then(|version| version.split('.').next()?.parse::<u32>().ok());
        if major.is_some_and(|major| major >= FIRST_LLVM) {
            return Ok(said);
        }
        Err(missing(format!(
            "an LLVM that keeps registers free, {FIRST_LLVM} or later ({} has {})",
            self.rustc().display(),
            llvm.unwrap_or("none")
        )))
    }
}

/// The first LLVM that can be told to keep general registers free on x86-64.
const FIRST_LLVM: u32 = 23;

fn missing(what: String) -> DriverError {
    DriverError::NoRust {
        what,
        release: RELEASE,
    }
}

/// rustup's directory of the known release, if rustup has a home.
fn rustups() -> Option<PathBuf> {
    let home = std::env::var_os("RUSTUP_HOME").filter(|home| !home.is_empty());
    let home = home.map(PathBuf::from).or_else(|| {
        let home = std::env::var_os("HOME").filter(|home| !home.is_empty())?;
        Some(Path::new(&home).join(".rustup"))
    })?;
    let mut name = OsString::from(RELEASE);
    name.push("-x86_64-unknown-linux-gnu");
    Some(home.join("toolchains").join(name))
}
