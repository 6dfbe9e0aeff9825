//! The memory of the table: reserved addresses that cost nothing until they are written.
//!
//! ```text
//!   shadow    64 TiB, private     two bytes for each word of the 47-bit address space
//!   maps      64 KiB a domain     one shared file, mapped twice: for the supervisor to write ...
//!   views     the same file       ... and for checked code to read
//! ```

use crate::access::Access;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicU8, AtomicU16, Ordering};
use thiserror::Error;

/// User programs have addresses of so many bits on this processor.
pub const ADDRESS_BITS: u32 = 47;

/// Words that the shadow covers.
pub(crate) const WORDS: u64 = 1 << (ADDRESS_BITS - 2);

const SHADOW_BYTES: usize = 2 << (ADDRESS_BITS - 2);

/// A byte for each number.
pub(crate) const MAP_BYTES: usize = 1 << 16;

/// So many bytes of the shadow are given back to the system rather than cleared.
const GIVE_BACK: usize = 1 << 16;

const PAGE: usize = 4096;

/// Why there is no table.
#[derive(Debug, Error)]
pub enum SpaceError {
    /// The system refuses the reservation.
    #[error(
        "cannot reserve {bytes:#x} bytes of address space for the {what} of the word wall: {source}; it needs no memory, \
         but no limit on address space (ulimit -v) and no vm.overcommit_memory=2"
    )]
    Reserve {
        /// Which part.
        what: &'static str,
        /// How much.
        bytes: usize,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file for the maps cannot be made.
    #[error("cannot make the memory file for the maps of the word wall: {0}")]
    File(std::io::Error),
}

/// A mapping, unmapped at its end.
#[derive(Debug)]
struct Mapping {
    base: *mut u8,
    bytes: usize,
}

impl Mapping {
    fn new(
        what: &'static str,
        bytes: usize,
        protection: i32,
        flags: i32,
        file: i32,
    ) -> Result<Mapping, SpaceError> {
        // SAFETY: no address is asked for, so no mapping that anybody uses is replaced.
        let base = unsafe {
            libc::mmap(
                ptr::null_mut(),
                bytes,
                protection,
                flags | libc::MAP_NORESERVE,
                file,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(SpaceError::Reserve {
                what,
                bytes,
                source: std::io::Error::last_os_error(),
            });
        }
        let base = base.cast();
        Ok(Mapping { base, bytes })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it is this mapping, which nobody but its owner had; all that borrows from the owner is gone.
        unsafe { libc::munmap(self.base.cast(), self.bytes) };
    }
}

/// Shadow and maps. Everything in them is read and written as atomic values, or by instructions that the compiler
/// does not look into, because checked code reads while the supervisor writes.
#[derive(Debug)]
pub(crate) struct Space {
    shadow: Mapping,
    maps: Mapping,
    views: Mapping,
    file: OwnedFd,
    slots: usize,
}

// SAFETY: the mappings belong to this value from beginning to end, and what is in them is only touched as atomic
// values, by any thread.
unsafe impl Send for Space {}
// SAFETY: as above.
unsafe impl Sync for Space {}

impl Space {
    /// With maps for so many domains at a time.
    pub(crate) fn reserve(slots: usize) -> Result<Space, SpaceError> {
        let (read, both) = (libc::PROT_READ, libc::PROT_READ | libc::PROT_WRITE);
        let private = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let shadow = Mapping::new("shadow", SHADOW_BYTES, both, private, -1)?;
        // A huge page for a granted word would be a thousand times what is shared. It is advice: a kernel
        // without huge pages refuses it, and needs none.
        // SAFETY: the range is the mapping just made.
        unsafe { libc::madvise(shadow.base.cast(), SHADOW_BYTES, libc::MADV_NOHUGEPAGE) };
        // A core file of it would be as long as the address space.
        // SAFETY: as above.
        unsafe { libc::madvise(shadow.base.cast(), SHADOW_BYTES, libc::MADV_DONTDUMP) };
        // SAFETY: the name is a string with its end.
        let file = unsafe { libc::memfd_create(c"mullion-word-maps".as_ptr(), libc::MFD_CLOEXEC) };
        if file < 0 {
            return Err(SpaceError::File(std::io::Error::last_os_error()));
        }
        // SAFETY: the descriptor was just made, and nobody else has it.
        let file = unsafe { OwnedFd::from_raw_fd(file) };
        let bytes = slots * MAP_BYTES;
        // SAFETY: it is a system call on our own descriptor.
        if unsafe { libc::ftruncate(file.as_raw_fd(), bytes as i64) } != 0 {
            return Err(SpaceError::File(std::io::Error::last_os_error()));
        }
        let shared = libc::MAP_SHARED;
        let maps = Mapping::new("maps", bytes, both, shared, file.as_raw_fd())?;
        let views = Mapping::new("views", bytes, read, shared, file.as_raw_fd())?;
        Ok(Space {
            shadow,
            maps,
            views,
            file,
            slots,
        })
    }

    pub(crate) fn slots(&self) -> usize {
        self.slots
    }

