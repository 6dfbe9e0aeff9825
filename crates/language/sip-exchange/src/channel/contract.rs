//! What a channel knows of its contract when it runs.

use std::fmt;

use crate::exchange::coding::{Step, Wire};
use crate::exchange::visitor::Visitor;
use mullion_sip_digest::Digest;

use super::message::{Messages, State};

/// Which end of a channel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Side {
    /// The first endpoint of `channel()`.
    Client,
    /// The second.
    Server,
}

impl Side {
    /// 0 or 1.
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The other one.
    #[inline]
    pub const fn peer(self) -> Side {
        match self {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Side::Client => "client",
            Side::Server => "server",
        })
    }
}

/// A contract as a type; made by [`contract!`](crate::contract) only.
///
/// # Safety
/// All of it describes one state machine. [`Contract::BOUNDS`] are the most messages that can wait; states and messages are
/// as their traits ([`State`], [`Message`](super::message::Message)) say; nobody but the trait says what [`Contract::INFO`] is.
pub unsafe trait Contract: Sized + 'static {
    /// The name of its module.
    const NAME: &'static str;
    /// It in one spelling.
    const TEXT: &'static str;
    /// Each state's name and sender.
    const STATES: &'static [(&'static str, Side)];
    /// Where each message leads, by its number.
    const STEPS: &'static [Step];
    /// The most messages that can wait for the client, and for the server.
    const BOUNDS: [usize; 2];
    /// The state in which a channel starts.
    type Start: State<Contract = Self>;
    /// Its messages, in the order of their numbers.
    type Messages: Messages<Self>;

    /// Its text, digest and queues.
    const INFO: &'static Info = &Info::of::<Self>();
}

/// The description of a contract.
#[derive(Debug)]
pub struct Info {
    /// The name of its module.
    pub name: &'static str,
    /// It in one spelling, whatever its layout in the source.
    pub text: &'static str,
    /// Covers the text, and the layout of everything that is sent. Sides that agree on it agree on everything.
    pub digest: Digest,
    /// Each state's name and sender; a channel starts in the first.
    pub states: &'static [(&'static str, Side)],
    /// The queues, by receiver: the client's and the server's.
    pub(crate) rings: [Ring; 2],
    /// The whole channel, in bytes.
    pub(crate) size: usize,
    /// Visits a message's payload.
    pub(crate) visit: Visit,
    /// Its messages as bytes.
    pub wire: Wire,
}

/// Visits the payload of a message with a certain number.
///
/// # Safety of calls
/// `payload` points to such a payload.
pub(crate) type Visit = unsafe fn(number: u16, payload: *const u8, visitor: &mut dyn Visitor);

impl Info {
    /// A contract's description, with its queues behind the two lines that the sides share.
    const fn of<C: Contract>() -> Info {
        let room = <C::Messages as Messages<C>>::ROOM;
        let client = Ring::new(C::BOUNDS[0], room[0]).at(2 * LINE);
        let server = Ring::new(C::BOUNDS[1], room[1]).at(client.start + client.bytes());
        let size = server.start + server.bytes();
        assert!(
            size <= LARGEST_CHANNEL,
            "the queues of this contract take more than 2 MiB: send large payloads as ExBox or ExVec"
        );
        let digest = Digest::new()
            .text(C::TEXT)
            .number(<C::Messages as Messages<C>>::COUNT as u64)
            .digest(<C::Messages as Messages<C>>::DIGEST);
        Info {
            name: C::NAME,
            text: C::TEXT,
            digest: digest.finish(),
            states: C::STATES,
            rings: [client, server],
            size,
            visit: <C::Messages as Messages<C>>::visit,
            wire: Wire {
                steps: C::STEPS,
                encode: <C::Messages as Messages<C>>::encode,
                decode: <C::Messages as Messages<C>>::decode,
                copied: <C::Messages as Messages<C>>::copied,
            },
        }
    }

    /// The most messages that can wait for a side.
    pub const fn bound(&self, receiver: Side) -> usize {
        self.rings[receiver.index()].bound
    }

    /// The step that a message is, if `sender` may send it in this state.
    #[inline]
    pub fn step(&self, state: u16, sender: Side, number: u16) -> Option<Step> {
        let (_, sends) = self.states.get(usize::from(state))?;
        let step = self.wire.steps.get(usize::from(number))?;
        (*sends == sender && step.from == state).then_some(*step)
    }
}

/// A queue: a ring of slots, each with a word that says which message is in it, and room for its payload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ring {
    bound: usize,
    /// The bound, rounded up to a power of two; 0 for a side that never receives.
    pub(crate) slots: u32,
    /// Bytes from one slot to the next.
    pub(crate) stride: usize,
    /// Where the first slot is, from the beginning of the channel.
    pub(crate) start: usize,
    /// Where the payload is in its slot, behind the word.
    pub(crate) payload: usize,
}

/// Size and alignment of a payload.
pub(crate) type Slot = (usize, usize);

/// What a payload of type `T` needs of a slot.
pub(crate) const fn slot<T>() -> Slot {
    assert!(
        align_of::<T>() <= LINE,
        "a payload's alignment is at most 64 bytes"
    );
    (size_of::<T>(), align_of::<T>())
}

/// A cache line.
pub(crate) const LINE: usize = 64;
/// The word in front of a slot's payload.
const WORD: usize = 8;
/// More than a large page for messages in place is a mistake: payloads of that size go by pointer.
const LARGEST_CHANNEL: usize = 1 << 21;

impl Ring {
    /// A ring for `bound` messages of at most this size and alignment.
    const fn new(bound: usize, (size, align): Slot) -> Ring {
        let align = if align > WORD { align } else { WORD };
        Ring {
            bound,
            slots: if bound == 0 {
                0
            } else {
                bound.next_power_of_two() as u32
            },
            stride: (align + size).next_multiple_of(align),
            start: 0,
            payload: align,
        }
    }

    const fn bytes(&self) -> usize {
        self.slots as usize * self.stride
    }

    const fn at(mut self, start: usize) -> Ring {
        self.start = start.next_multiple_of(LINE);
        self
    }
}
