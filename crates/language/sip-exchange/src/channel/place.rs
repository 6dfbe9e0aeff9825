//! A channel in memory, and how it ends.
//!
//! ```text
//!   place (64 bytes, one for each side)        channel (one block, for both)
//!   ├─ channel, contract, side                 ├─ line 0: what the peer may tell the client
//!   ├─ sent, received, state                   ├─ line 1: what the peer may tell the server
//!   └─ unanswered                              ├─ ring of messages to the client
//!                                              └─ ring of messages to the server
//! ```
//! An endpoint is a handle of its place, which is on its owner's list like any block. A place that is leaked is
//! still closed when its process ends. What matters to a side is in its place, where the peer cannot write. A
//! slot's word is the message's count (from 1) above its number. A receiver knows from the slot alone whether
//! its next message is there. So a message travels in one cache line, and neither side reads the other's counts.
//!
//! Two endpoints whose holders live on one OS thread need no fence: neither can run while the other does. Who
//! is where is written on the thread itself whenever an endpoint leaves or arrives. So no thread can be wrong
//! about what is on itself. What they do otherwise is in `line`.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::exchange::HeapError;
use crate::exchange::ledger::{Debtor, OwnerLedger};
use crate::exchange::region::{Holder, Ledger, Region};
use crate::exchange::sendable::Handles;
use crate::exchange::sizes::{Class, Id, SMALLEST};
use crate::exchange::walk::{Discard, Find, PLACE, Release};
use crate::exchange::worker::{self, Worker};
use crate::inner::CORE;
use mullion_sip_core::owner::{self, Owner};
use mullion_sip_core::wait::{self, Waiter};
use mullion_sip_core::{ChannelEnd, Span};

use super::contract::{Info, Ring, Side};
use super::line::{self, Line, Open, Word};

/// What the process's endpoint calls. The functions are those of the program that made the bridge, whichever
/// copy of this crate calls them.
///
/// # Safety
/// Both are called with the address of this very hook, and not after `forget` has been.
#[derive(Debug)]
#[repr(C)]
pub struct Hook {
    /// Looks for messages and ends, on both sides. Any thread may call it, inside a critical piece.
    // SAFETY: whoever calls it passes the address of this hook, and has not called `forget`.
    pub pump: unsafe fn(*const Hook),
    /// The channel is no more, and the hook is not called again.
    // SAFETY: whoever calls it passes the address of this hook, once.
    pub forget: unsafe fn(*const Hook),
}

/// A side's own half of a channel. Only the thread that holds the endpoint touches it.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct EndpointPlace {
    channel: NonNull<Channel>,
    pub(super) contract: &'static Info,
    /// Messages ever sent and received, wrapping.
    sent: u32,
    received: u32,
    /// The state's number.
    pub(super) state: u16,
    pub(super) side: Side,
    /// The number of the holder's ledger, as its record has it too.
    number: u32,
    ledger: &'static Ledger,
    /// The OS thread of the holder, as in [`Line`].
    here: u64,
    /// Bytes of messages sent since the peer last answered.
    unanswered: u64,
}
const _: () = assert!(size_of::<EndpointPlace>() <= SMALLEST);

/// The front of a channel; the rings follow.
#[repr(C)]
struct Channel {
    sides: [Shared; 2],
}
const _: () = assert!(size_of::<Channel>() == 2 * super::contract::LINE);

/// What the two sides of a channel tell each other about one of them.
#[repr(C, align(64))]
pub(super) struct Shared {
    line: Line,
    /// At the end, who still pays for what this side has sent, and how much.
    debtor: std::cell::Cell<Debtor>,
    debt: std::cell::Cell<u64>,
    /// In the first side's: how many endpoints there are.
    open: Open,
    /// If the kernel has this side's endpoint for a peer in another OS process: who is told instead of woken.
    pub(super) bridge: AtomicPtr<Hook>,
}

impl Shared {
    fn new(here: u64) -> Shared {
        Shared {
            line: Line::new(here),
            debtor: Default::default(),
            debt: Default::default(),
            open: Open::both(),
            bridge: AtomicPtr::default(),
        }
    }
}

