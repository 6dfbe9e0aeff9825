//! What the crates above may call, and processes may not.

use std::ptr::NonNull;

use mullion_sip_core::owner::{self, Owner};
use mullion_sip_core::{Hooks, Refused};
use mullion_sip_digest::Digest;

pub use crate::channel::bytes::{ByBytes, Unsent};

pub use crate::channel::line::{Word, order};
pub use crate::channel::place::{EndpointPlace, Hook};
use crate::channel::{self, AnyEndpoint, Info, Side};
pub use crate::exchange::coding::copy_once;
use crate::exchange::coding::{Reader, Writer};
pub use crate::exchange::ends::{Arriving, Foreign, Leaving};
pub use crate::exchange::ledger::{Debtor, OwnerLedger};
pub use crate::exchange::parcel::Parcel;
use crate::exchange::region::Region;
use crate::exchange::{Handles, HeapError, Share, accounts, blocks, common_memory, life};
use crate::state;
pub use crate::state::State;

/// The exchange heap and the channels, for the crates that stand on them. Each of them makes one, in a private constant.
///
/// No process has one: its code is safe, and only `unsafe` code makes one. So the methods need not be harmless in the hands of
/// processes. Some are memory-safe only in the order in which the crates above call them.
#[derive(Clone, Copy, Debug)]
pub struct Interior(());

/// The heap.
impl Interior {
    /// Where the compiler has put what copies of this crate share.
    pub const LAYOUT: Digest = state::LAYOUT;

    /// Of OS processes that share memory, the life of none.
    pub const NOBODY: u16 = common_memory::NOBODY;

    /// For a crate that is as trusted as this one.
    ///
    /// # Safety
    /// The caller keeps the value, and whatever its methods give, from code of processes. It calls each method as its
    /// text says.
    pub const unsafe fn new() -> Interior {
        Interior(())
    }

    /// What the heap does when workers and processes begin.
    pub const fn hooks(self) -> Hooks {
        life::HOOKS
    }

    /// Frees everything that an owner still holds, and closes its endpoints: a [`Teardown`](mullion_sip_core::owner::Teardown)
    /// function.
    pub const fn teardown(self) -> fn(Owner) {
        life::end_of
    }

    /// What copies of this crate share, by which another copy is attached.
    pub const fn own_state(self) -> &'static State {
        &state::OWN
    }

    /// From here on this copy of the crate works with the host's state.
    ///
    /// # Safety
    /// `host` is the state of a copy of this crate with the same layout. Nothing but the allocator of this copy has been
    /// used, and by the calling OS thread only.
    #[cfg(feature = "separate")]
    pub unsafe fn attach(self, host: &'static State) {
        state::attach(host);
    }

    /// What an owner holds, from any thread; for [`Owner::HOST`] the calling thread's own share. Nothing, if the owner's
    /// process has ended or has not begun.
    #[inline]
    pub fn share_of(self, owner: Owner) -> Share {
        life::share_of(owner)
    }

    /// Messages that an owner has sent from ends that it has closed, from any thread; as [`Interior::share_of`].
    #[inline]
    pub fn sent(self, owner: Owner) -> u64 {
        life::sent(owner)
    }

    /// The ledger and the list of an owner, on the owner's worker; of the calling thread, if that is the host.
    #[inline]
    pub fn ledger(self, owner: Owner) -> OwnerLedger {
        accounts::of(owner)
    }

    /// Gives back what a debtor has paid for, from any worker; nothing if it has ended.
    pub fn give_back(self, debtor: Debtor, bytes: u64) {
        debtor.give_back(bytes);
    }

    /// Where the blocks are: the first address, and the bytes of the spans of all sizes.
    pub fn blocks(self) -> (usize, usize) {
        Region::get().blocks()
    }
}

/// Values in flight.
impl Interior {
    /// Gives up a value of the calling thread's owner.
    #[inline]
    pub fn pack<T: Handles>(self, value: T) -> Parcel<T> {
        Parcel::packed(value).0
    }

    /// Gives up a value, and says how much it has counted.
    pub fn pack_counted<T: Handles>(self, value: T) -> (Parcel<T>, u64) {
        Parcel::packed(value)
    }

    /// Asks whether an owner may have the ends of channels in the value.
    ///
    /// # Errors
    /// It may not have one of them.
    #[inline]
    pub fn ask<T: Handles>(self, parcel: &Parcel<T>, owner: Owner) -> Result<(), Refused> {
        parcel.ask(owner)
    }