    /// Where the shadow begins: what checked code has as the base of its `%gs` segment.
    pub(crate) fn shadow_base(&self) -> *const u8 {
        self.shadow.base
    }

    /// A domain's map as checked code sees it.
    pub(crate) fn view_base(&self, slot: u32) -> *const u8 {
        assert!(
            (slot as usize) < self.slots,
            "maps are for {} domains",
            self.slots
        );
        self.views.base.wrapping_add(slot as usize * MAP_BYTES)
    }

    /// The number at `word`, which is below [`WORDS`].
    pub(crate) fn number(&self, word: u64) -> u16 {
        assert!(word < WORDS, "the shadow ends at word {WORDS:#x}");
        // SAFETY: the word is inside the shadow, two bytes each, and only atomic accesses are made there.
        let cell =
            unsafe { AtomicU16::from_ptr(self.shadow.base.cast::<u16>().add(word as usize)) };
        cell.load(Ordering::Acquire)
    }

    /// What the map at `slot` says of `number`.
    pub(crate) fn access(&self, slot: u32, number: u16) -> Access {
        let base = self.view_base(slot).cast_mut();
        // SAFETY: a map has a byte for each number; the mapping can only be read, and this only reads it.
        let cell = unsafe { AtomicU8::from_ptr(base.add(usize::from(number))) };
        Access::from_bits(cell.load(Ordering::Acquire))
    }

    /// Writes into a map.
    pub(crate) fn set_access(&self, slot: u32, number: u16, access: Access) {
        assert!(
            (slot as usize) < self.slots,
            "maps are for {} domains",
            self.slots
        );
        let at = slot as usize * MAP_BYTES + usize::from(number);
        // SAFETY: as in `access`, in the mapping that can be written.
        let cell = unsafe { AtomicU8::from_ptr(self.maps.base.add(at)) };
        cell.store(access.bits(), Ordering::Release);
    }

    /// A map with nothing in it, without memory.
    pub(crate) fn clear_map(&self, slot: u32) {
        assert!(
            (slot as usize) < self.slots,
            "maps are for {} domains",
            self.slots
        );
        let hole = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        let (at, bytes) = (slot as usize * MAP_BYTES, MAP_BYTES);
        // SAFETY: it is a system call on our own file.
        let done = unsafe { libc::fallocate(self.file.as_raw_fd(), hole, at as i64, bytes as i64) };
        if done != 0 {
            // The system has no holes: the bytes are cleared one by one.
            (0..=u16::MAX).for_each(|number| self.set_access(slot, number, Access::NONE));
        }
    }

    /// Writes `number` at the words from `first` to before `end`.
    pub(crate) fn fill(&self, first: u64, end: u64, number: u16) {
        assert!(
            first <= end && end <= WORDS,
            "the shadow ends at word {WORDS:#x}"
        );
        let from = self.shadow.base.wrapping_add(2 * first as usize);
        let bytes = 2 * (end - first) as usize;
        if number == 0 && bytes >= GIVE_BACK {
            self.give_back(from, bytes);
        } else {
            fill(from.cast(), bytes / 2, number);
        }
    }

    /// Zeros, and for whole pages no memory.
    fn give_back(&self, from: *mut u8, bytes: usize) {
        let head = from.align_offset(PAGE);
        let pages = (bytes - head) / PAGE * PAGE;
        let (start, tail) = (from.wrapping_add(head), bytes - head - pages);
        fill(from.cast(), head / 2, 0);
        // SAFETY: whole pages of the shadow, a private mapping without a file: they read as zeros from then on.
        let done = unsafe { libc::madvise(start.cast(), pages, libc::MADV_DONTNEED) };
        if done != 0 {
            fill(start.cast(), pages / 2, 0);
        }
        fill(start.wrapping_add(pages).cast(), tail / 2, 0);
    }
}

/// Writes `number` into `count` cells of the shadow. Only for cells inside it.
fn fill(mut to: *mut u16, mut count: usize, number: u16) {
    let store = |to: *mut u16| {
        // SAFETY: inside the shadow, by the callers' bounds; only atomic accesses are made there.
        unsafe { AtomicU16::from_ptr(to) }.store(number, Ordering::Release);
    };
    while count > 0 && !(to as usize).is_multiple_of(16) {
        store(to);
        to = to.wrapping_add(1);
        count -= 1;
    }
    let blocks = count / 8;
    if blocks > 0 {
        // Readers see each cell whole: a processor does not tear two bytes that lie in an aligned store.
        // SAFETY: `blocks` times 16 bytes from `to` on are inside the shadow, and `to` is aligned for it.
        unsafe {
            std::arch::asm!(
                "movd {x}, {number:e}",
                "pshuflw {x}, {x}, 0",
                "punpcklqdq {x}, {x}",
                "2:",
                "movdqa xmmword ptr [{to}], {x}",
                "add {to}, 16",
                "dec {blocks}",
                "jnz 2b",
                x = out(xmm_reg) _,
                number = in(reg) u32::from(number),
                to = inout(reg) to => to,
                blocks = inout(reg) blocks => _,
                options(nostack),
            );
        }
    }
    for _ in 0..count % 8 {
        store(to);
        to = to.wrapping_add(1);
    }
}
