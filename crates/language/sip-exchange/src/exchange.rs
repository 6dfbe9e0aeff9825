//! The exchange heap: blocks that move between processes by pointer.
//!
//! ```text
//!   one reservation of address space, aligned to its size
//!   ├─ records   32 bytes for each block that there could be: links, owner, ...
//!   ├─ ledgers   what each owner holds and may hold
//!   └─ blocks    one span for each size, 64 bytes to 128 MiB
//! ```
//! Everything the heap itself relies on is in the records, apart from the blocks: what a peer may write is
//! payload only. A block's size and record follow from its address by arithmetic.
//!
//! **Owners.** Every block is on the list of its owner, inner blocks of a tree as well, so that the end of a
//! process frees each of its blocks once, at a cost in their number alone, and also those that it has leaked
//! (`mem::forget`) or hung into a tree somewhere. Only the owner's worker touches a list: a sent block leaves
//! the sender's list on the sender's worker and joins the receiver's on the receiver's, and in between it is
//! on none, found through the queue it waits in. So no list needs a lock or an atomic operation. The price is
//! that a tree is visited, node by node, when it is sent and received (it is not copied, and without
//! recursion, so a deep tree costs no stack); a message of one block costs two unlinks and two links. An
//! owner's latest block waits beside its list, so that what is sent on or dropped at once needs neither.
//!
//! **Limits.** What a process holds counts against its share; what it has sent counts until its peer answers,
//! so that a queue is nobody's hiding place.

use std::sync::atomic::{Ordering, fence};
use std::sync::{Mutex, OnceLock};

use crate::channel;
use crate::inner::CORE;
use mullion_sip_core::Hooks;
use mullion_sip_core::owner::Owner;
use mullion_sip_digest::Digest;

pub use block::ExBox;
pub(crate) use parcel::Parcel;
pub use sendable::{Exchange, Handles};
pub use shape::Shape;
pub use text::{ExString, NotText};
pub use vector::ExVec;

pub(crate) mod block;
pub(crate) mod census;
mod claim;
#[cfg(feature = "separate")]
pub(crate) mod commons;
#[cfg(not(feature = "separate"))]
pub mod commons;
mod credit;
pub(crate) mod ledger;
mod pages;
pub(crate) mod parcel;
pub(crate) mod region;
pub(crate) mod sendable;
pub(crate) mod shape;
pub(crate) mod sizes;
mod table;
mod text;
mod vector;
pub(crate) mod walk;
pub mod wire;
pub(crate) mod worker;

pub(crate) use block::discard;
pub use census::{Census, census};

/// What copies of this crate share: the heap, once for the program.
#[allow(missing_debug_implementations)]
pub struct State {
    region: OnceLock<region::Region>,
    everything: Mutex<worker::Everything>,
    stores: [Mutex<worker::Store>; sizes::CLASSES + sizes::COMMON],
    commons: OnceLock<commons::Commons>,
}

impl State {
    pub(crate) const fn new() -> State {
        State {
            region: OnceLock::new(),
            everything: Mutex::new(worker::Everything::new()),
            stores: [const { Mutex::new(worker::Store::EMPTY) }; sizes::CLASSES + sizes::COMMON],
            commons: OnceLock::new(),
        }
    }
}

/// This copy's.
pub(crate) static OWN: State = State::new();

mullion_sip_core::__state!(OWN: State);

/// Where the compiler has put what copies of this crate share of the heap.
pub(crate) const LAYOUT: Digest = {
    use region::{Ledger, Record};
    use std::mem::offset_of;
    let hasher = Digest::new()
        .number(size_of::<State>() as u64)
        .number(align_of::<State>() as u64)
        .number(size_of::<worker::Worker>() as u64)
        .number(align_of::<worker::Worker>() as u64)
        .number(size_of::<Ledger>() as u64)
        .number(size_of::<Record>() as u64);
    hasher
        .number(offset_of!(Record, next) as u64)
        .number(offset_of!(Record, previous) as u64)
        .number(offset_of!(Record, holder) as u64)
        .number(offset_of!(Record, work) as u64)
        .number(offset_of!(Record, count) as u64)
        .number(offset_of!(Record, scan) as u64)
        .digest(channel::LAYOUT)
        .finish()
};

/// What the heap does when workers and processes begin and end. Blocks go back before any other teardown.
pub(crate) const HOOKS: Hooks = Hooks {
    worker_begins: || {
        worker::current();
    },
    process_begins: |owner, limits| set_limit(owner, limits.exchange),
    ..Hooks::NONE
};

/// Why a block was not to be had.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum HeapError {
    /// The owner's share is used up.
    #[error(
        "the process holds {held} of {limit} bytes in the exchange heap; {wanted} more were asked for"
    )]
    Limit {
        /// Bytes that it holds, and has sent without an answer.
        held: u64,
        /// Bytes that it may hold.
        limit: u64,
        /// Bytes asked for, as the heap rounds them up.
        wanted: u64,
    },
    /// More than the largest block.
    #[error("{0} bytes are more than the largest block of the exchange heap ({largest})", largest = sizes::LARGEST)]
    TooLarge(usize),
    /// The span of blocks of this size is full.
    #[error("no more blocks of {0} bytes in the exchange heap")]
    Exhausted(usize),
}

/// What an owner holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Share {
    /// Bytes that it holds, and has sent without an answer.
    pub held: u64,
    /// Bytes that it may hold.
    pub limit: u64,
}

/// Lets a process hold `limit` bytes from now on; what it holds already it keeps.
/// To be called on the process's worker, or before it runs.
pub(crate) fn set_limit(owner: Owner, limit: u64) {
    let _critical = CORE.critical();
    ledger::of(owner).set_limit(limit);
}

/// What an owner holds, from any thread; for [`Owner::HOST`] the calling thread's own share. Nothing, if the owner's
/// process has ended.
///
/// The owner's worker goes on meanwhile, and may end the process and begin another one with its number. So the ledger is
/// read, and never written: what has not begun is opened by its worker alone. What was read counts only if the process
/// still lives after that. Its end begins a new generation before anything of the next life is written
/// (`Process::close`), so a number of the next life is never taken for one of the last. While a process ends, its share
/// falls to 0, and its limit may be seen as none.
pub(crate) fn share_of(owner: Owner) -> Share {
    if owner == Owner::HOST {
        return ledger::of(owner).share();
    }
    alive_after(owner, ledger::look(owner).share())
}

/// Messages that an owner has sent from ends that it has closed, from any thread; as [`share_of`].
pub(crate) fn sent(owner: Owner) -> u64 {
    if owner == Owner::HOST {
        return ledger::of(owner).sent();
    }
    alive_after(owner, ledger::look(owner).sent())
}

/// What was read of an owner, if its process has not ended since.
fn alive_after<T: Default>(owner: Owner, read: T) -> T {
    fence(Ordering::Acquire);
    if CORE.is_alive(owner) {
        read
    } else {
        T::default()
    }
}

/// Frees everything that an owner still holds, and closes its endpoints: the end of a process.
/// To be called on its worker, when none of its threads runs any more; processes have it done by themselves.
pub(crate) fn end_of(owner: Owner) {
    let _critical = CORE.critical();
    if owner != Owner::HOST {
        walk::end(ledger::of(owner));
    }
}
