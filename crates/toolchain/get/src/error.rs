//! Why a library could not be made ready.

use mullion_bind::BindError;
use mullion_fetch::FetchError;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

/// Why a library could not be made ready.
#[derive(Debug, thiserror::Error)]
pub enum GetError {
    /// No recipe has that name.
    #[error("there is no recipe for {0}; there are {all}", all = crate::NAMES.join(", "))]
    Unknown(String),
    /// A recipe of this build cannot be read.
    #[error("the recipe of {name}: {cause}")]
    Recipe {
        /// Of which library.
        name: String,
        /// What is wrong with it.
        cause: String,
    },
    /// A source could not be had.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// A file or directory.
    #[error("{path}: {cause}")]
    Io {
        /// Which one.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// The directory has files already.
    #[error("{0} is not empty; name another directory, or replace what is there with --force")]
    Occupied(PathBuf),
    /// A command of the build failed.
    #[error("{command}: {status}\n  {said}\nEverything that it said is in {log}")]
    Step {
        /// The command.
        command: String,
        /// How it ended.
        status: ExitStatus,
        /// The end of what it said.
        said: String,
        /// A file with all of it.
        log: PathBuf,
    },
    /// The interface could not be read.
    #[error("{header}: {cause}")]
    Bind {
        /// The header.
        header: String,
        /// Why.
        cause: BindError,
    },
}

impl GetError {
    pub(crate) fn io(path: &Path, cause: io::Error) -> Self {
        Self::Io {
            path: path.to_path_buf(),
            cause,
        }
    }
}
