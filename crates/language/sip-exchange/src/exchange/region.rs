//! The reservation that holds the exchange heap, and the records in it.
//!
//! The reservation is aligned to its size. So from the address of anything in it the rest is found
//! without a look at a global. It is reserved once and never returned; pages become memory when first written.

use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::credit::Credit;
use super::sizes::{Class, Id, PLACE_BITS, SPAN_BITS};

/// Spans for sizes, and as many again in front for what the heap knows of them.
const BLOCKS: usize = 32 << SPAN_BITS;
const SIZE: usize = 2 * BLOCKS;
const RECORDS: usize = size_of::<Record>() << (PLACE_BITS + 5);
/// Somewhat behind the records, lest the first of everything share one set of the cache.
const LEDGERS: usize = RECORDS + 21 * size_of::<Ledger>();
const _: () = assert!(LEDGERS + (size_of::<Ledger>() << PLACE_BITS) <= BLOCKS);

/// What the heap knows of a block. Touched by its owner's worker only, or by whoever holds it while it is in
/// flight; the head of an owner's list is one too.
#[repr(C)]
pub(crate) struct Record {
    /// The next in the owner's list, or in a list of free blocks.
    pub(crate) next: Id,
    /// The one before in the owner's list.
    pub(crate) previous: Id,
    /// Whose it is.
    pub(crate) holder: Holder,
    /// The next block of a walk that has to look into this one; of a head, the owner's latest block, which is not in the
    /// list yet.
    pub(crate) work: Id,
    /// How many values a walk finds in it.
    pub(crate) count: usize,
    /// How a walk looks into it.
    pub(crate) scan: Option<super::visitor::Scan>,
}

/// Whose a block is: nobody's, in flight, or a ledger's; and whether it is an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Holder(u32);

impl Holder {
    pub(crate) const FREE: Holder = Holder(0);
    const ENDPOINT: u32 = 1 << 31;
    const IN_FLIGHT: u32 = 1 << 30;
    const LENT: u32 = 1 << 29;

    #[inline]
    pub(crate) const fn endpoint(self) -> Holder {
        Holder(self.0 | Self::ENDPOINT)
    }

    #[inline]
    pub(crate) const fn is_endpoint(self) -> bool {
        self.0 & Self::ENDPOINT != 0
    }

    #[inline]
    pub(crate) const fn is_in_flight(self) -> bool {
        self.0 & Self::IN_FLIGHT != 0
    }

    /// In flight, and to another OS process as soon as it is dropped here.
    #[inline]
    pub(crate) const fn lent(self) -> Holder {
        Holder(self.0 | Self::IN_FLIGHT | Self::LENT)
    }

    #[inline]
    pub(crate) const fn is_lent(self) -> bool {
        self.0 & Self::LENT != 0
    }

    #[inline]
    pub(crate) const fn number(self) -> u32 {
        self.0 & (Self::IN_FLIGHT - 1)
    }

    /// The same kind of block, in flight.
    #[inline]
    pub(crate) const fn in_flight(self) -> Holder {
        Holder(self.0 & Self::ENDPOINT | Self::IN_FLIGHT)
    }

    /// The same kind of block, with another owner.
    #[inline]
    pub(crate) const fn held_by(self, number: u32) -> Holder {
        Holder(self.0 & Self::ENDPOINT | number)
    }
}

/// What an owner holds and may hold. Its worker alone writes `held` and `limit`.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Ledger {
    pub(crate) held: AtomicU64,
    pub(crate) limit: AtomicU64,
    /// What others give back, in units of [`super::sizes::SMALLEST`].
    pub(crate) credit: Credit,
    /// Messages that were sent from ends that the owner has closed.
    pub(crate) sent: AtomicU64,
}

/// The reservation. Copies are the same one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Region(NonNull<u8>);

// SAFETY: an address; what is reached through it says by itself who may.
unsafe impl Send for Region {}
// SAFETY: an address, which does not change; what is reached through it says by itself who may.
unsafe impl Sync for Region {}

mullion_sip_core::__state!(OnceLock<Region> = OnceLock::new());

impl Region {
    /// The one region, reserved at first use.
    pub(crate) fn get() -> Region {
        *state().get_or_init(|| Region(reserve()))
    }

