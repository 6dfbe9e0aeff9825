//! What changes while the program runs.

use crate::descriptor::Descriptors;
use crate::grants::Grants;

/// What changes while the program runs.
pub(crate) struct State {
    pub(crate) descriptors: Descriptors,
    /// The working directory, a path of the program's.
    pub(crate) directory: String,
    /// Bits that new files and directories do not get.
    pub(crate) umask: u32,
    /// Signals that the program ignores: bit `n` for signal `n`.
    pub(crate) ignored: u128,
}

impl State {
    pub(crate) fn new(grants: &Grants) -> Self {
        Self {
            descriptors: Descriptors::new(&grants.streams),
            directory: "/".to_owned(),
            umask: 0o022,
            ignored: 0,
        }
    }
}
