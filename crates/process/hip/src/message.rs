//! What host and domain say to each other. It travels as messages between processes do: see
//! [`mullion_sip::exchange::wire`]; what a domain says is read as carefully.

use std::fmt;
use std::ops::Deref;

use mullion_sip::channel::Side;
use mullion_sip::process::names::NameError;
use mullion_sip::process::{Cause, Exit};
use mullion_sip::{ExString, ExVec, Exchange};
use mullion_sip_hosting::common_memory::{Member, Sharing};
use mullion_sip_hosting::remote::Passage;

use crate::members::Place;

/// Bytes of a message at most.
pub(crate) const LONGEST: usize = 64 << 10;

/// A text of at most 255 bytes, in place: whoever sends it may have used up its share of the exchange heap.
#[derive(Exchange, Clone, Copy)]
pub(crate) struct Text {
    length: u8,
    bytes: [u8; 255],
}

impl Text {
    /// As much of a text as there is room for.
    pub(crate) fn new(text: &str) -> Text {
        let length = text.floor_char_boundary(255);
        let mut bytes = [0; 255];
        bytes[..length].copy_from_slice(&text.as_bytes()[..length]);
        Text {
            length: length as u8,
            bytes,
        }
    }
}

/// Empty, if the sender has made it anything but a text.
impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.length)]).unwrap_or_default()
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(formatter)
    }
}

/// From the host.
#[derive(Exchange, Debug)]
#[repr(u8)]
#[allow(
    clippy::large_enum_variant,
    reason = "one at a time, and texts in place"
)]
pub(crate) enum ToDomain {
    /// The first: on how many workers to run, on which of the processors the first of them, and whether every
    /// member begins at once and the domain ends with the last of them; whether its kernel asks a supervisor. The configuration comes with it as a file,
    /// then, if it shares memory with other domains, that memory, and then the files of the launch.
    Begin {
        workers: u32,
        first: u32,
        together: bool,
        decided: bool,
        member: Option<Sharer>,
    },
    /// A member is to begin a life of this number.
    Start { member: u32, life: u64 },
    /// A life is to end.
    End { life: u64 },
    /// What lives, and which ends of channels it holds; to be answered.
    Look { request: u64 },
    /// Which memory its processes and its kernel have; to be answered.
    Map { request: u64 },
    /// The answer to a request. If it was to open a name and went well, with the memory of the link and the line.
    Answer {
        request: u64,
        error: u8,
        link: Option<Linked>,
    },
    /// Somebody opens a name of the domain, with the memory of the link and the line; to be answered.
    Accept {
        request: u64,
        path: Text,
        digest: [u8; 32],
        side: u8,
        link: Linked,
    },
    /// The peer of a link is no more.
    Down { link: u64 },
    /// The answer to an offer whose endpoint's peer is in the domain, with the memory of the link and the line, if the
    /// endpoint can be given to anybody.
    Given { number: u64, path: Option<Linked> },
    /// An endpoint is given to the domain that comes in a message over that line of that end of a link, with its number
    /// there; with the memory of its own link and line, if it still has a peer.
    Offer {
        over: End,
        line: u64,
        ticket: u32,
        passage: Passing,
        path: Option<Linked>,
    },
    /// Whoever had the other end of a line has handed it on; with the memory of the link and the line over which the
    /// channel goes on, if it does.
    Moved {
        over: End,
        line: u64,
        passage: Passing,
        path: Option<Linked>,
    },
    /// An endpoint that was offered over a link has been taken, or refused.
    Claimed { over: End },
}

/// Who a domain is among those that share memory.
#[derive(Exchange, Clone, Copy, Debug)]
pub(crate) struct Sharer {
    part: u8,
    life: u16,
    remapped: bool,
}

impl From<Place> for Sharer {
    fn from(place: Place) -> Sharer {
        Sharer {
            part: place.member.part,
            life: place.member.life,
            remapped: place.sharing == Sharing::Remapped,
        }
    }
}

impl From<Sharer> for Place {
    fn from(sharer: Sharer) -> Place {
        let Sharer { part, life, .. } = sharer;
        Place {
            member: Member { part, life },
            sharing: match sharer.remapped {
                true => Sharing::Remapped,
                false => Sharing::Open,
            },
        }
    }
}

/// A link, and which end of it.
#[derive(Exchange, Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct End {
    pub(crate) link: u64,
    pub(crate) end: u8,
}