/// Makes a channel for the calling thread's owner.
pub(super) fn create(
    contract: &'static Info,
    book: OwnerLedger,
) -> Result<[NonNull<EndpointPlace>; 2], HeapError> {
    let class = Class::holding(contract.size).ok_or(HeapError::TooLarge(contract.size))?;
    book.check((class.bytes() + 2 * SMALLEST) as u64)?;
    let here = worker::here();
    let ends = make(contract, class, 0, book, here)?;
    if CORE.is_decided() {
        admit(owner::current(), ends)?;
    }
    let [client, server] = ends;
    let own = |(id, place)| {
        // SAFETY: a fresh block, and the calling thread is its owner's worker.
        unsafe { book.link(id, Holder::FREE.endpoint()) };
        book.add(SMALLEST as u64 + half(contract));
        place
    };
    Ok([own(client), own(server)])
}

/// The owner has both ends of a channel that was just made, if it may; else the channel goes.
#[cold]
fn admit(owner: Owner, ends: [(Id, NonNull<EndpointPlace>); 2]) -> Result<(), HeapError> {
    // SAFETY: fresh places that nobody else has.
    let places = ends.map(|(_, place)| unsafe { place.as_ref() });
    let described = places.map(EndpointPlace::described);
    let mut asked = described.iter();
    if let Err(refused) = asked.try_for_each(|end| CORE.may_have(owner, *end)) {
        let channel = Region::id(places[0].channel);
        for id in [channel, ends[0].0, ends[1].0] {
            // SAFETY: fresh blocks of the caller's, on no list; nobody looks at them again.
            unsafe { worker::current().give(id) };
        }
        return Err(refused.into());
    }
    for end in described {
        CORE.end_came(owner.index(), end);
    }
    Ok(())
}

/// Makes a channel in a state, both ends in flight: nobody's yet, and on no list.
pub(crate) fn create_in_flight(
    contract: &'static Info,
    state: u16,
) -> Result<[NonNull<EndpointPlace>; 2], HeapError> {
    let class = Class::holding(contract.size).ok_or(HeapError::TooLarge(contract.size))?;
    let _critical = CORE.critical();
    let ends = make(contract, class, state, OwnerLedger::nobodys(), 0)?;
    Ok(ends.map(|(id, place)| {
        // SAFETY: a fresh block of the caller's.
        unsafe { (*Region::get().record(id)).holder = Holder::FREE.endpoint().in_flight() };
        place
    }))
}

/// A channel in fresh blocks, that are on no list.
#[inline]
fn make(
    contract: &'static Info,
    class: Class,
    state: u16,
    book: OwnerLedger,
    here: u64,
) -> Result<[(Id, NonNull<EndpointPlace>); 2], HeapError> {
    let region = book.region();
    let (number, ledger) = book.tell();
    let worker = worker::current();
    let [channel, client, server] = blocks(worker, class)?;
    let block: NonNull<Channel> = region.block(channel).cast();
    // SAFETY: fresh blocks that are large enough and nobody else's. The words of the rings start as no message's.
    unsafe {
        block.write(Channel {
            sides: [Shared::new(here), Shared::new(here)],
        });
        for ring in contract.rings {
            for slot in 0..ring.slots {
                slot_at(block, ring, slot).cast().write(Word::empty());
            }
        }
        let end = |id, side| {
            let place = region.block(id).cast::<EndpointPlace>();
            place.write(EndpointPlace {
                channel: block,
                contract,
                sent: 0,
                received: 0,
                state,
                side,
                number,
                ledger,
                here,
                unanswered: 0,
            });
            (id, place)
        };
        Ok([end(client, Side::Client), end(server, Side::Server)])
    }
}

