//! Credentials in files and directories.

use crate::DocumentError;
use crate::keynote::{self, ParseError, Store, Work};
use std::path::{Path, PathBuf};

/// An assertion in a file that is no credential. It is left out: credentials only ever add.
#[derive(Debug, thiserror::Error)]
#[error("{}: {error}; left out", path.display())]
pub struct LeftOut {
    /// Which file.
    pub path: PathBuf,
    /// What is wrong in it.
    pub error: ParseError,
}

/// A file itself; of a directory the files that end in `.kn`, in the order of
/// their names.
///
/// # Errors
/// If the directory cannot be read.
pub fn files(path: &Path) -> std::io::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = std::fs::read_dir(path)?;
    let mut files: Vec<_> = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<std::io::Result<_>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "kn"));
    files.sort();
    Ok(files)
}

/// Adds the credentials in a file, or in the [`files`] of a directory. Tells
/// of those that were left out.
///
/// # Errors
/// If reading fails.
pub fn read_into(store: &mut Store, path: &Path) -> Result<Vec<LeftOut>, DocumentError> {
    let io = |path: &Path, error| DocumentError::Io {
        path: path.to_owned(),
        error,
    };
    let files = files(path).map_err(|error| io(path, error))?;
    let mut left_out = Vec::new();
    for path in files {
        let text = crate::text::read_bytes(&path).map_err(|error| io(&path, error))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // The operator's own files: what they cost is not counted.
        let parsed = keynote::parse_each(&text, &mut Work::unbounded());
        let parsed = parsed.unwrap_or_default();
        let path = &path;
        let errors = parsed.left_out.iter().cloned().map(|error| LeftOut {
            path: path.clone(),
            error,
        });
        left_out.extend(errors);
        store.add_parsed(parsed, &name);
    }
    Ok(left_out)
}
