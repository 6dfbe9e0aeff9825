//! Memory that several OS processes have mapped, for large vectors of plain values: between these OS processes they
//! go by number, and nothing is copied.
//!
//! ```text
//!   one file, mapped by every member                                       of each member alone
//!   ├─ spans 22 to 30   blocks of 1 KiB, 4 KiB, ... 64 MiB                  here     a byte for each block: is it ours?
//!   ├─ table            a word for each block: who has it, who gave it     records  as of any block
//!   └─ counters         blocks made, and blocks returned
//! ```
//! Each member makes blocks in a part of its own of every span. A block that was sent belongs to the receiver, who may
//! send it on. A receiver that drops a block of another's make *returns* it. It notes in the table that nobody has it,
//! and its maker finds it there when it needs one.
//!
//! Every member can write all of it, so nothing of it is relied on. What is in blocks are values of which any bytes
//! are one. Where a block is, how long a vector, whose list it is on: that is in memory of our own. A block that
//! is said to have been sent is taken only if `here` says that we do not have it. What the table claims decides
//! which blocks nobody has. Whoever forges it has members share bytes that each takes for its own, which it could
//! change anyway.
//!
//! *Remapped*, a member touches the pages of a block only while it has the block ([`Sharing::Remapped`]):
//!
//! ```text
//!   no rights --- made, or taken back by its maker; arrived ---> read and write, also while it is free here
//!             <-- written into a line; given back --------------
//! ```
//! They are open in one OS process at most. A process could ask Linux for pages of others by itself, but its language
//! does not let it. Rights are taken before the word says that the block goes, and given after it says that it has
//! come. Where Linux refuses to give them, the block is returned; where it refuses to take them, the block stays, and
//! a copy goes.
//!
//! A member's life has a number that no other has. When a life is over, its blocks are returned ([`Table::reclaim`]).
//! Each member that had a link to it returns what was on its way over that link.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::claim::{Away, Here, Word};
use super::error::DecodeError;
use super::pages::{self, Rights};
use super::region::{Holder, Region};
use super::sizes::{CLASSES, COMMON, Class, Id, SPAN_BITS};
use super::table::{self, PLACES, part};

pub use super::table::{BYTES, MEMBERS, Table};

/// Who an OS process is, among those that share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Member {
    /// Which part of the spans it makes blocks in, below [`MEMBERS`]: of no other that lives.
    pub part: u8,
    /// The number of its life: neither 0 nor `u16::MAX`, and never another's.
    pub life: u16,
}

/// Which blocks of a file its members can touch. All of them do the same.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Sharing {
    /// All, at any time. Vectors of more than 512 bytes go by number.
    Open,
    /// Those that they have. Vectors of more than 512 KiB go by number.
    Remapped,
}

/// Remapped, the first size is of 1 MiB. Linux keeps a mapping for each run of pages with the same rights, 65,530 by
/// default, and all blocks there can be at a time (256 MiB of each size and member) need fewer than 22,000.
const FIRST_REMAPPED: usize = 5;
const _: () = assert!(cfg!(miri) || Class::common(FIRST_REMAPPED).bytes() == 1 << 20);

impl Sharing {
    /// Vectors up to this many bytes are copied quicker, by measurement.
    #[inline]
    fn copied(self) -> usize {
        match self {
            Sharing::Open => COPIED,
            Sharing::Remapped => 512 << 10,
        }
    }

    /// The first size that is used, counted from the smallest in common memory.
    fn first(self) -> usize {
        match self {
            Sharing::Open => 0,
            Sharing::Remapped => FIRST_REMAPPED.min(COMMON),
        }
    }

    /// On blocks that nobody has.
    fn rights(self) -> Rights {
        match self {
            Sharing::Open => Rights::All,
            Sharing::Remapped => Rights::None,
        }
    }
}

/// Vectors of so many bytes are copied wherever they go.
pub(super) const COPIED: usize = 512;