/// A block of the class and two for places, or none. (`array::map` would call for each what is inlined here.)
#[inline]
fn blocks(worker: &Worker, class: Class) -> Result<[Id; 3], HeapError> {
    let mut taken = [Id::NONE; 3];
    for (at, class) in [class, PLACE, PLACE].into_iter().enumerate() {
        match worker.take(class) {
            Ok(id) => taken[at] = id,
            Err(error) => {
                for id in &taken[..at] {
                    // SAFETY: fresh, and nobody's.
                    unsafe { worker.give(*id) };
                }
                return Err(error);
            }
        }
    }
    Ok(taken)
}

/// What each endpoint counts for, besides its place.
#[inline]
fn half(contract: &Info) -> u64 {
    (contract.size.next_power_of_two() / 2) as u64
}

/// Where a slot begins: with its word.
///
/// # Safety
/// `ring` is one of the channel's contract's.
#[inline]
unsafe fn slot_at(channel: NonNull<Channel>, ring: Ring, slot: u32) -> NonNull<u8> {
    // SAFETY: the channel's block has room for its rings.
    unsafe {
        channel
            .cast::<u8>()
            .add(ring.start + slot as usize * ring.stride)
    }
}

/// The word of a slot.
///
/// # Safety
/// It is one.
#[inline]
unsafe fn word_at<'a>(slot: NonNull<u8>) -> &'a Word {
    // SAFETY: rings begin at a line, and strides are multiples of eight.
    unsafe { slot.cast().as_ref() }
}

// For who looks at channels.
impl EndpointPlace {
    /// As who decides about ends of channels is told of it.
    pub(super) fn described(&self) -> ChannelEnd {
        let (start, bytes) = self.queues();
        let id = Region::id_of(PLACE, NonNull::from(self));
        ChannelEnd {
            place: std::ptr::from_ref(self).addr(),
            record: self.region().record(id).addr(),
            queues: Span { start, bytes },
            contract: self.contract.digest.0,
        }
    }

    /// Its contract.
    pub fn contract(&self) -> &'static Info {
        self.contract
    }

    /// Its side.
    pub fn side(&self) -> Side {
        self.side
    }

    /// The same for both ends.
    pub fn channel_address(&self) -> usize {
        self.channel.addr().get()
    }

    /// Messages ever sent and received, wrapping.
    pub fn counts(&self) -> (u32, u32) {
        (self.sent, self.received)
    }

    /// The block that holds what both sides write: where it begins, and its bytes.
    pub fn queues(&self) -> (usize, usize) {
        let id: Id = Region::id(self.channel);
        (self.channel_address(), id.class().bytes())
    }

    /// Shows every block of the messages that wait for this side. On its holder's worker, between two threads.
    pub fn each_waiting(&self, show: impl FnMut(usize, usize)) {
        let ring = self.contract.rings[self.side.index()];
        let mut find = Find::new(show);
        let mut ahead = *self;
        for _ in 0..ring.slots {
            let Some(number) = ahead.next(ring) else {
                break;
            };
            // SAFETY: the number says which type of payload there is. It stays there: only this side's holder takes
            // messages out, or drops them, and that does not run.
            unsafe { (self.contract.visit)(number, ahead.payload(ring).as_ptr(), &mut find) };
            ahead.count_received();
        }
        find.finish();
    }
}

impl EndpointPlace {
    #[inline]
    pub(super) fn mine(&self) -> &Shared {
        self.shared(self.side.index())
    }

    #[inline]
    fn theirs(&self) -> &Shared {
        self.shared(self.side.peer().index())
    }

    #[inline]
    pub(super) fn region(&self) -> Region {
        Region::around(self.channel)
    }

    /// The list that this place is on.
    #[inline]
    pub(super) fn book(&self) -> OwnerLedger {
        OwnerLedger::told(self.region(), (self.number, self.ledger))
    }

    #[inline]
    pub(super) fn here(&self) -> u64 {
        self.here
    }

    /// Whom the peer's end tells, if the kernel has it for somebody in another OS process.
    pub(super) fn peers_hook(&self) -> *const Hook {
        self.theirs().bridge.load(Ordering::Acquire)
    }

