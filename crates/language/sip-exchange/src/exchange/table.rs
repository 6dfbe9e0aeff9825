//! The table of a file of common memory, which every member can write. It has who has each block that its maker has not, and
//! how many blocks were made, and returned. All of it is claims.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use super::claim::{Away, Word};
use super::pages::{self, Rights};
use super::sizes::{COMMON, Class, Id, SPAN_BITS};

/// Members of one file at a time.
pub const MEMBERS: usize = 32;

/// Places of the smallest blocks; every span has that many words in the table.
pub(super) const PLACES: usize = 1 << 23;
const SPANS: usize = COMMON << SPAN_BITS;
const WORDS: usize = COMMON * PLACES * size_of::<Word>();
const COUNTERS: usize = 2 * MEMBERS * COMMON * size_of::<AtomicU32>();
/// Bytes of the file. It takes memory where it is written.
pub const BYTES: usize = SPANS + WORDS + COUNTERS.next_multiple_of(4096);

/// The table of a file, mapped for good.
#[derive(Debug)]
pub struct Table(NonNull<Word>);

// SAFETY: atomic words that stay.
unsafe impl Send for Table {}
// SAFETY: threads share words that are atomic, and that stay mapped as long as the value lives.
unsafe impl Sync for Table {}

impl Table {
    /// # Errors
    /// The file is not one of [`BYTES`] whose size cannot change, or the system refuses.
    pub fn map(file: BorrowedFd<'_>) -> io::Result<Table> {
        // SAFETY: the calls only ask.
        let (bytes, seals) = unsafe {
            let bytes = libc::lseek(file.as_raw_fd(), 0, libc::SEEK_END);
            (bytes, libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS))
        };
        let needed = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
        let whole = usize::try_from(bytes).is_ok_and(|bytes| bytes >= BYTES);
        if !whole || seals < 0 || seals & needed != needed {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // SAFETY: a new mapping.
        let words = unsafe { pages::map(None, BYTES - SPANS, Some((file, SPANS)), Rights::All)? };
        Ok(Table(words.cast()))
    }

    /// What lives have that are over goes back to who made it. For who knows which are not, and that the others' OS
    /// processes have ended.
    pub fn reclaim(&self, lives: impl Fn(u16) -> bool) {
        self.return_all(|_, found| !lives(found.holder));
    }

    /// How many blocks each life has that it did not make, or had back. It changes while anybody runs.
    pub fn holders(&self) -> BTreeMap<u16, usize> {
        let mut all = BTreeMap::new();
        self.each_away(|_, found| *all.entry(found.holder).or_default() += 1);
        all
    }

    /// The member with this part is over, and nobody has the part yet. The large blocks that it has made give their
    /// memory back to the system, but for those that others have. (Of small ones there can be hundreds of thousands:
    /// whoever gets the part uses them again.)
    pub fn discard(&self, file: BorrowedFd<'_>, part: u8) {
        self.each_made(part.into(), |id| {
            let large = id.class().bytes() >= PUNCHED_FROM;
            if large && self.word(id).away().is_none() {
                pages::punch(file, id.offset() - first_offset(), id.class().bytes());
            }
        });
    }

    pub(super) fn word(&self, id: Id) -> &Word {
        // SAFETY: the index is within the table.
        unsafe { self.0.add(index(id)).as_ref() }
    }

    /// What is still as it was found is nobody's from now on.
    pub(super) fn withdraw(&self, id: Id, found: Away) {
        if self.word(id).withdraw(found) {
            self.count_returned(id);
        }
    }

    /// For its maker, who looks for it then.
    pub(super) fn count_returned(&self, id: Id) {
        let returned = self.counter(1, part(id), id.class());
        returned.fetch_add(1, Ordering::AcqRel);
    }

    /// How often a block of this size was returned to a member, wrapping.
    pub(super) fn returned(&self, member: u8, class: Class) -> u32 {
        let returned = self.counter(1, member.into(), class);
        returned.load(Ordering::Acquire)
    }

    /// A member has made this block, and none beyond it so far.
    pub(super) fn count_made(&self, id: Id) {
        let beyond = id.place() - places(part(id) as u8, id.class()).start + 1;
        let made = self.counter(0, part(id), id.class());
        made.fetch_max(beyond, Ordering::Relaxed);
    }

    /// Returns every block of which the table says what is `over`.
    pub(super) fn return_all(&self, over: impl Fn(Id, Away) -> bool) {
        self.each_away(|id, found| {
            if over(id, found) {
                self.withdraw(id, found);
            }
        });
    }

    /// Shows every block that somebody has who did not make it, or had it back, as the table has it.
    fn each_away(&self, mut show: impl FnMut(Id, Away)) {
        for part in 0..MEMBERS as u32 {
            self.each_made(part, |id| {
                if let Some(found) = self.word(id).away() {
                    show(id, found);
                }
            });
        }
    }

    fn each_made(&self, part: u32, mut show: impl FnMut(Id)) {
        for class in (0..COMMON).map(Class::common) {
            let made = self.counter(0, part, class).load(Ordering::Relaxed);
            for place in places(part as u8, class).take(made as usize) {
                show(Id::new(class, place));
            }
        }
    }

    fn counter(&self, which: usize, part: u32, class: Class) -> &AtomicU32 {
        let member = part as usize % MEMBERS;
        let counter = (which * MEMBERS + member) * COMMON + class.common_index();
        // SAFETY: the counters follow the table.
        unsafe { self.0.add(COMMON * PLACES).cast().add(counter).as_ref() }
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        // SAFETY: it was mapped so, and is the caller's alone.
        unsafe { libc::munmap(self.0.as_ptr().cast(), BYTES - SPANS) };
    }
}

/// Whose make a block is.
pub(super) fn part(id: Id) -> u32 {
    id.place() / each(id.class())
}

/// The blocks of a size that a member can make, as places.
pub(super) fn places(member: u8, class: Class) -> std::ops::Range<u32> {
    let first = u32::from(member) * each(class);
    first..first + each(class)
}

/// How many of them there are.
fn each(class: Class) -> u32 {
    class.places() / MEMBERS as u32
}

/// Bytes of blocks of one size and maker that keep their pages while nobody has them, or one block: pages that are made
/// again take longer than to copy what is in them.
const KEPT: usize = 32 << 20;

/// Blocks of this size or more give their memory back when their maker is over: at most 5,460 of a maker.
const PUNCHED_FROM: usize = 64 << 10;

/// Whether a block keeps its pages while nobody has it. Members make and take those first.
pub(super) fn keeps_pages(id: Id) -> bool {
    let kept = (KEPT / id.class().bytes()).max(1) as u32;
    id.place() % each(id.class()) < kept
}

/// A block's word and byte among all.
pub(super) fn index(id: Id) -> usize {
    id.class().common_index() * PLACES + id.place() as usize
}

/// Where the file's blocks begin among all blocks.
fn first_offset() -> usize {
    Id::new(Class::common(0), 0).offset()
}
