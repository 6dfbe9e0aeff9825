//! `core`, `alloc`, `std` and `test`, compiled for a domain once from the toolchain's own sources.
//!
//! ```text
//! CACHE/rust/KEY/
//!    common/                what rustc wrote: libcore-1f2e.rlib, core-1f2e.s, ...
//!    read-write-call/       the same libraries with rewritten code, made when first asked for
//!       lib/rustlib/TARGET/lib/libcore-1f2e.rlib ...
//! ```
//!
//! KEY covers the compiler, the rewriter and the driver.

use super::toolchain::Toolchain;
use super::{CODE, TARGET, object};
use crate::sysroot::{directory_of, entries, lock};
use crate::{DriverError, tools};
use mullion_rewriter::Options;
use std::ffi::OsString;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The library of one protection and base.
#[derive(Debug)]
pub(super) struct Library {
    directory: PathBuf,
}

impl Library {
    /// The library for these options, built if the cache does not have it.
    pub(super) fn prepare(toolchain: &Toolchain, options: &Options) -> Result<Self, DriverError> {
        let place = place(toolchain)?;
        let library = Self {
            directory: place.join(directory_of(options)),
        };
        if !library.directory.is_dir() {
            let common = as_made(toolchain)?;
            let _guard = lock(&place)?;
            if !library.directory.is_dir() {
                confine(options, &place, &common, &library.directory)?;
            }
        }
        Ok(library)
    }

    /// What rustc is given as its sysroot.
    pub(super) fn sysroot(&self) -> &Path {
        &self.directory
    }

    /// A library without `std`, and without what it brings: names of it do not resolve.
    pub(super) fn without_std(&self) -> Result<PathBuf, DriverError> {
        let whole = self.sysroot();
        let mut name = OsString::from("elastic-");
        name.push(whole.file_name().unwrap_or_default());
        reduced(&whole.join(inner()), &whole.with_file_name(name))
    }
}

/// Where everything lies that is made of this toolchain.
fn place(toolchain: &Toolchain) -> Result<PathBuf, DriverError> {
    let mut hash = DefaultHasher::new();
    env!("MULLION_SYSROOT_KEY").hash(&mut hash);
    toolchain.version()?.hash(&mut hash);
    toolchain.rustc().hash(&mut hash);
    let cache = mullion_fetch::cache_directory()?.join("rust");
    Ok(cache.join(format!("{:016x}", hash.finish())))
}

/// Where the libraries lie as rustc has made them, each with its assembler text.
pub(super) fn as_made(toolchain: &Toolchain) -> Result<PathBuf, DriverError> {
    let place = place(toolchain)?;
    let common = place.join("common");
    if !common.is_dir() {
        let _guard = lock(&place)?;
        if !common.is_dir() {
            build(toolchain, &place, &common)?;
        }
    }
    Ok(common)
}

/// The library without `std` for crates behind no wall but their language: nothing in it is rewritten.
pub(super) fn alone(toolchain: &Toolchain) -> Result<PathBuf, DriverError> {
    let common = as_made(toolchain)?;
    reduced(&common, &common.with_file_name("elastic-alone"))
}

/// What of a library needs no `std`, as a sysroot of its own.
fn reduced(from: &Path, small: &Path) -> Result<PathBuf, DriverError> {
    let place = small.parent().unwrap_or(small);
    if small.is_dir() {
        return Ok(small.to_owned());
    }
    let _guard = lock(place)?;
    if small.is_dir() {
        return Ok(small.to_owned());
    }
    let work = tempfile::tempdir_in(place).map_err(|cause| DriverError::io(place, cause))?;
    let to = work.path().join(inner());
    fs::create_dir_all(&to).map_err(|cause| DriverError::io(&to, cause))?;
    for file in entries(from)? {
        let name = file.file_name().unwrap_or_default();
        let text = name.to_string_lossy();
        let parts = ["libcore-", "liballoc-", "libcompiler_builtins-"];
        if parts.iter().any(|part| text.starts_with(part)) {
            fs::hard_link(&file, to.join(name)).map_err(|cause| DriverError::io(&file, cause))?;
        }
    }
    tools::publish(work, small)?;
    Ok(small.to_owned())
}