    /// How many endpoints are open.
    fn open(&self) -> &Open {
        // SAFETY: the block of both sides lives as long as one of the two places, of which this is one; the word is
        // atomic.
        unsafe { &(*self.channel.as_ptr()).sides[0].open }
    }

    /// Whether the peer, of which this is the side, is on another OS thread, in flight or closed. If not, it
    /// stays where it is as long as this thread runs.
    #[inline]
    pub(super) fn is_elsewhere(&self, peer: usize) -> bool {
        !self.shared(peer).line.is_on(self.here)
    }

    /// What is told to a side.
    #[inline]
    fn shared(&self, side: usize) -> &Shared {
        // SAFETY: the channel lives until both its endpoints are closed.
        unsafe { &(*self.channel.as_ptr()).sides[side] }
    }

    fn peer_elsewhere(&self) -> bool {
        self.is_elsewhere(self.side.peer().index())
    }

    #[inline]
    pub(super) fn peer_gone(&self) -> bool {
        self.mine().line.is_peer_gone()
    }

    /// Puts a message into the queue, and wakes the peer if it waits.
    ///
    /// # Safety
    /// The contract allows it now and `number` goes with `T`; `ring` is the peer's.
    #[inline]
    pub(super) unsafe fn push<T>(&mut self, ring: Ring, number: u16, payload: T) {
        let slot = self.sent & (ring.slots - 1);
        self.sent = self.sent.wrapping_add(1);
        // SAFETY: the slot is free: the bound is the most that can wait, and has been received since.
        unsafe {
            let slot = slot_at(self.channel, ring, slot);
            slot.add(ring.payload).cast::<T>().write(payload);
            word_at(slot).put(self.sent, number);
        }
    }

    /// After a push: makes sure that the peer sees it, which is here. Who is ended in the middle, and not in a
    /// critical piece, has left the note of who waits, which its end follows.
    #[inline]
    pub(super) fn announce_here(&mut self, peer: usize) {
        line::order_here();
        let theirs = &self.shared(peer).line;
        let waiter = theirs.waiter();
        if waiter != 0 {
            CORE.unpark_again(Waiter::from_bits(waiter));
            line::order_here();
            theirs.note(0);
        }
    }

    /// The same for a peer that may be elsewhere.
    pub(super) fn announce_elsewhere(&mut self) {
        line::order();
        self.wake_peer();
        if self.peer_gone() {
            self.take_back();
        }
    }

    /// Wakes the peer if it waits; tells its bridge, if it is in another OS process.
    pub(super) fn wake_peer(&self) {
        let theirs = self.theirs();
        let bridge = theirs.bridge.load(Ordering::Acquire);
        if bridge.is_null() {
            wake(theirs);
        } else {
            // SAFETY: the hook is there as long as the channel, in which this endpoint is open.
            unsafe { ((*bridge).pump)(bridge) };
        }
    }

    /// Where the payload of the next message to the peer goes.
    ///
    /// # Safety
    /// `ring` is the peer's, and its next slot is free.
    pub(super) unsafe fn room(&self, ring: Ring) -> NonNull<u8> {
        let slot = self.sent & (ring.slots - 1);
        // SAFETY: within the slot.
        unsafe { slot_at(self.channel, ring, slot).add(ring.payload) }
    }

    /// The payload of the next message has been written: from now on the peer sees it.
    ///
    /// # Safety
    /// It lies at [`EndpointPlace::room`], and the number goes with it.
    pub(super) unsafe fn show(&mut self, ring: Ring, number: u16) {
        let slot = self.sent & (ring.slots - 1);
        self.sent = self.sent.wrapping_add(1);
        // SAFETY: a slot of the ring.
        let slot = unsafe { word_at(slot_at(self.channel, ring, slot)) };
        slot.put(self.sent, number);
    }

    /// The peer closed while a message was sent, and may have missed it: an endpoint in it would wait here
    /// until this side closes too. The peer's close does not park, so the wait for its end is short.
    #[cold]
    fn take_back(&mut self) {
        while self.open().is_both() {
            std::thread::yield_now();
        }
        crate::exchange::blocks::discard(|discard| {
            // SAFETY: the peer has closed, so this side has both queues.
            unsafe { self.drop_sent(discard) }
        });
    }