impl End {
    pub(crate) fn of((link, end): (u64, u8)) -> End {
        End { link, end }
    }

    /// The one across.
    pub(crate) fn other(self) -> End {
        let end = 1 - self.end.min(1);
        End { end, ..self }
    }
}

/// What an endpoint is that is sent.
#[derive(Exchange, Clone, Copy, Debug)]
pub(crate) struct Passing {
    digest: [u8; 32],
    side: u8,
    state: u16,
}

impl From<Passage> for Passing {
    fn from(passage: Passage) -> Passing {
        Passing {
            digest: passage.digest,
            side: side_number(passage.side),
            state: passage.state,
        }
    }
}

impl From<Passing> for Passage {
    fn from(passing: Passing) -> Passage {
        Passage {
            digest: passing.digest,
            side: side_of(passing.side),
            state: passing.state,
        }
    }
}

/// One end of a link, and a line over it.
#[derive(Exchange, Clone, Copy, Debug)]
pub(crate) struct Linked {
    pub(crate) link: u64,
    pub(crate) line: u64,
    pub(crate) end: u8,
    pub(crate) peer: Text,
    /// The peer's life, if the two share memory.
    pub(crate) sharer: Option<u16>,
}

impl Linked {
    pub(crate) fn over(&self) -> End {
        End {
            link: self.link,
            end: self.end,
        }
    }
}

/// From a domain.
#[derive(Exchange, Debug)]
#[repr(u8)]
#[allow(
    clippy::large_enum_variant,
    reason = "one at a time, and texts in place"
)]
pub(crate) enum ToHost {
    /// The sandbox is closed, and the processes begin.
    Ready { landlock: bool },
    /// A process has bound a name.
    Bind {
        request: u64,
        path: Text,
        digest: [u8; 32],
    },
    /// It has taken it away.
    Unbind { path: Text },
    /// A process gives the service of a name an end on that side; its line needs so many bytes.
    Open {
        request: u64,
        path: Text,
        digest: [u8; 32],
        side: u8,
        bytes: u64,
    },
    /// The answer to `Accept`.
    Accepted { request: u64, error: u8 },
    /// An endpoint has left in a message over that line of that end of a link, with its number there. Its own line needs
    /// so many bytes; its peer is in the domain, which is to be answered with that number, or behind another line.
    Offer {
        over: End,
        line: u64,
        ticket: u32,
        passage: Passing,
        bytes: u64,
        number: u64,
        behind: Option<(End, u64)>,
    },
    /// An endpoint that was offered to the domain over that link has been taken, or refused.
    Claimed { over: End },
    /// The domain cannot have a line that it was told of over that end of a link, whose memory comes back with this:
    /// whoever has the other half is to know.
    Refused { over: End },
    /// A process of the domain has ended; of life 0, if all began together.
    Ended {
        life: u64,
        name: Text,
        cause: u8,
        status: u8,
        message: Text,
    },
    /// A bridge has ended a channel.
    Fault {
        contract: Text,
        peer: Text,
        fault: Text,
    },
    /// The domain cannot begin.
    Failed { reason: ExString },
    /// The answer to `Look`.
    Seen {
        request: u64,
        processes: ExVec<LifeSeen>,
        ends: ExVec<EndRow>,
    },
    /// The answer to `Map`: who has memory, which, and the lines, with what there was no room for.
    Mapped {
        request: u64,
        holders: ExVec<HolderRow>,
        pieces: ExVec<PieceRow>,
        lines: ExVec<LineRow>,
        left_out: u64,
    },
}

/// A process that has memory.
#[derive(Exchange, Debug)]
pub(crate) struct HolderRow {
    pub(crate) life: u64,
    pub(crate) name: ExString,
}

/// A piece of memory: whose by its place among the holders from 1, the kernel's if 0.
#[derive(Exchange, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct PieceRow {
    pub(crate) start: u64,
    pub(crate) bytes: u64,
    pub(crate) holder: u32,
    pub(crate) kind: u32,
}

/// The memory of a channel to another OS process: its number, and where it is mapped.
#[derive(Exchange, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct LineRow {
    pub(crate) number: u64,
    pub(crate) start: u64,
    pub(crate) bytes: u64,
}

/// A process of a domain, as its kernel counts it. Bytes, and the most that there may be.
#[derive(Exchange, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LifeSeen {
    /// Which life.
    pub life: u64,
    /// Its heap.
    pub memory: [u64; 2],
    /// Its share of the domain's exchange heap.
    pub exchange: [u64; 2],
    /// Messages that it has sent, from ends that it has and from those that it has closed.
    pub messages: u64,
    /// Its threads.
    pub threads: u32,
    /// Its worker.
    pub worker: u32,
}