    /// The region that something in it belongs to.
    #[inline]
    pub(crate) fn around<T>(inside: NonNull<T>) -> Region {
        let base = inside
            .as_ptr()
            .cast::<u8>()
            .map_addr(|address| address & !(SIZE - 1));
        // SAFETY: the region does not begin at address 0.
        Region(unsafe { NonNull::new_unchecked(base) })
    }

    /// Where the blocks are: the first address, and the bytes of the spans of all sizes.
    pub(crate) fn blocks(self) -> (usize, usize) {
        (self.0.addr().get() + BLOCKS, BLOCKS)
    }

    #[inline]
    pub(crate) fn record(self, id: Id) -> *mut Record {
        // SAFETY: every 32-bit number has a record within RECORDS (fewer under Miri, where ids are small).
        unsafe { self.0.as_ptr().cast::<Record>().add(id.0 as usize) }
    }

    #[inline]
    pub(crate) fn ledger(self, number: u32) -> &'static Ledger {
        let index = number as usize & ((1 << PLACE_BITS) - 1);
        // SAFETY: within the ledgers; zeroed or written through atomics only, and mapped for good.
        unsafe { &*self.0.as_ptr().add(LEDGERS).cast::<Ledger>().add(index) }
    }

    /// Where a block begins.
    #[inline]
    pub(crate) fn block(self, id: Id) -> NonNull<u8> {
        // SAFETY: an id's offset is below BLOCKS, and the blocks end with the region.
        unsafe { self.0.add(BLOCKS + id.offset()) }
    }

    /// The block that `inside` points into.
    #[inline]
    pub(crate) fn id<T>(inside: NonNull<T>) -> Id {
        Id::at(inside.as_ptr().addr() & (BLOCKS - 1))
    }

    /// The block of a size that `inside` points into.
    #[inline]
    pub(crate) fn id_of<T>(class: Class, inside: NonNull<T>) -> Id {
        Id::of(class, inside.as_ptr().addr() & (BLOCKS - 1))
    }

    /// Gives the pages of a free block back to the system; its content is zeros, or anything, from then on.
    pub(crate) fn discard(self, id: Id) {
        #[cfg(not(miri))]
        // SAFETY: the block is free, so nobody reads or writes it, and it covers whole pages.
        unsafe {
            let advice = match id.is_common() {
                true => libc::MADV_REMOVE,
                false => libc::MADV_DONTNEED,
            };
            libc::madvise(self.block(id).as_ptr().cast(), id.class().bytes(), advice);
        }
        #[cfg(miri)]
        let _ = id;
    }
}

impl Ledger {
    #[inline]
    pub(crate) fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }
}

#[cfg(not(miri))]
fn reserve() -> NonNull<u8> {
    // SAFETY: a fresh reservation of twice the size, of which the unaligned ends are given back; nobody else
    // knows the addresses yet.
    unsafe {
        let whole = libc::mmap(
            std::ptr::null_mut(),
            2 * SIZE,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        );
        if whole == libc::MAP_FAILED {
            let error = std::io::Error::last_os_error();
            panic!("mullion: no address space for the exchange heap ({SIZE} bytes): {error}");
        }
        let front = whole.addr().next_multiple_of(SIZE) - whole.addr();
        let base = whole.byte_add(front);
        if front > 0 {
            libc::munmap(whole, front);
        }
        libc::munmap(base.byte_add(SIZE), SIZE - front);
        // Records are far apart: huge pages would make each a 2 MiB page. Neither wish need be granted.
        libc::madvise(base, BLOCKS, libc::MADV_NOHUGEPAGE);
        libc::madvise(base, SIZE, libc::MADV_DONTDUMP);
        NonNull::new(base.cast()).unwrap_or_else(|| unreachable!("a mapping at address 0"))
    }
}

/// Miri maps no reservations: a small region from its allocator.
#[cfg(miri)]
fn reserve() -> NonNull<u8> {
    let layout = std::alloc::Layout::from_size_align(SIZE, SIZE).expect("a small power of two");
    // SAFETY: the size is not 0.
    NonNull::new(unsafe { std::alloc::alloc_zeroed(layout) }).expect("memory")
}
