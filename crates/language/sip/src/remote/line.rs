//! A channel in memory that two OS processes share.
//!
//! ```text
//!   line 0, 1     what the client's, the server's OS process tells the other: closed, which bell
//!   ring          slots of 64 bytes with messages to the client: word, length, 48 bytes
//!   ring          messages to the server
//!   arena         long messages to the client, one behind the other; pages become memory when written
//!   arena         long messages to the server
//! ```
//! Each side counts by itself what it has written and read, and reads only what the other wrote. A word that says which
//! message is there, a length, bytes. All three are claims. An arena is empty again when the contract says that its
//! reader has answered; so nobody frees anything in it, and nobody waits for room.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::inner::EXCHANGE;
use mullion_sip_exchange::Interior;
use mullion_sip_exchange::channel::{Info, Side};
use mullion_sip_exchange::exchange::wire::{COPIED, Reader, Writer};
use mullion_sip_exchange::interior::Word;
use mullion_sip_exchange::interior::{Arriving, Leaving, copy_once};

use super::head::Head;
use super::memory::Memory;

/// Bytes of long messages that can be on their way in one direction of a channel.
pub const ARENA: usize = if cfg!(miri) { 1 << 17 } else { 256 << 20 };
/// Bytes of an arena that are kept whatever happens.
const KEPT: usize = 1 << 20;
/// An arena that has held more gives its pages back at once; one that has held less, at the first answer to less than
/// [`KEPT`]. Pages that are given back and made again cost ten times what is copied into them.
const KEPT_IN_USE: usize = 16 << 20;
const SLOT: usize = 64;
const INLINE: usize = SLOT - 16;
const LINES: usize = 2 * 64;
const PAGE: usize = 4096;
/// In a length: the message is in the arena, at the offset that is in the slot.
const SPILLED: u64 = 1 << 63;

#[repr(C, align(64))]
struct Slot {
    word: Word,
    length: AtomicU64,
    bytes: [u8; INLINE],
}
const _: () = assert!(size_of::<Slot>() == SLOT && size_of::<Head>() * 2 == LINES);
const _: () = assert!(COPIED <= INLINE);

/// One OS process's half of a shared channel.
#[derive(Debug)]
pub(super) struct Line {
    memory: Memory,
    /// Which side's messages this OS process sends.
    side: Side,
    incoming: Direction,
    outgoing: Direction,
    /// Bytes of the outgoing arena that hold messages.
    used: usize,
    /// How much of it was written since its pages were given back, if more than [`KEPT`].
    large: usize,
    /// Numbers of blocks that have gone along with messages that the peer has not answered.
    lent: Vec<u32>,
    /// Endpoints that go along.
    pub(super) leaving: Leaving,
    /// Endpoints that have come along with the message that was read last.
    pub(super) arriving: Arriving,
}

/// Where the messages of one direction are, and how many there have been, wrapping.
#[derive(Clone, Copy, Debug)]
struct Direction {
    ring: usize,
    slots: u32,
    arena: usize,
    count: u32,
}

/// Bytes of memory that a channel of this contract needs between two OS processes. Most of it is address
/// space that never becomes memory.
pub fn line_bytes(contract: &Info) -> usize {
    direction(contract, Side::Server).arena + ARENA
}

fn direction(contract: &Info, to: Side) -> Direction {
    let slots = |side: Side| EXCHANGE.slots(contract, side);
    let bytes = |side: Side| slots(side) as usize * SLOT;
    let rings = LINES + bytes(Side::Client) + bytes(Side::Server);
    let arenas = rings.next_multiple_of(PAGE);
    let behind = to.index();
    Direction {
        ring: LINES + behind * bytes(Side::Client),
        slots: slots(to),
        arena: arenas + behind * ARENA,
        count: 0,
    }
}

/// Where the next message comes, for who has not the line itself: as good as the time of asking.
#[derive(Debug)]
pub(super) struct Watch {
    _memory: Memory,
    ring: *const Slot,
    slots: u32,
    count: AtomicU32,
}

// SAFETY: an address in the memory that it keeps mapped, where everything is read atomically.
unsafe impl Send for Watch {}
// SAFETY: a shared value reads one atomic word of memory that it keeps mapped, and counts in another.
unsafe impl Sync for Watch {}

impl Watch {
    /// Whether there is a message that nobody has taken.
    #[inline]
    pub(super) fn has_message(&self) -> bool {
        if self.slots == 0 {
            return false;
        }
        let count = self.count.load(Ordering::Relaxed);
        let index = count & (self.slots - 1);
        // SAFETY: within the ring, which is there as long as this is.
        let word = unsafe { &(*self.ring.add(index as usize)).word };
        word.find(count.wrapping_add(1)).is_some()
    }

