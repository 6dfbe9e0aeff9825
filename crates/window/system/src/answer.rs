//! What a call returns.

use mullion_runtime::End;
use rustix::io::Errno;

/// Why a call has no ordinary result.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The program is told so.
    Error(Errno),
    /// The program ends.
    End(End),
}

impl From<Errno> for Stop {
    fn from(error: Errno) -> Self {
        Self::Error(error)
    }
}

impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Self {
        Self::Error(Errno::from_io_error(&error).unwrap_or(Errno::IO))
    }
}

impl From<mullion_runtime::BadAddress> for Stop {
    fn from(_: mullion_runtime::BadAddress) -> Self {
        Self::Error(Errno::FAULT)
    }
}

impl From<mullion_runtime::MappingError> for Stop {
    fn from(error: mullion_runtime::MappingError) -> Self {
        use mullion_runtime::MappingError;
        Self::Error(match error {
            MappingError::Range => Errno::INVAL,
            MappingError::NoMemory | MappingError::Mappings { .. } | MappingError::NotMapped => {
                Errno::NOMEM
            }
            MappingError::Image => Errno::ACCESS,
        })
    }
}

/// What a call returns: `%rax`, or why there is none.
pub(crate) type Answer = Result<u64, Stop>;
