//! Channels between OS processes, by way of memory that both have mapped.
//!
//! ```text
//!   upstream   names that this OS process does not have are asked for elsewhere
//!   hand       endpoints that leave in messages          arrivals   and that come
//!   travel     from one line to another
//!   bridge     a local channel at each side, joined          post   what a worker hears
//!   line       the messages in shared memory                 link   two OS processes, and their bells
//!   memory     mapped files that cannot shrink               bell   a word to sleep on
//!   turn       a bridge is used by one thread at a time
//! ```
//! Nothing that the other side writes is trusted: see [`mullion_sip_exchange::exchange::wire`] for what messages are made of.

use std::sync::OnceLock;
use std::sync::atomic::AtomicUsize;

pub use bridge::{JoinError, join};
pub use hand::{Carrier, Offer, PENDING, Passage, Peer, WINDOW, carry, given, open_desk};
pub use line::{ARENA, line_bytes, refuse};
pub use link::{LINK_BYTES, Link};
pub use memory::Memory;
pub use post::{LineMemory, line_memory, lines};
pub use upstream::{Elsewhere, Place, Upstream, accept, bind_elsewhere, place_of};

mod arrivals;
mod bell;
mod bridge;
mod hand;
mod head;
mod line;
mod link;
mod memory;
mod post;
mod travel;
mod turn;
mod upstream;

use crate::host::Host;
use crate::state::state;
use mullion_sip_exchange::channel::Info;
use mullion_sip_exchange::exchange::wire::{DecodeError, EncodeError};

/// Why a channel between OS processes was ended by its bridge.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Fault {
    /// What was sent cannot cross.
    #[error("what was sent cannot cross: {0}")]
    Unsendable(#[from] EncodeError),
    /// What came is no message.
    #[error("what came is no message of the contract: {0}")]
    Malformed(#[from] DecodeError),
    /// A message that its sender may not send in this state.
    #[error("a message that the contract does not allow in this state")]
    OutOfTurn,
    /// More than [`PENDING`] endpoints.
    #[error("more than {PENDING} endpoints whose channels are not made yet")]
    TooMany,
    /// An endpoint is of another contract or side, or in another state, than whoever sent it has said.
    #[error("an endpoint of another contract, side or state than was said")]
    Endpoint,
    /// A message that lies outside of the memory for messages.
    #[error("a message that lies outside of the memory for messages")]
    Elsewhere,
}

/// A link, and the memory of a channel over it.
pub type Path = (std::sync::Arc<Link>, Memory);

/// Told of every channel that a bridge has ended: the contract, the peer, and why.
pub type Reporter = fn(contract: &'static Info, peer: &str, fault: Fault);

/// What a program has of this once.
pub(crate) struct State {
    reporter: OnceLock<Reporter>,
    /// The worker of the next bridge.
    next: AtomicUsize,
    /// What each worker knows of its lines and bells.
    posts: OnceLock<Box<[post::Post]>>,
    /// Endpoints that leave.
    desk: hand::Desk,
}

impl State {
    pub(crate) const fn new() -> State {
        State {
            reporter: OnceLock::new(),
            next: AtomicUsize::new(0),
            posts: OnceLock::new(),
            desk: hand::Desk::new(),
        }
    }
}

impl Host {
    /// Has faults of channels between OS processes told to `reporter`; the first one stays. Without one they go
    /// to the standard error output.
    pub fn on_fault(&self, reporter: Reporter) {
        let _ = state().remote.reporter.set(reporter);
    }
}

fn report(contract: &'static Info, link: &Link, fault: Fault) {
    match state().remote.reporter.get() {
        Some(reporter) => reporter(contract, link.peer(), fault),
        None => eprintln!(
            "mullion: a channel of contract {} with {} was closed: {fault}",
            contract.name,
            link.peer()
        ),
    }
}