/// What a member knows.
#[derive(Debug)]
pub(crate) struct CommonMemory {
    me: Member,
    sharing: Sharing,
    arrived: AtomicU64,
    table: Table,
    here: NonNull<Here>,
}

// SAFETY: atomic words that stay.
unsafe impl Send for CommonMemory {}
// SAFETY: threads share the two words of each block, which are atomic and stay mapped for good.
unsafe impl Sync for CommonMemory {}

/// Has this OS process share the file, once: false if it shares one already. To be called before its processes begin.
///
/// # Errors
/// The file is not one of [`BYTES`] whose size cannot change, there is no such part, or the system refuses.
pub fn share(file: BorrowedFd<'_>, me: Member, sharing: Sharing) -> io::Result<bool> {
    if get().is_some() {
        return Ok(false);
    }
    if usize::from(me.part) >= MEMBERS {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let table = Table::map(file)?;
    let first = sharing.first();
    let spans = Region::get().block(Id::new(Class::common(first), 0));
    let (before, bytes) = (first << SPAN_BITS, (COMMON - first) << SPAN_BITS);
    // SAFETY: the spans are in our own reservation, and no block of theirs was made yet; the other is new.
    let here = unsafe {
        pages::map(Some(spans), bytes, Some((file, before)), sharing.rights())?;
        pages::map(None, COMMON * PLACES, None, Rights::All)?
    };
    let common_memory = CommonMemory {
        me,
        sharing,
        arrived: AtomicU64::new(0),
        table,
        here: here.cast(),
    };
    Ok(state().set(common_memory).is_ok())
}

mullion_sip_core::__state!(OnceLock<CommonMemory> = OnceLock::new());

#[inline]
pub(super) fn get() -> Option<&'static CommonMemory> {
    state().get()
}

/// What becomes of a block that its owner has dropped.
pub(super) enum Dropped {
    /// It can be used again here.
    Kept,
    /// It was sent, or is another's make.
    Gone,
}

/// To whom blocks go of a message that is not sent after all: they are returned.
pub(crate) const NOBODY: u16 = 0;

impl CommonMemory {
    /// Where a vector of so many bytes is to be, if here.
    #[inline]
    pub(super) fn class(&self, bytes: usize) -> Option<Class> {
        match bytes > self.sharing.copied() {
            true => Class::common_holding(bytes),
            false => None,
        }
    }

    /// A block of ours is being written into a line, and nobody touches it any more: true if it can go by number, false
    /// if it is to be copied. It is then to be [lent](CommonMemory::lend).
    pub(super) fn leave(&self, id: Id) -> bool {
        self.set(id, Rights::None)
    }

    /// For a block of ours that is to go to the life with this number: it goes when it is dropped.
    pub(super) fn lend(&self, id: Id, to: u16) {
        let record = Region::get().record(id);
        // SAFETY: the block is in a message of ours, in flight, which the caller has alone.
        unsafe {
            (*record).holder = (*record).holder.lent();
            (*record).count = to.into();
        }
    }

    /// A block that is said to have been sent to us by that life. It is in flight.
    ///
    /// # Errors
    /// It is none, or Linux refuses its pages, and it is returned.
    pub(super) fn arrive(&self, id: Id, from: u16) -> Result<NonNull<u8>, DecodeError> {
        let invalid = DecodeError::Invalid("lent block");
        let class = id.class();
        let first = CLASSES + self.sharing.first();
        let common = (first..CLASSES + COMMON).contains(&class.index());
        if !common || id.place() >= class.places() {
            return Err(invalid);
        }
        let mine = part(id) == u32::from(self.me.part);
        let word = self.word(id);
        if !word.arrive(self.here(id), from, self.me.life, mine) {
            return Err(invalid);
        }
        if !self.open(id) {
            return Err(DecodeError::Refused);
        }
        self.arrived.fetch_add(1, Ordering::Relaxed);
        let region = Region::get();
        // SAFETY: we had it not, and whoever else is told the same now finds that we have.
        unsafe { (*region.record(id)).holder = Holder::FREE.in_flight() };
        Ok(region.block(id))
    }

