//! What a sysroot is built from: translation units, and trees of files.

use crate::DriverError;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// One translation unit.
pub(super) struct Unit {
    /// What it becomes part of: an archive (`libc.a`) or an object of its own (`program.o`).
    pub(super) product: &'static str,
    /// Name of its assembler text, unique within the product.
    pub(super) name: String,
    /// The source, C or assembler text.
    pub(super) source: PathBuf,
    /// The compiler's options for it.
    pub(super) options: Vec<OsString>,
}

pub(super) fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// The entries of a directory, sorted.
pub(crate) fn entries(directory: &Path) -> Result<Vec<PathBuf>, DriverError> {
    let listing = fs::read_dir(directory).map_err(|cause| DriverError::io(directory, cause))?;
    let mut paths = Vec::new();
    for entry in listing {
        paths.push(
            entry
                .map_err(|cause| DriverError::io(directory, cause))?
                .path(),
        );
    }
    paths.sort();
    Ok(paths)
}

/// Copies a tree over another.
pub(super) fn copy_tree(from: &Path, to: &Path) -> Result<(), DriverError> {
    fs::create_dir_all(to).map_err(|cause| DriverError::io(to, cause))?;
    for entry in entries(from)? {
        let target = to.join(file_name(&entry));
        if entry.is_dir() {
            copy_tree(&entry, &target)?;
        } else {
            fs::copy(&entry, &target).map_err(|cause| DriverError::io(&entry, cause))?;
        }
    }
    Ok(())
}
