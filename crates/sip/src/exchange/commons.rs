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
//! send it on; who drops it, if it is another's make, *returns* it: notes in the table that nobody has it, and
//! its maker finds it there when it needs one.
//!
//! Every member can write all of it, so nothing of it is relied on. What is in blocks are values of which any bytes
//! are one. Where a block is, how long a vector, whose list it is on: that is in memory of our own. A block that
//! is said to have been sent is taken only if `here` says that we do not have it. What the table claims decides
//! which blocks nobody has: whoever forges it has members share bytes that each takes for its own, which it could
//! change anyway.
//!
//! A member's life has a number that no other has. When a life is over, what it had is returned
//! ([`reclaim`]), and each member that had a link to it returns what was on its way over that link.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::claim::{Away, Here, Word};
use super::region::Region;
use super::sizes::{CLASSES, COMMON, Class, Id, SPAN_BITS};
use crate::shared::shared;

/// Members of one file at a time.
pub const MEMBERS: usize = 32;

/// Places of the smallest blocks; every span has that many words in the table.
const PLACES: usize = 1 << 23;
const SPANS: usize = COMMON << SPAN_BITS;
const TABLE: usize = COMMON * PLACES * size_of::<Word>();
const COUNTERS: usize = 2 * MEMBERS * COMMON * size_of::<AtomicU32>();
/// Bytes of the file. It takes memory where it is written.
pub const BYTES: usize = SPANS + TABLE + COUNTERS.next_multiple_of(4096);

/// Who an OS process is, among those that share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Member {
    /// Which part of the spans it makes blocks in, below [`MEMBERS`]: of no other that lives.
    pub part: u8,
    /// The number of its life: neither 0 nor `u16::MAX`, and never another's.
    pub life: u16,
}

/// What a member knows.
#[derive(Debug)]
pub(crate) struct Commons {
    me: Member,
    arrived: AtomicU64,
    table: NonNull<Word>,
    here: NonNull<Here>,
}

// SAFETY: atomic words that stay.
unsafe impl Send for Commons {}
// SAFETY: as above.
unsafe impl Sync for Commons {}

/// Has this OS process share the file, once: later calls do nothing. To be called before its processes begin.
///
/// # Errors
/// The file is not one of [`BYTES`] whose size cannot change, or the system refuses.
pub fn share(file: BorrowedFd<'_>, me: Member) -> io::Result<()> {
    if shared().exchange.commons.get().is_some() {
        return Ok(());
    }
    // SAFETY: the calls only ask.
    let (bytes, seals) = unsafe {
        let bytes = libc::lseek(file.as_raw_fd(), 0, libc::SEEK_END);
        (bytes, libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS))
    };
    let needed = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    let whole = usize::try_from(bytes).is_ok_and(|bytes| bytes >= BYTES);
    if !whole || seals < 0 || seals & needed != needed || usize::from(me.part) >= MEMBERS {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let spans = Region::get().block(Id::new(Class::common(0), 0));
    let rest = BYTES - SPANS;
    // SAFETY: the spans are in our own reservation, and no block of theirs was made yet; the others are new.
    let (table, here) = unsafe {
        map(Some(spans), SPANS, Some((file, 0)))?;
        let table = map(None, rest, Some((file, SPANS)))?;
        (table, map(None, COMMON * PLACES, None)?)
    };
    let _ = shared().exchange.commons.set(Commons {
        me,
        arrived: AtomicU64::new(0),
        table: table.cast(),
        here: here.cast(),
    });
    Ok(())
}

/// # Safety
/// If there is an address, that many bytes there are the caller's to lose.
unsafe fn map(
    at: Option<NonNull<u8>>,
    bytes: usize,
    file: Option<(BorrowedFd<'_>, usize)>,
) -> io::Result<NonNull<u8>> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let (fixed, address) = match at {
        Some(at) => (libc::MAP_FIXED, at.as_ptr().cast()),
        None => (0, ptr::null_mut()),
    };
    let (kind, file, offset) = match file {
        Some((file, offset)) => (libc::MAP_SHARED, file.as_raw_fd(), offset),
        None => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0),
    };
    let flags = kind | fixed | libc::MAP_NORESERVE;
    // SAFETY: by the caller, or where nothing is.
    let mapped = unsafe { libc::mmap(address, bytes, access, flags, file, offset as libc::off_t) };
    if mapped == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(mapped.cast()).ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
}

/// Whether a block is in common memory.
#[inline]
pub(super) fn is_common(id: Id) -> bool {
    id.class().index() >= CLASSES
}

#[inline]
pub(super) fn get() -> Option<&'static Commons> {
    shared().exchange.commons.get()
}

/// What becomes of a block that its owner has dropped.
pub(super) enum Dropped {
    /// It can be used again here.
    Kept,
    /// It was sent, or is another's make.
    Gone,
}

impl Commons {
    /// For a block of ours that is to go to the life with this number: it goes when it is dropped.
    pub(super) fn lend(&self, id: Id, to: u16) {
        let record = Region::get().record(id);
        // SAFETY: the block is in a message of ours, in flight, which the caller has alone.
        unsafe {
            (*record).holder = (*record).holder.lent();
            (*record).count = to.into();
        }
    }

    /// A block that is said to have been sent to us by that life. It is in flight, if it is one.
    pub(super) fn arrive(&self, id: Id, from: u16) -> Option<NonNull<u8>> {
        let class = id.class();
        let common = (CLASSES..CLASSES + COMMON).contains(&class.index());
        if !common || id.place() >= class.places() {
            return None;
        }
        let mine = part(id) == u32::from(self.me.part);
        let word = self.word(id);
        if !word.arrive(self.here(id), from, self.me.life, mine) {
            return None;
        }
        self.arrived.fetch_add(1, Ordering::Relaxed);
        let region = Region::get();
        // SAFETY: we had it not, and whoever else is told the same now finds that we have.
        unsafe { (*region.record(id)).holder = super::region::Holder::FREE.in_flight() };
        Some(region.block(id))
    }

