//! What the calls of the table answer.

use crate::process::SpawnError;
use crate::process::names::NameError;
use mullion_sip_exchange::channel::ChannelClosed;
use mullion_sip_exchange::exchange::HeapError;
use mullion_sip_exchange::exchange::wire::{DecodeError, EncodeError};
use mullion_sip_exchange::interior::Unsent;

/// Why a call of the table did nothing; 0 stands for done. Numbers are never used for anything else later.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
#[non_exhaustive]
pub enum Refusal {
    /// The caller is a thread of the host, which has no such things by number.
    NoProcess = 1,
    /// As many threads, children, names or channels as the process may have.
    TooMany = 2,
    /// No memory, or not within the process's limits.
    NoMemory = 3,
    /// A pointer that is needed is null.
    Null = 4,
    /// A text that is not UTF-8, a name that is none, options of another size or with an impossible value.
    Malformed = 5,
    /// No such contract, program, channel or child of the caller.
    Unknown = 6,
    /// The process has no right to the name.
    NotPermitted = 7,
    /// Somebody has bound the name.
    Taken = 8,
    /// Nobody, or not the caller, has bound the name.
    Unbound = 9,
    /// The service speaks another contract.
    ContractDiffers = 10,
    /// Another thread waits there, or the service takes no more channels at the moment.
    Busy = 11,
    /// The contract does not allow it in this state, or has no such message.
    OutOfTurn = 12,
    /// The channel's other end is closed.
    Closed = 13,
    /// The bytes are no payload of the message.
    NotAMessage = 14,
    /// The room is too small for the message, or a list is too long.
    TooLong = 15,
    /// The message holds an endpoint, or is nested too deep, and has no bytes.
    NoBytes = 16,
    /// The deadline has passed.
    Deadline = 17,
    /// No worker runs.
    NotStarted = 18,
}

pub(super) fn answer(done: Result<(), Refusal>) -> u32 {
    done.map_or_else(|refusal| refusal as u32, |()| 0)
}

impl From<NameError> for Refusal {
    fn from(error: NameError) -> Refusal {
        match error {
            NameError::Malformed => Refusal::Malformed,
            NameError::NotPermitted => Refusal::NotPermitted,
            NameError::Taken => Refusal::Taken,
            NameError::TooMany => Refusal::TooMany,
            NameError::Unbound => Refusal::Unbound,
            NameError::ContractDiffers => Refusal::ContractDiffers,
            NameError::Busy | NameError::Served => Refusal::Busy,
            NameError::NoProcess => Refusal::NoProcess,
        }
    }
}

impl From<HeapError> for Refusal {
    fn from(_: HeapError) -> Refusal {
        Refusal::NoMemory
    }
}

impl From<Unsent> for Refusal {
    fn from(error: Unsent) -> Refusal {
        match error {
            Unsent::OutOfTurn => Refusal::OutOfTurn,
            Unsent::Closed => Refusal::Closed,
            Unsent::Malformed(DecodeError::Heap(error)) | Unsent::Limit(error) => error.into(),
            Unsent::Malformed(_) => Refusal::NotAMessage,
        }
    }
}

impl From<EncodeError> for Refusal {
    fn from(error: EncodeError) -> Refusal {
        match error {
            EncodeError::TooLong(_) => Refusal::TooLong,
            EncodeError::TooDeep | EncodeError::Endpoint | EncodeError::TooManyEnds => {
                Refusal::NoBytes
            }
        }
    }
}

impl From<ChannelClosed> for Refusal {
    fn from(_: ChannelClosed) -> Refusal {
        Refusal::Closed
    }
}

impl From<SpawnError> for Refusal {
    fn from(error: SpawnError) -> Refusal {
        match error {
            SpawnError::NotStarted => Refusal::NotStarted,
            SpawnError::TooMany => Refusal::TooMany,
            SpawnError::NoStack => Refusal::NoMemory,
            SpawnError::Refused => Refusal::NotPermitted,
            SpawnError::NoProcess => Refusal::NoProcess,
        }
    }
}
