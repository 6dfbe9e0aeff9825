//! Why a call did not return, a host function ends one, or memory stays as it was.

use crate::error::Error;
use crate::fault::RawFault;

/// Why a call did not return.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The domain faulted, or its time was up. It takes no further calls.
    #[error(transparent)]
    Fault(Box<RawFault>),
    /// The domain ended by itself. It takes no further calls.
    #[error("the domain exited with status {0}")]
    Exit(i32),
    /// A host function ended the invocation.
    #[error("a host function ended the call: {0}")]
    Refused(Box<dyn std::error::Error + Send + Sync>),
    /// The call was not made.
    #[error(transparent)]
    NotMade(#[from] Error),
}

impl From<Error> for Box<CallError> {
    #[cold]
    fn from(error: Error) -> Self {
        Self::new(error.into())
    }
}

/// Why a host function ends the invocation that called it.
#[derive(Debug, thiserror::Error)]
pub enum CallEnd {
    /// The domain asked to end, as `exit` does; no fault.
    #[error("exited with status {0}")]
    Exit(i32),
    /// The domain raised a signal against itself.
    #[error("raised signal {0}")]
    Raised(i32),
    /// It has handed out more bytes than it was granted.
    #[error("output limit of {granted} bytes exceeded")]
    OutputLimit {
        /// What it was granted.
        granted: u64,
    },
    /// The host will not go on.
    #[error(transparent)]
    Refused(#[from] Box<dyn std::error::Error + Send + Sync>),
}

/// Why a change of mappings is refused; the system interface answers with the
/// `errno` in brackets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MappingError {
    /// Not whole pages of the part of the window for image and heap. \[EINVAL\]
    #[error("not whole pages between the image and the data stacks")]
    Range,
    /// The memory limit would be exceeded, or the kernel has no more. \[ENOMEM\]
    #[error("no memory left for the domain")]
    NoMemory,
    /// The limit of mappings would be exceeded. \[ENOMEM\]
    #[error("the domain would take {needed} mappings; its limit is {limit} (see --max-mappings)")]
    Mappings {
        /// What is needed.
        needed: usize,
        /// The limit.
        limit: usize,
    },
    /// Part of the range is not mapped. \[ENOMEM\]
    #[error("part of the range is not mapped")]
    NotMapped,
    /// The pages are the image's, or the host has shared them. \[EACCES\]
    #[error("the pages are not the domain's own")]
    Image,
}

/// Why pages are not shared.
#[derive(Debug, thiserror::Error)]
pub enum ShareError {
    /// Not whole pages of the object, or executable.
    #[error("not whole pages of the shared object, or executable")]
    Range,
    /// The domain has mapped something else there, or too many regions, or the
    /// kernel has no more mappings.
    #[error("the pages cannot be mapped: {0}")]
    Mapping(#[from] MappingError),
}