    /// Drops what the peer has not received.
    ///
    /// # Safety
    /// The peer has closed.
    unsafe fn drop_sent(&mut self, discard: &mut Discard) {
        let theirs = &self.theirs().line;
        let mut peer = EndpointPlace {
            side: self.side.peer(),
            received: theirs.received(),
            ..*self
        };
        // SAFETY: nobody else receives there any more.
        unsafe { peer.drop_incoming(discard) };
        theirs.set_received(peer.received);
    }

    /// Drops what waits for this side.
    ///
    /// # Safety
    /// The caller is the only one that receives here.
    unsafe fn drop_incoming(&mut self, discard: &mut Discard) {
        let ring = self.contract.rings[self.side.index()];
        // A ring without slots lies where the peer's begins.
        if ring.slots == 0 {
            return;
        }
        while let Some(number) = self.next(ring) {
            // SAFETY: the number says which type of payload there is; it is visited once, and then counted.
            unsafe { (self.contract.visit)(number, self.payload(ring).as_ptr(), discard) };
            self.count_received();
        }
    }

    /// The number of the next message in this side's ring, if it is there.
    #[inline]
    pub(super) fn next(&self, ring: Ring) -> Option<u16> {
        let slot = self.received & (ring.slots.wrapping_sub(1));
        // SAFETY: the ring is the contract's; who receives has slots.
        unsafe { word_at(slot_at(self.channel, ring, slot)) }.find(self.received.wrapping_add(1))
    }

    /// Where the payload of the next message is.
    ///
    /// # Safety
    /// `ring` is this side's.
    #[inline]
    pub(super) unsafe fn payload(&self, ring: Ring) -> NonNull<u8> {
        let slot = self.received & (ring.slots.wrapping_sub(1));
        // SAFETY: within the slot.
        unsafe { slot_at(self.channel, ring, slot).add(ring.payload) }
    }

    #[inline]
    pub(super) fn count_received(&mut self) {
        self.received = self.received.wrapping_add(1);
    }

    /// Takes what a payload holds from its owner, who pays for it until the peer answers.
    #[inline]
    pub(super) fn release<T: Handles>(&mut self, payload: &T) {
        let mut release = Release::new(self.region());
        payload.visit(&mut release);
        self.unanswered += release.finish();
    }

    /// The owner pays for what it has sent, `bytes` of blocks, until the peer answers.
    pub(super) fn owe(&mut self, bytes: u64) {
        self.unanswered += bytes;
    }

    /// The peer has answered: it has received everything.
    #[inline]
    pub(super) fn settle(&mut self, book: OwnerLedger) {
        if self.unanswered != 0 {
            book.subtract(self.unanswered);
            self.unanswered = 0;
        }
    }

    /// The same; and what the owner holds then is to be within its limit, or the process ends.
    #[inline]
    pub(super) fn settle_and_demand(&mut self, book: OwnerLedger) {
        let unanswered = std::mem::take(&mut self.unanswered);
        book.subtract_and_demand(unanswered);
    }

    /// Notes who is to be woken by the next message of a peer that is here.
    #[inline]
    pub(super) fn register_here(&self, side: usize, waiter: Waiter) {
        self.shared(side).line.note(waiter.to_bits());
    }

    /// Notes who is to be woken by the next message.
    pub(super) fn register(&self, waiter: Waiter) {
        self.register_here(self.side.index(), waiter);
        if self.peer_elsewhere() {
            line::order();
        }
    }

    pub(super) fn unregister(&self) {
        self.mine().line.note(0);
    }
}

/// Wakes who waits there.
fn wake(side: &Shared) {
    if let Some(waiter) = side.line.take_waiter() {
        wait::unpark(Waiter::from_bits(waiter));
    }
}

