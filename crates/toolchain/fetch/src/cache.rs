//! Where what was fetched and built is kept.

use crate::FetchError;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// The cache directory: `$XDG_CACHE_HOME/mullion`, or `~/.cache/mullion`.
/// Everything in it can be deleted at any time, and is made again.
///
/// # Errors
/// Neither variable is set.
pub fn cache_directory() -> Result<PathBuf, FetchError> {
    let absolute = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    absolute("XDG_CACHE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
        .map(|cache| cache.join("mullion"))
        .ok_or(FetchError::NoCache)
}

/// Waits for and takes the lock of that name; it is released when dropped.
pub(crate) fn lock(path: &Path) -> Result<File, FetchError> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(|cause| FetchError::io(parent, cause))?;
    }
    let file = File::create(path).map_err(|cause| FetchError::io(path, cause))?;
    file.lock().map_err(|cause| FetchError::io(path, cause))?;
    Ok(file)
}