    /// A block whose owner has dropped it.
    ///
    /// # Safety
    /// It was the caller's alone, and is on no list.
    pub(super) unsafe fn drop_block(&self, region: Region, id: Id) -> Dropped {
        let record = region.record(id);
        // SAFETY: by the caller.
        let (lent, to) = unsafe { ((*record).holder.is_lent(), (*record).count as u16) };
        if lent {
            self.word(id).lend(self.here(id), self.me.life, to);
            return Dropped::Gone;
        }
        if part(id) == u32::from(self.me.part) {
            return Dropped::Kept;
        }
        if id.class().bytes() >= super::worker::DISCARDED_FROM {
            region.discard(id);
        }
        self.word(id).give_back(self.here(id));
        self.count_returned(id);
        Dropped::Gone
    }

    /// A block that was sent to that life over a channel whose other side reads nothing any more: unless it has read
    /// it, nobody has it.
    pub(super) fn recall(&self, id: Id, from: u16) {
        let giver = self.me.life;
        let holder = from;
        self.withdraw(id, Away { holder, giver });
    }

    fn withdraw(&self, id: Id, found: Away) {
        if self.word(id).withdraw(found) {
            self.count_returned(id);
        }
    }

    fn count_returned(&self, id: Id) {
        let returned = self.counter(1, part(id) as usize, common_index(id.class()));
        returned.fetch_add(1, Ordering::AcqRel);
    }

    /// The blocks of a size that this member can make, as places.
    pub(super) fn places(&self, class: Class) -> std::ops::Range<u32> {
        let each = class.places() / MEMBERS as u32;
        let first = u32::from(self.me.part) * each;
        first..first + each
    }

    /// Makes a block: false if somebody has it, an earlier life of this part may have lent it.
    pub(super) fn make(&self, id: Id) -> bool {
        if !self.word(id).make(self.here(id)) {
            return false;
        }
        let made = self.counter(0, self.me.part.into(), common_index(id.class()));
        let beyond = id.place() - self.places(id.class()).start + 1;
        made.fetch_max(beyond, Ordering::Relaxed);
        true
    }

    /// Takes a block back that this member made: false if nobody has returned it.
    pub(super) fn take_back(&self, id: Id) -> bool {
        self.word(id).take_back(self.here(id))
    }

    /// How often a block of this size was returned to this member, wrapping.
    pub(super) fn returned(&self, class: Class) -> u32 {
        self.counter(1, self.me.part.into(), common_index(class))
            .load(Ordering::Acquire)
    }

    fn word(&self, id: Id) -> &Word {
        // SAFETY: the index is within the table.
        unsafe { self.table.add(index(id)).as_ref() }
    }

    fn here(&self, id: Id) -> &Here {
        // SAFETY: as many bytes as the table has words.
        unsafe { self.here.add(index(id)).as_ref() }
    }

    fn counter(&self, which: usize, part: usize, class: usize) -> &AtomicU32 {
        let counter = (which * MEMBERS + part % MEMBERS) * COMMON + class;
        // SAFETY: the counters follow the table.
        unsafe { self.table.add(COMMON * PLACES).cast().add(counter).as_ref() }
    }

    /// Returns every block of which the table says what is `over`.
    fn return_all(&self, over: impl Fn(Id, Away) -> bool) {
        self.each_away(|id, found| {
            if over(id, found) {
                self.withdraw(id, found);
            }
        });
    }

    /// Shows every block that somebody has who did not make it, or had it back, as the table has it.
    fn each_away(&self, mut show: impl FnMut(Id, Away)) {
        for class in (0..COMMON).map(Class::common) {
            let each = class.places() / MEMBERS as u32;
            for part in 0..MEMBERS as u32 {
                let made = self.counter(0, part as usize, common_index(class));
                for place in 0..made.load(Ordering::Relaxed).min(each) {
                    let id = Id::new(class, part * each + place);
                    if let Some(found) = self.word(id).away() {
                        show(id, found);
                    }
                }
            }
        }
    }
}

/// A link to that life has ended, and everything that came over it was received: what was on its way is lost.
pub(crate) fn link_ended(peer: u16) {
    let Some(commons) = get() else { return };
    let lost = Away {
        holder: commons.me.life,
        giver: peer,
    };
    commons.return_all(|id, found| found == lost && !commons.here(id).is_set());
}

/// What lives have that are over goes back to who made it. For a member that knows which are not, and that the others'
/// OS processes have ended.
pub fn reclaim(lives: impl Fn(u16) -> bool) {
    if let Some(commons) = get() {
        commons.return_all(|_, found| !lives(found.holder));
    }
}

/// Blocks that have come to this OS process by number.
pub fn arrived() -> u64 {
    get().map_or(0, |commons| commons.arrived.load(Ordering::Relaxed))
}

/// How many blocks each life has that it did not make, or had back, by what the table claims. It changes while anybody runs.
pub fn holders() -> BTreeMap<u16, usize> {
    let mut all = BTreeMap::new();
    if let Some(commons) = get() {
        commons.each_away(|_, found| *all.entry(found.holder).or_default() += 1);
    }
    all
}

fn common_index(class: Class) -> usize {
    class.index() - CLASSES
}

fn index(id: Id) -> usize {
    common_index(id.class()) * PLACES + id.place() as usize
}

/// Whose make a block is.
fn part(id: Id) -> u32 {
    id.place() / (id.class().places() / MEMBERS as u32)
}
