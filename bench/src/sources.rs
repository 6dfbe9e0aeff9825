//! The libraries' published sources, fetched by cargo and checked by its lock file.

use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Puts the sources that `bench/sources/Cargo.lock` names under `build` and returns
/// their folder. Done once for each lock file.
pub(crate) fn fetch(bench: &Path, build: &Path) -> Result<PathBuf> {
    let package = bench.join("sources");
    let folder = build.join("sources");
    let stamp = build.join("sources.lock");
    let lock = fs::read(package.join("Cargo.lock")).context("reading bench/sources/Cargo.lock")?;
    if folder.is_dir() && fs::read(&stamp).is_ok_and(|done| done == lock) {
        return Ok(folder);
    }
    eprintln!("bench: fetching the libraries' sources");
    let out = Command::new("cargo")
        .args(["vendor", "--quiet", "--locked", "--manifest-path"])
        .arg(package.join("Cargo.toml"))
        .arg(&folder)
        .output()
        .context("running cargo")?;
    if !out.status.success() {
        let said = String::from_utf8_lossy(&out.stderr);
        bail!(
            "cargo vendor failed: {}",
            said.trim().lines().last().unwrap_or("without a message")
        );
    }
    fs::write(&stamp, lock)?;
    Ok(folder)
}