/// An end of a channel that a process of a domain holds: see [`EndSeen`](crate::EndSeen).
#[derive(Exchange, Debug)]
pub(crate) struct EndRow {
    pub(crate) life: u64,
    pub(crate) channel: u64,
    pub(crate) line: u64,
    pub(crate) contract: ExString,
    pub(crate) side: u8,
    pub(crate) sent: u32,
    pub(crate) received: u32,
}

/// Errors of names by number; 0 is none.
const ERRORS: [NameError; 9] = [
    NameError::Malformed,
    NameError::NotPermitted,
    NameError::Taken,
    NameError::TooMany,
    NameError::Unbound,
    NameError::ContractDiffers,
    NameError::Busy,
    NameError::Served,
    NameError::NoProcess,
];

pub(crate) fn error_number(result: Result<(), NameError>) -> u8 {
    result.err().map_or(0, |error| {
        let place = ERRORS.iter().position(|known| *known == error);
        place.map_or(ERRORS.len(), |place| place + 1) as u8
    })
}

/// An unknown number is an error all the same.
pub(crate) fn error_of(number: u8) -> Result<(), NameError> {
    match usize::from(number).checked_sub(1) {
        None => Ok(()),
        Some(place) => Err(*ERRORS.get(place).unwrap_or(&NameError::Busy)),
    }
}

pub(crate) fn side_number(side: Side) -> u8 {
    match side {
        Side::Client => 0,
        Side::Server => 1,
    }
}

pub(crate) fn side_of(number: u8) -> Side {
    match number {
        0 => Side::Client,
        _ => Side::Server,
    }
}

/// Causes by number.
const CAUSES: [Cause; 8] = [
    Cause::Returned,
    Cause::Panic,
    Cause::Killed,
    Cause::Memory,
    Cause::Stack,
    Cause::Slice,
    Cause::Fault,
    Cause::Abort,
];

pub(crate) fn cause_number(cause: Cause) -> (u8, u8) {
    match cause {
        Cause::Exited(status) => (u8::MAX, status),
        other => {
            let place = CAUSES.iter().position(|known| *known == other);
            (place.unwrap_or(2) as u8, 0)
        }
    }
}

/// An unknown number was a kill, as far as anybody can tell.
pub(crate) fn exit_of(cause: u8, status: u8, message: &str) -> Exit {
    let cause = match cause {
        u8::MAX => Cause::Exited(status),
        other => *CAUSES.get(usize::from(other)).unwrap_or(&Cause::Killed),
    };
    exit(cause, message)
}

/// An end with words.
pub(crate) fn exit(cause: Cause, message: &str) -> Exit {
    use std::fmt::Write;
    let mut exit = Exit::from(cause);
    // It takes what fits, and never fails.
    let _ = exit.message.write_str(message);
    exit
}

#[cfg(test)]
mod tests {
    use super::*;
    use mullion_sip::exchange::wire::{from_bytes, to_bytes};

    #[test]
    fn errors_and_ends_keep_their_meaning() {
        for error in ERRORS {
            assert_eq!(error_of(error_number(Err(error))), Err(error));
        }
        assert_eq!(error_of(error_number(Ok(()))), Ok(()));
        assert_eq!(error_of(200), Err(NameError::Busy));
        for cause in CAUSES
            .into_iter()
            .chain([Cause::Exited(0), Cause::Exited(7)])
        {
            let (number, status) = cause_number(cause);
            assert_eq!(exit_of(number, status, "").cause, cause);
        }
        assert_eq!(exit_of(99, 0, "").cause, Cause::Killed);
    }

    #[test]
    fn messages_come_back_as_they_went() {
        let message = ToHost::Bind {
            request: 7,
            path: Text::new("/a"),
            digest: [3; 32],
        };
        let bytes = to_bytes(&message, LONGEST).expect("short");
        let Ok(ToHost::Bind {
            request: 7,
            path,
            digest,
        }) = from_bytes(&bytes)
        else {
            panic!("another message")
        };
        assert_eq!((&*path, digest), ("/a", [3; 32]));
        for cut in 0..bytes.len() {
            assert!(from_bytes::<ToHost>(&bytes[..cut]).is_err());
        }
    }
}
