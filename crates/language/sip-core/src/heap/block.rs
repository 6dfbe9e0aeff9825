//! One process's heap.
//!
//! ```text
//!   bin of a class:  free -> block -> block -> null      freed blocks, last in, first out
//!                    bump .. end                         the part of the newest run never handed out
//! ```
//! A process may be ended between any two instructions of `allocate` and `release`: what they leave half done
//! goes with the heap. Only what concerns runs is critical (`runs`).

use std::alloc::Layout;
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::pool::Pool;
use super::region::{self, UNIT};
use super::size::{self, CLASSES, Size};
use crate::owners::Owner;

/// The process may have no more, or the region is used up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct OutOfMemory;

/// All zero is the heap of nobody, which gives nothing.
#[derive(Debug)]
pub(crate) struct Heap {
    bins: [Bin; CLASSES],
    /// The first of the heap's runs; 0 for none.
    pub(super) runs: Cell<u32>,
    /// In units: what it has, which others look at, and the most it may have.
    pub(super) used: AtomicUsize,
    pub(super) limit: Cell<usize>,
    pub(super) pool: Cell<Option<&'static Pool>>,
    pub(super) owner: Cell<u64>,
}

#[derive(Debug)]
struct Bin {
    free: Cell<*mut Free>,
    bump: Cell<*mut u8>,
    end: Cell<*mut u8>,
}

/// A block in a free list.
struct Free {
    next: *mut Free,
}

impl Heap {
    /// The heap of nobody.
    pub(crate) fn empty() -> Heap {
        Heap {
            bins: std::array::from_fn(|_| Bin {
                free: Cell::new(ptr::null_mut()),
                bump: Cell::new(ptr::null_mut()),
                end: Cell::new(ptr::null_mut()),
            }),
            runs: Cell::new(0),
            used: AtomicUsize::new(0),
            limit: Cell::new(0),
            pool: Cell::new(None),
            owner: Cell::new(0),
        }
    }

    /// Makes the heap ready for a new owner. It has no runs.
    pub(crate) fn open(&self, owner: Owner, limit: usize, pool: &'static Pool) {
        debug_assert_eq!(self.runs.get(), 0);
        for bin in &self.bins {
            bin.free.set(ptr::null_mut());
            bin.bump.set(ptr::null_mut());
            bin.end.set(ptr::null_mut());
        }
        self.used.store(0, Ordering::Relaxed);
        self.limit.set(limit / UNIT);
        self.pool.set(Some(pool));
        self.owner.set(owner.to_bits());
    }

    /// What it has, in bytes; for any thread.
    pub(crate) fn bytes(&self) -> usize {
        self.used.load(Ordering::Relaxed) * UNIT
    }

    /// Memory for a layout, holding anything.
    #[inline]
    pub(crate) fn allocate(&self, layout: Layout) -> Result<*mut u8, OutOfMemory> {
        match Size::of(layout).ok_or(OutOfMemory)? {
            Size::Class(class) => {
                let bin = &self.bins[class];
                let first = bin.free.get();
                if first.is_null() {
                    return self.fresh(class);
                }
                // SAFETY: what is in a free list is a free block of the class, written by `release`.
                bin.free.set(unsafe { (*first).next });
                Ok(first.cast())
            }
            Size::Run(order) => self.run(order).map(region::address),
        }
    }

    /// Takes back what `allocate` gave for the same layout.
    ///
    /// # Safety
    /// It is so, of this program's heaps, and nobody uses the block any more.
    #[inline]
    pub(crate) unsafe fn release(&self, block: *mut u8, layout: Layout) {
        let Some(number) = region::unit_of(block) else {
            return;
        };
        if !self.owns(number) {
            // Another's block: it goes back with its heap.
            return;
        }
        match Size::of(layout) {
            Some(Size::Class(class)) => {
                let bin = &self.bins[class];
                let block = block.cast::<Free>();
                // SAFETY: a block of a class has 16 bytes, is aligned to 16, and is free by the caller's word.
                unsafe { (*block).next = bin.free.get() };
                bin.free.set(block);
            }
            Some(Size::Run(_)) => self.unlink(number),
            None => {}
        }
    }

    /// A block that was never handed out.
    fn fresh(&self, class: usize) -> Result<*mut u8, OutOfMemory> {
        let (bin, bytes) = (&self.bins[class], size::bytes(class));
        if bin.end.get().addr() - bin.bump.get().addr() < bytes {
            let order = size::run(class);
            let start = region::address(self.run(order)?);
            bin.bump.set(start);
            bin.end.set(start.wrapping_add(UNIT << order));
        }
        let block = bin.bump.get();
        bin.bump.set(block.wrapping_add(bytes));
        Ok(block)
    }

    /// Whether a run is this heap's.
    #[inline]
    pub(super) fn owns(&self, number: u32) -> bool {
        region::unit(number).owner.load(Ordering::Relaxed) == self.owner.get()
    }
}