    /// A block whose owner has dropped it.
    ///
    /// # Safety
    /// It was the caller's alone, and is on no list.
    pub(super) unsafe fn drop_block(&self, region: Region, id: Id) -> Dropped {
        let record = region.record(id);
        // SAFETY: the block is the caller's alone, so nobody else writes its record.
        let (lent, to) = unsafe { ((*record).holder.is_lent(), (*record).count as u16) };
        match (lent, to) {
            (true, NOBODY) => self.give_back(id),
            (true, to) => self.word(id).lend(self.here(id), self.me.life, to),
            (false, _) if part(id) == u32::from(self.me.part) => return Dropped::Kept,
            (false, _) => {
                super::given::discard(region, id);
                // If Linux does not want its pages back it is used here, until it is dropped again.
                if !self.set(id, Rights::None) {
                    return Dropped::Kept;
                }
                self.give_back(id);
            }
        }
        Dropped::Gone
    }

    fn give_back(&self, id: Id) {
        self.word(id).give_back(self.here(id));
        self.table.count_returned(id);
    }

    /// A block that was sent to that life over a channel whose other side reads nothing any more: unless it has read
    /// it, nobody has it.
    pub(super) fn recall(&self, id: Id, from: u16) {
        let (holder, giver) = (from, self.me.life);
        self.table.withdraw(id, Away { holder, giver });
    }

    /// The blocks of a size that this member can make, as places.
    pub(super) fn places(&self, class: Class) -> std::ops::Range<u32> {
        table::places(self.me.part, class)
    }

    /// Makes a block: false if somebody has it, an earlier life of this part may have lent it. It is then to be
    /// [opened](CommonMemory::open).
    pub(super) fn make(&self, id: Id) -> bool {
        let made = self.word(id).make(self.here(id));
        if made {
            self.table.count_made(id);
        }
        made
    }

    /// Takes a block back that this member made: false if nobody has returned it. It is then to be
    /// [opened](CommonMemory::open).
    pub(super) fn take_back(&self, id: Id) -> bool {
        self.word(id).take_back(self.here(id))
    }

    /// A block has become ours: false if Linux refuses its pages, and it is returned.
    pub(super) fn open(&self, id: Id) -> bool {
        let open = self.set(id, Rights::All);
        if !open {
            self.give_back(id);
        }
        open
    }

    /// How often a block of this size was returned to this member, wrapping.
    pub(super) fn returned(&self, class: Class) -> u32 {
        self.table.returned(self.me.part, class)
    }

    /// Changes the rights on a block's pages that is ours, if they change. False if Linux refuses.
    fn set(&self, id: Id, rights: Rights) -> bool {
        if self.sharing == Sharing::Open {
            return true;
        }
        let block = Region::get().block(id);
        // SAFETY: the block is the caller's, who uses it no more if it gives the rights up.
        unsafe { pages::set(block, id.class().bytes(), rights) }
    }

    fn word(&self, id: Id) -> &Word {
        self.table.word(id)
    }

    fn here(&self, id: Id) -> &Here {
        // SAFETY: as many bytes as the table has words.
        unsafe { self.here.add(table::index(id)).as_ref() }
    }
}

/// A link to that life has ended, and everything that came over it was received: what was on its way is lost.
pub(crate) fn link_ended(peer: u16) {
    let Some(common_memory) = get() else { return };
    let lost = Away {
        holder: common_memory.me.life,
        giver: peer,
    };
    let over = |id, found| found == lost && !common_memory.here(id).is_set();
    common_memory.table.return_all(over);
}

/// Blocks that have come to this OS process by number.
pub fn arrived() -> u64 {
    get().map_or(0, |common_memory| {
        common_memory.arrived.load(Ordering::Relaxed)
    })
}

/// How many blocks each life has, as [`Table::holders`] of the file that this OS process shares.
pub fn holders() -> BTreeMap<u16, usize> {
    get().map_or_else(BTreeMap::new, |common_memory| common_memory.table.holders())
}
