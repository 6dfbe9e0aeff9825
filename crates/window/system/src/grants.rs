//! What a program may use beyond the default.

use crate::mount::{Mount, MountError};
use crate::streams::Streams;
use crate::threads::Threads;
use std::path::Path;
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
    /// The program's path of the directory that it begins in; `/` without one.
    pub working: Option<String>,
    /// Where its standard input, output and error lead.
    pub streams: Streams,
}

impl Grants {
    /// Looks for a directory that is granted for reading only and can be written all the same.
    ///
    /// # Errors
    /// One that lies in another one, which is granted for writing; a program that would begin in none of them.
    pub fn check(&self) -> Result<(), MountError> {
        if let Some(path) = &self.working {
            let whole = path.starts_with('/') && path.split('/').all(|part| part != "..");
            // In it, or above it: a program sees the way to what was granted.
            let shown = |mount: &Arc<Mount>| {
                let (path, guest) = (Path::new(path), Path::new(mount.guest()));
                path.starts_with(guest) || guest.starts_with(path)
            };
            if !whole || !self.mounts.iter().any(shown) {
                return Err(MountError::Working(path.clone()));
            }
        }
        let protected = self.mounts.iter().filter(|mount| mount.is_read_only());
        for inner in protected {
            for outer in self.mounts.iter().filter(|mount| !mount.is_read_only()) {
                inner.check_apart_from(outer)?;
            }
        }
        Ok(())
    }
}
