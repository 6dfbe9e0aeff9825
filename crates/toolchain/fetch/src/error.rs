//! What can go wrong between a lock file and an unpacked tree.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

/// Why a source could not be had.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// Neither `XDG_CACHE_HOME` nor `HOME` says where the cache is.
    #[error("no cache directory: set XDG_CACHE_HOME or HOME")]
    NoCache,
    /// A file or directory of the cache, or an archive.
    #[error("{path}: {cause}")]
    Io {
        /// What was touched.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// A package client could not be started.
    #[error(
        "{program} could not be started ({cause}); install it, or put the archive into a directory \
         and name that in MULLION_SOURCES"
    )]
    Start {
        /// Its name.
        program: String,
        /// What the system said.
        cause: io::Error,
    },
    /// A package client failed.
    #[error(
        "{program} failed ({status}):\n  {said}\nWithout a network, put the archive into a directory \
         and name that in MULLION_SOURCES"
    )]
    Client {
        /// Its name.
        program: String,
        /// How it ended.
        status: ExitStatus,
        /// The end of what it wrote to standard error.
        said: String,
    },
    /// A client succeeded but did not leave what was asked for.
    #[error("{name}: the package client left no {wanted}")]
    Missing {
        /// The source's name.
        name: String,
        /// What was expected.
        wanted: String,
    },
    /// The archive is none of those that the lock file lists.
    #[error("{name}: {file} has SHA-256 {found}, which sysroot/sources.toml does not list")]
    Digest {
        /// The source's name.
        name: String,
        /// The archive.
        file: PathBuf,
        /// Its digest.
        found: String,
    },
    /// The lock file names no such source.
    #[error("sysroot/sources.toml lists no source named {0}")]
    Unlisted(String),
    /// The lock file is not what it should be.
    #[error("sysroot/sources.toml: {0}")]
    Lock(String),
}

impl FetchError {
    pub(crate) fn io(path: &Path, cause: io::Error) -> Self {
        Self::Io {
            path: path.to_path_buf(),
            cause,
        }
    }
}