    /// Takes the value, for the calling thread's owner.
    pub fn open<T: Handles>(self, parcel: Parcel<T>) -> T {
        parcel.open_for(owner::current())
    }

    /// Takes the value for an owner of this worker, which may not run yet.
    #[inline]
    pub fn open_for<T: Handles>(self, parcel: Parcel<T>, owner: Owner) -> T {
        parcel.open_for(owner)
    }
}

/// Channels.
impl Interior {
    /// A new channel in the first state of a contract that is known as a description alone: the client's end, the server's.
    ///
    /// # Errors
    /// The caller's share or the heap is used up.
    pub fn channel(self, contract: &'static Info) -> Result<[AnyEndpoint; 2], HeapError> {
        channel::any::untyped(contract)
    }

    /// An end, as code that knows no types uses it.
    #[inline]
    pub fn by_bytes(self, end: &mut AnyEndpoint) -> ByBytes<'_> {
        ByBytes::of(end)
    }

    /// The slots of the queue of what comes to a side.
    pub fn slots(self, contract: &Info, side: Side) -> u32 {
        contract.rings[side.index()].slots
    }

    /// Takes an end from its owner, for a peer in another OS process.
    pub fn take(self, end: AnyEndpoint) -> Foreign {
        Foreign::take(end)
    }

    /// A new channel in a state: one side's end in flight, and the other one.
    ///
    /// # Errors
    /// The heap is used up.
    pub fn pair(
        self,
        contract: &'static Info,
        side: Side,
        state: u16,
    ) -> Result<(NonNull<EndpointPlace>, Foreign), HeapError> {
        Foreign::pair(contract, side, state)
    }

    /// Drops a payload of a message that nobody has received.
    ///
    /// # Safety
    /// It is the payload of a message of this contract with this number, in flight, and nobody looks at it again.
    pub unsafe fn discard(self, contract: &'static Info, number: u16, payload: *const u8) {
        blocks::discard(|discard| {
            // SAFETY: the caller's promise is what `visit` asks for; the payload is visited once.
            unsafe { (contract.visit)(number, payload, discard) };
        });
    }
}

/// Messages to and from other OS processes.
impl Interior {
    /// A writer of messages into raw memory. It has inline room, room for what does not fit there, what is lent to a
    /// peer that shares memory, and what leaves.
    ///
    /// # Safety
    /// Both are memory that only this writer writes in this OS process, as long as it lives.
    #[inline]
    pub unsafe fn writer<'a>(
        self,
        small: (*mut u8, usize),
        large: (*mut u8, usize),
        lent: Option<&'a mut Vec<u32>>,
        leaving: &'a mut Leaving,
    ) -> Writer<'a> {
        // SAFETY: only this writer writes both pieces of memory, as long as it lives, which is all that `Writer::at`
        // asks.
        unsafe { Writer::at(small, large) }
            .lending(lent)
            .leaving(leaving)
    }

    /// Bytes that were left out before the payload, so that it is aligned.
    #[inline]
    pub fn padding(self, writer: &Writer<'_>) -> usize {
        writer.padding()
    }

    /// A reader of bytes that another OS process may go on writing, from a peer that may share memory.
    ///
    /// # Safety
    /// They are mapped as long as the reader lives.
    #[inline]
    pub unsafe fn reader<'a>(
        self,
        start: *const u8,
        length: usize,
        lender: Option<u16>,
        arriving: &'a mut Arriving,
    ) -> Reader<'a> {
        // SAFETY: the bytes are mapped as long as the reader lives, which is all that `Reader::at` asks.
        unsafe { Reader::at(start, length) }
            .lent_by(lender)
            .taking(arriving)
    }

    /// A block of a message that is to be dropped goes to another OS process then, by its life.
    pub fn lend(self, number: u32, to: u16) {
        blocks::lend(number, to);
    }

    /// Blocks that were sent to that life, and that it has not read, are nobody's: it reads nothing any more.
    pub fn recall(self, numbers: &[u32], from: u16) {
        blocks::recall(numbers, from);
    }

    /// The link to a peer has ended, with all that was lent over it.
    pub fn link_ended(self, peer: u16) {
        common_memory::link_ended(peer);
    }
}
