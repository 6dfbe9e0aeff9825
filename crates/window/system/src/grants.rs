//! What a program may use beyond the default.

use crate::mount::{Mount, MountError};
use crate::streams::Streams;
use crate::threads::Threads;
use std::sync::Arc;

/// What a program may use beyond the default.
#[derive(Clone, Default)]
pub struct Grants {
    /// Directories of the host, each under a path of the program's.
    pub mounts: Vec<Arc<Mount>>,
    /// The clocks: reading them, and sleeping.
    pub clock: bool,
    /// Threads of its own.
    pub threads: Option<Arc<dyn Threads>>,
    /// Where its standard input, output and error lead.
    pub streams: Streams,
}

impl Grants {
    /// Looks for a directory that is granted for reading only and can be written all the same.
    ///
    /// # Errors
    /// One that lies in another one, which is granted for writing.
    pub fn check(&self) -> Result<(), MountError> {
        let protected = self.mounts.iter().filter(|mount| mount.is_read_only());
        for inner in protected {
            for outer in self.mounts.iter().filter(|mount| !mount.is_read_only()) {
                inner.check_apart_from(outer)?;
            }
        }
        Ok(())
    }
}