/// An endpoint leaves its holder's thread. Returns what it counts for, besides its place.
///
/// # Safety
/// `place` is one, and its holder's.
pub(crate) unsafe fn depart(place: NonNull<()>) -> u64 {
    // SAFETY: the caller promises that it is a place, and of its holder's alone.
    let place = unsafe { place.cast::<EndpointPlace>().as_mut() };
    if CORE.is_decided() {
        CORE.end_went(place.described());
    }
    place.here = 0;
    place.mine().line.move_to(0);
    half(place.contract) + place.unanswered
}

/// An endpoint arrives at a holder's thread. Returns what it counts for, besides its place.
///
/// # Safety
/// `place` is one, and the caller's.
pub(crate) unsafe fn arrive(place: NonNull<()>, book: OwnerLedger, here: u64) -> u64 {
    // SAFETY: the caller promises that it is a place, and its own alone.
    let place = unsafe { place.cast::<EndpointPlace>().as_mut() };
    (place.number, place.ledger) = book.tell();
    if CORE.is_decided() {
        CORE.end_came(place.number, place.described());
    }
    place.here = here;
    place.mine().line.move_to(here);
    half(place.contract) + place.unanswered
}

/// Closes an endpoint: drops what waits for it, tells the peer, and frees what only it has kept.
///
/// # Safety
/// `place` is one that nobody uses any more; it is on its owner's list, on this worker, or in flight.
pub(crate) unsafe fn close(place: NonNull<()>, discard: &mut Discard) {
    let place = place.cast::<EndpointPlace>();
    let id = Region::id(place);
    let region = Region::around(place);
    // SAFETY: by the caller. The channel is there until `open` says that this was the last endpoint.
    unsafe {
        let own = &mut *place.as_ptr();
        let (mine, theirs) = (own.mine(), own.theirs());
        theirs.line.lose_peer();
        mine.line.move_to(0);
        mine.line.note(0);
        line::order();
        own.drop_incoming(discard);
        let mine = own.mine();
        own.wake_peer();
        mine.line.set_received(own.received);
        let holder = (*region.record(id)).holder;
        if !holder.is_in_flight() {
            if CORE.is_decided() {
                CORE.end_went(own.described());
            }
            let book = OwnerLedger::holding(region, holder);
            OwnerLedger::unlink(region, id);
            book.count_sent(own.sent);
            book.subtract(SMALLEST as u64 + half(own.contract));
            if own.peer_gone() {
                book.subtract(own.unanswered);
            } else {
                mine.debtor.set(book.debtor());
                mine.debt.set(own.unanswered);
            }
        }
        if own.open().close() {
            destroy(own, discard);
        }
        discard.free(id);
    }
}

/// Frees a channel whose second endpoint closes: what the first has left, and the channel.
///
/// # Safety
/// Both endpoints are closed, and `last` is the one that has not gone yet.
unsafe fn destroy(last: &mut EndpointPlace, discard: &mut Discard) {
    // SAFETY: nobody else has the channel any more.
    unsafe {
        let (mine, theirs) = (last.mine(), last.theirs());
        for side in [mine, theirs] {
            if side.debt.get() > 0 {
                side.debtor.get().give_back(side.debt.get());
            }
        }
        // What came for the last after it had looked, and what it has sent that the first did not receive.
        last.drop_incoming(discard);
        last.drop_sent(discard);
        let bridges = [last.mine(), last.theirs()].map(|side| side.bridge.load(Ordering::Acquire));
        discard.free(Region::id(last.channel));
        for bridge in bridges.into_iter().filter(|bridge| !bridge.is_null()) {
            ((*bridge).forget)(bridge);
        }
    }
}

impl OwnerLedger {
    /// Shows every end of a channel on the list. On the owner's worker.
    pub fn each_endpoint(self, mut show: impl FnMut(&EndpointPlace)) {
        self.each(|block, is_endpoint| {
            if is_endpoint {
                // SAFETY: an endpoint's block holds its place.
                show(unsafe { self.region().block(block).cast().as_ref() });
            }
        });
    }
}
