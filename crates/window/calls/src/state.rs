//! What changes while the program runs.

use crate::descriptor::Descriptors;
use crate::handle::Handle;
use crate::locked::Locks;
use crate::path::absolute;
use crate::pipes::Pipes;
use alloc::borrow::ToOwned as _;
use alloc::string::String;
use alloc::vec::Vec;

/// What changes while the program runs.
pub struct ProgramState {
    pub(crate) descriptors: Descriptors,
    /// Files that are locked.
    pub(crate) locks: Locks,
    /// The program's paths of what it was granted.
    pub(crate) directories: Vec<String>,
    /// The working directory, a path of the program's.
    pub(crate) working: String,
    /// Pipes that are open, and places of those that were.
    pub(crate) pipes: Pipes,
    /// Bits that new files and directories do not get.
    pub(crate) umask: u32,
    /// Signals that the program ignores: bit `n` for signal `n`.
    pub(crate) ignored: u128,
}

impl ProgramState {
    /// A program's that has these streams, and was granted directories of these paths.
    #[must_use]
    pub fn new<'a>(streams: [Handle; 3], directories: impl Iterator<Item = &'a str>) -> Self {
        Self {
            descriptors: Descriptors::new(streams),
            locks: Locks::default(),
            directories: directories.map(|path| absolute("/", path)).collect(),
            working: "/".to_owned(),
            pipes: Pipes::default(),
            umask: 0o022,
            ignored: 0,
        }
    }

    /// The same in another working directory, a path of the program's.
    #[must_use]
    pub fn in_directory(mut self, path: &str) -> Self {
        self.working = absolute("/", path);
        self
    }
}
