//! How a process ended.

use std::fmt;

/// Why a process is no more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// Its main function returned.
    Returned,
    /// It asked to end, with this status.
    Exited(u8),
    /// It panicked.
    Panic,
    /// Its parent or the host ended it, or its parent ended.
    Killed,
    /// It asked for more memory than its limit, or than there is.
    Memory,
    /// It came to the end of a thread's stack.
    Stack,
    /// One of its threads ran for longer than its limit without letting others run.
    Slice,
    /// It did what the processor does not allow.
    Fault,
    /// It called `abort`, or the standard library did (a panic within a panic).
    Abort,
}

impl Cause {
    /// Whether it ended as it wanted to.
    pub fn is_success(self) -> bool {
        matches!(self, Cause::Returned | Cause::Exited(0))
    }

    /// For a signal handler to leave behind; never 0.
    pub(crate) const fn to_bits(self) -> u8 {
        match self {
            Cause::Returned | Cause::Exited(_) | Cause::Killed => 1,
            Cause::Panic => 2,
            Cause::Memory => 3,
            Cause::Stack => 4,
            Cause::Slice => 5,
            Cause::Fault => 6,
            Cause::Abort => 7,
        }
    }

    pub(crate) const fn from_bits(bits: u8) -> Cause {
        match bits {
            2 => Cause::Panic,
            3 => Cause::Memory,
            4 => Cause::Stack,
            5 => Cause::Slice,
            6 => Cause::Fault,
            7 => Cause::Abort,
            _ => Cause::Killed,
        }
    }
}

/// What is left of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exit {
    /// Why it ended.
    pub cause: Cause,
    /// What a panic said; else empty.
    pub message: Message,
}

/// A short text in a fixed place, so that the last words of a process need no memory of anybody's heap.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Message {
    bytes: [u8; Message::ROOM],
    length: u8,
}

impl Message {
    const ROOM: usize = 119;

    /// Nothing said.
    pub const EMPTY: Message = Message {
        bytes: [0; Message::ROOM],
        length: 0,
    };

    /// The text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.length)]).unwrap_or_default()
    }
}

impl fmt::Write for Message {
    /// Adds what fits.
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let start = usize::from(self.length);
        let length = text.floor_char_boundary(text.len().min(Message::ROOM - start));
        self.bytes[start..start + length].copy_from_slice(&text.as_bytes()[..length]);
        self.length += length as u8;
        Ok(())
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl From<Cause> for Exit {
    fn from(cause: Cause) -> Exit {
        Exit {
            cause,
            message: Message::EMPTY,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let mut message = Message::EMPTY;
        write!(message, "{}", "ä".repeat(100)).expect("never fails");
        assert_eq!(message.as_str(), "ä".repeat(59));
        message.write_str("x").expect("never fails");
        assert_eq!(message.as_str().len(), 119);
        message.write_str("y").expect("never fails");
        assert_eq!(message.as_str().len(), 119);
    }

    #[test]
    fn causes_survive_a_signal_handler() {
        for cause in [
            Cause::Panic,
            Cause::Killed,
            Cause::Memory,
            Cause::Stack,
            Cause::Slice,
            Cause::Fault,
            Cause::Abort,
        ] {
            assert_eq!(Cause::from_bits(cause.to_bits()), cause);
            assert_ne!(cause.to_bits(), 0);
        }
    }
}