/// Where rustc looks for the libraries of a target, below its sysroot.
pub(super) fn inner() -> PathBuf {
    Path::new("lib/rustlib").join(TARGET).join("lib")
}

/// The package whose dependencies are the library.
const MANIFEST: &str = "\
[package]
name = \"sysroot\"
version = \"0.0.0\"
edition = \"2024\"
[lib]
path = \"lib.rs\"
[profile.release]
panic = \"abort\"
debug = 1
[workspace]
";

/// Has Cargo compile the library, from the sources beside the compiler and nothing else.
fn build(toolchain: &Toolchain, place: &Path, common: &Path) -> Result<(), DriverError> {
    let _ = writeln!(
        std::io::stderr(),
        "mullion: compiling Rust's library for domains, which takes a minute or two, once"
    );
    let work = tempfile::tempdir_in(place).map_err(|cause| DriverError::io(place, cause))?;
    let package = work.path().join("package");
    let write = |name: &str, text: &str| {
        let file = package.join(name);
        fs::write(&file, text).map_err(|cause| DriverError::io(&file, cause))
    };
    fs::create_dir(&package).map_err(|cause| DriverError::io(&package, cause))?;
    write("Cargo.toml", MANIFEST)?;
    write("lib.rs", "#![no_std]\n")?;
    let source = toolchain.library();
    let mut flags: Vec<&str> = CODE.to_vec();
    flags.push("--emit=asm");
    let prefix = format!("--remap-path-prefix={}=/rust/library", source.display());
    flags.push(&prefix);
    let mut command = Command::new(toolchain.cargo());
    for (name, _) in std::env::vars_os() {
        // What the user's own build is told is nothing for this one.
        let text = name.to_string_lossy();
        if text.starts_with("CARGO") || text.starts_with("RUST") {
            command.env_remove(&name);
        }
    }
    if let Some(home) = std::env::var_os("CARGO_HOME") {
        command.env("CARGO_HOME", home);
    }
    command
        .current_dir(&package)
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTC", toolchain.rustc())
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"))
        .env("CARGO_TARGET_DIR", work.path().join("target"))
        .args([
            "build",
            "--release",
            "--offline",
            "--quiet",
            "--target",
            TARGET,
        ])
        .args(["-Zbuild-std=std,panic_abort,test", "-Zbuild-std-features="])
        .args([
            "--config",
            "source.crates-io.replace-with=\"mullion-vendored\"",
        ])
        .arg("--config")
        .arg(format!(
            "source.mullion-vendored.directory={:?}",
            source.join("vendor").display().to_string()
        ));
    tools::step(&mut command)?;
    let finished = tempfile::tempdir_in(place).map_err(|cause| DriverError::io(place, cause))?;
    let made = work.path().join("target").join(TARGET).join("release/deps");
    for file in entries(&made)? {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let wanted = name.ends_with(".rlib") || name.ends_with(".s");
        if wanted && !name.starts_with("libsysroot-") && !name.starts_with("sysroot-") {
            let to = finished.path().join(&*name);
            fs::rename(&file, &to).map_err(|cause| DriverError::io(&file, cause))?;
        }
    }
    tools::publish(finished, common)
}

/// The libraries with rewritten code.
fn confine(
    options: &Options,
    place: &Path,
    common: &Path,
    library: &Path,
) -> Result<(), DriverError> {
    let work = tempfile::tempdir_in(place).map_err(|cause| DriverError::io(place, cause))?;
    let directory = work.path().join(inner());
    fs::create_dir_all(&directory).map_err(|cause| DriverError::io(&directory, cause))?;
    let scratch = tempfile::tempdir_in(place).map_err(|cause| DriverError::io(place, cause))?;
    for rlib in object::rlibs(common)? {
        let stem = rlib.file_stem().unwrap_or_default().to_string_lossy();
        let stem = stem.strip_prefix("lib").unwrap_or(&stem).to_owned();
        let to = directory.join(rlib.file_name().unwrap_or_default());
        fs::copy(&rlib, &to).map_err(|cause| DriverError::io(&rlib, cause))?;
        let text = common.join(format!("{stem}.s"));
        object::replace(&to, &text, options, None, scratch.path())?;
    }
    tools::publish(work, library)
}