    /// The line has gone on.
    #[inline]
    pub(super) fn follow(&self, line: &Line) {
        self.count.store(line.incoming.count, Ordering::Relaxed);
    }
}

/// Writes for whoever has the other half of this memory that nobody will ever have this one. `ring` is called with the bells that
/// it waits for.
pub(super) fn refuse(memory: &Memory, ring: impl Fn(u32)) {
    if memory.bytes() < LINES {
        return;
    }
    for side in [0, 1] {
        // SAFETY: the lines are there and aligned, of atomic words.
        let head: &Head = unsafe { memory.at(side * 64).cast().as_ref() };
        ring(head.refuse());
    }
}

/// A message that lies elsewhere than in its arena.
pub(super) struct Nonsense;

impl Line {
    /// The half of the OS process that sends what `side` sends.
    pub(super) fn new(memory: Memory, contract: &Info, side: Side, bell: u32) -> Option<Line> {
        let line = Line {
            side,
            incoming: direction(contract, side),
            outgoing: direction(contract, side.peer()),
            used: 0,
            large: 0,
            lent: Vec::new(),
            leaving: Leaving::default(),
            arriving: Arriving::default(),
            memory,
        };
        if line.memory.bytes() < line_bytes(contract) {
            return None;
        }
        line.head(side).set_bell(bell);
        Some(line)
    }

    pub(super) fn watch(&self) -> Watch {
        Watch {
            _memory: self.memory.clone(),
            ring: self.memory.at(self.incoming.ring).cast().as_ptr(),
            slots: self.incoming.slots,
            count: AtomicU32::new(self.incoming.count),
        }
    }

    #[inline]
    fn head(&self, side: Side) -> &Head {
        // SAFETY: the lines are there and aligned, of atomic words.
        unsafe { self.memory.at(side.index() * 64).cast().as_ref() }
    }

    /// Which of its bells the peer wants rung.
    #[inline]
    pub(super) fn bell(&self) -> u32 {
        self.head(self.side.peer()).bell()
    }

    pub(super) fn close(&self) {
        self.head(self.side).close();
    }

    /// Whether the peer says that it will send nothing more.
    #[inline]
    pub(super) fn peer_closed(&self) -> bool {
        self.head(self.side.peer()).is_closed()
    }

    #[inline]
    fn slot(&self, direction: Direction) -> *mut Slot {
        let index = direction.count & (direction.slots.wrapping_sub(1));
        self.memory
            .at(direction.ring + index as usize * SLOT)
            .cast()
            .as_ptr()
    }

