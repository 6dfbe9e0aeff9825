//! Errors in Linux' numbers.

use mullion_calls::{CallStop, Errno};
use mullion_runtime::{BadAddress, MappingError};

/// As the program is told.
pub(crate) fn told(error: rustix::io::Errno) -> CallStop {
    Errno(error.raw_os_error()).into()
}

pub(crate) fn of_io(error: std::io::Error) -> CallStop {
    told(rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO))
}

pub(crate) fn of_address(_: BadAddress) -> CallStop {
    Errno::FAULT.into()
}

pub(crate) fn of_mapping(error: MappingError) -> CallStop {
    CallStop::Error(match error {
        MappingError::Range => Errno::INVAL,
        MappingError::NoMemory | MappingError::Mappings { .. } | MappingError::NotMapped => {
            Errno::NOMEM
        }
        MappingError::Image => Errno::ACCESS,
    })
}