    /// Writes a message by `write`, for a peer that may share memory, by its life. The blocks that go along leave as
    /// the message is dropped here; then it is to be [sent](Line::send).
    #[inline]
    pub(super) fn write<E>(
        &mut self,
        sharer: Option<u16>,
        write: impl FnOnce(&mut Writer<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let before = self.lent.len();
        let slot = self.slot(self.outgoing);
        let arena = self.memory.at(self.outgoing.arena + self.used);
        // SAFETY: both are within the memory; the contract says that the slot is free, and the arena behind
        // `used` is. What the peer may do to them meanwhile happens to its own message.
        unsafe {
            let inline = (&raw mut (*slot).bytes).cast::<u8>();
            let room = (arena.as_ptr(), ARENA - 64 - self.used);
            let lent = sharer.map(|_| &mut self.lent);
            let mut writer = EXCHANGE.writer((inline, INLINE), room, lent, &mut self.leaving);
            let written = write(&mut writer);
            let padding = EXCHANGE.padding(&writer);
            let (length, spilled) = writer.finish();
            if let Err(error) = written {
                let staying = self.leaving.ends.drain(..);
                staying.for_each(|(_, end)| end.stay());
                let staying = self.lent.drain(before..);
                staying.for_each(|number| EXCHANGE.lend(number, Interior::NOBODY));
                return Err(error);
            }
            let mut claim = length as u64;
            if spilled {
                claim |= SPILLED;
                inline.cast::<u64>().write((self.used + padding) as u64);
                self.used += (padding + length).next_multiple_of(SLOT);
            }
            (*slot).length.store(claim, Ordering::Relaxed);
        }
        if let Some(sharer) = sharer {
            let along = self.lent[before..].iter();
            along.for_each(|number| EXCHANGE.lend(*number, sharer));
        }
        Ok(())
    }

    /// Shows the peer what was written.
    #[inline]
    pub(super) fn send(&mut self, number: u16) {
        let slot = self.slot(self.outgoing);
        self.outgoing.count = self.outgoing.count.wrapping_add(1);
        // SAFETY: within the memory, and atomic.
        unsafe { (*slot).word.put(self.outgoing.count, number) };
    }

    /// Writes a message that is `bytes` as they lie in memory, at most [`COPIED`]; then it is to be [sent](Line::send).
    ///
    /// # Safety
    /// They are there, and initialised. The contract allows a message now.
    #[inline]
    pub(super) unsafe fn write_copied(&mut self, payload: *const u8, bytes: usize) {
        let slot = self.slot(self.outgoing);
        // SAFETY: within the slot, which is free by the caller's word; see `write`.
        unsafe {
            copy_once(payload, (&raw mut (*slot).bytes).cast(), bytes.min(COPIED));
            (*slot).length.store(bytes as u64, Ordering::Relaxed);
        }
    }

    /// Reads the next message, which [`Line::waits`] has found, as `bytes` for memory. False if it has another length: then it
    /// is still the next.
    ///
    /// # Safety
    /// There is room for that many in memory of our own.
    #[inline]
    pub(super) unsafe fn receive_copied(&mut self, room: *mut u8, bytes: usize) -> bool {
        let slot = self.slot(self.incoming);
        // SAFETY: within the memory. The length is a claim, and need not be right: so many bytes are in the slot.
        unsafe {
            if (*slot).length.load(Ordering::Relaxed) != bytes as u64 {
                return false;
            }
            copy_once((&raw const (*slot).bytes).cast(), room, bytes.min(COPIED));
        }
        self.incoming.count = self.incoming.count.wrapping_add(1);
        true
    }

    /// The peer has answered: it has read everything.
    #[inline]
    pub(super) fn answered(&mut self) {
        if self.used == 0 && self.large == 0 && self.lent.is_empty() {
            return;
        }
        if self.used > KEPT {
            self.large = self.large.max(self.used);
        }
        if self.large > 0 && !(KEPT..=KEPT_IN_USE).contains(&self.used) {
            self.memory.discard(self.outgoing.arena, self.large);
            self.large = 0;
        }
        self.used = 0;
        self.lent.clear();
    }

    /// The channel is over. If the peer reads nothing any more, or is no more, what it has not read of ours is nobody's.
    pub(super) fn take_back(&mut self, sharer: Option<u16>, down: bool) {
        if let Some(sharer) = sharer
            && (down || self.peer_closed())
        {
            EXCHANGE.recall(&self.lent, sharer);
        }
    }

    /// The channel goes on elsewhere: blocks that the peer may not have read.
    pub(super) fn take_lent(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.lent)
    }

    /// Whether there is a message.
    #[inline]
    pub(super) fn waits(&self) -> Option<u16> {
        if self.incoming.slots == 0 {
            return None;
        }
        let slot = self.slot(self.incoming);
        // SAFETY: within the memory, and atomic.
        unsafe { (*slot).word.find(self.incoming.count.wrapping_add(1)) }
    }

    /// The payload of the next message, which [`Line::waits`] has found, and which is counted as read.
    pub(super) fn receive(&mut self, sharer: Option<u16>) -> Result<Reader<'_>, Nonsense> {
        let slot = self.slot(self.incoming);
        let arena = self.incoming.arena;
        self.incoming.count = self.incoming.count.wrapping_add(1);
        // SAFETY: within the memory; the length and the offset are each read once, and held against the room.
        let (start, length) = unsafe {
            let claim = (*slot).length.load(Ordering::Relaxed);
            let inline = (&raw const (*slot).bytes).cast::<u8>();
            let length = usize::try_from(claim & !SPILLED).map_err(|_| Nonsense)?;
            if claim & SPILLED == 0 {
                if length > INLINE {
                    return Err(Nonsense);
                }
                (inline, length)
            } else {
                let mut offset = 0u64;
                copy_once(inline, (&raw mut offset).cast(), 8);
                let offset = usize::try_from(offset).map_err(|_| Nonsense)?;
                if offset >= ARENA || length > ARENA - offset {
                    return Err(Nonsense);
                }
                (self.memory.at(arena + offset).as_ptr().cast_const(), length)
            }
        };
        // SAFETY: that many bytes are in the memory, which lives as long as the borrow of this line.
        Ok(unsafe { EXCHANGE.reader(start, length, sharer, &mut self.arriving) })
    }
}

#[cfg(test)]
mod tests;
