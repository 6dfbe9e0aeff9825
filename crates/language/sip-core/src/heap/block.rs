//! One process's heap.
//!
//! ```text
//!   bin of a class:  free -> block -> block -> null      freed blocks, last in, first out
//!                    bump .. end                         the part of the newest run never handed out
//! ```
//! A process may be ended between any two instructions of `allocate` and `release`: what they leave half done
//! goes with the heap. Only what concerns runs is critical, since the pool outlives the heap.

use std::alloc::Layout;
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::pool::Pool;
use super::region::{self, UNIT};
use super::size::{self, CLASSES, Size};
use crate::critical::critical;
use crate::decide;
use crate::owner::Owner;

/// The process may have no more, or the region is used up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct OutOfMemory;

/// All zero is the heap of nobody, which gives nothing.
#[derive(Debug)]
pub(crate) struct Heap {
    bins: [Bin; CLASSES],
    /// The first of the heap's runs; 0 for none.
    runs: Cell<u32>,
    /// In units: what it has, which others look at, and the most it may have.
    used: AtomicUsize,
    limit: Cell<usize>,
    pool: Cell<Option<&'static Pool>>,
    owner: Cell<u64>,
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

    /// Gives every run back, whose owner has ended. Nobody uses a block of the heap any more.
    pub(crate) fn close(&self) {
        let Some(pool) = self.pool.take() else { return };
        let mut number = self.runs.replace(0);
        while number != 0 {
            let next = region::unit(number).next.get();
            give(pool, number);
            number = next;
        }
        self.used.store(0, Ordering::Relaxed);
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

    /// Another run for this heap, by its first unit.
    pub(crate) fn run(&self, order: usize) -> Result<u32, OutOfMemory> {
        let used = self.used.load(Ordering::Relaxed) + (1 << order);
        if used > self.limit.get() {
            return Err(OutOfMemory);
        }
        let _whole = critical();
        let number = self
            .pool
            .get()
            .and_then(|pool| pool.take(order))
            .ok_or(OutOfMemory)?;
        let owner = Owner::from_bits(self.owner.get());
        if decide::give(owner, region::address(number).addr(), UNIT << order).is_err() {
            self.put_back(number, order);
            return Err(OutOfMemory);
        }
        self.used.store(used, Ordering::Relaxed);
        let first = region::unit(number);
        first.units.store(1 << order, Ordering::Relaxed);
        first.owner.store(self.owner.get(), Ordering::Relaxed);
        first.pages.set(false);
        for inside in number + 1..number + (1 << order.min(3)) {
            let unit = region::unit(inside);
            unit.owner.store(self.owner.get(), Ordering::Relaxed);
            unit.units.store(0, Ordering::Relaxed);
        }
        let next = self.runs.replace(number);
        first.previous.set(0);
        first.next.set(next);
        if next != 0 {
            region::unit(next).previous.set(number);
        }
        Ok(number)
    }

    /// A run that the process does not get.
    #[cold]
    fn put_back(&self, number: u32, order: usize) {
        if let Some(pool) = self.pool.get() {
            pool.give(number, order);
        }
    }

    /// Whether a run is this heap's.
    #[inline]
    pub(super) fn owns(&self, number: u32) -> bool {
        region::unit(number).owner.load(Ordering::Relaxed) == self.owner.get()
    }

    /// Gives one run back.
    pub(crate) fn unlink(&self, number: u32) {
        let _whole = critical();
        let Some(pool) = self.pool.get() else { return };
        let unit = region::unit(number);
        let (previous, next) = (unit.previous.get(), unit.next.get());
        match previous {
            0 => self.runs.set(next),
            _ => region::unit(previous).next.set(next),
        }
        if next != 0 {
            region::unit(next).previous.set(previous);
        }
        let used = self.used.load(Ordering::Relaxed);
        let units = unit.units.load(Ordering::Relaxed) as usize;
        self.used.store(used - units, Ordering::Relaxed);
        let owner = Owner::from_bits(self.owner.get());
        decide::take_back(owner, region::address(number).addr(), units * UNIT);
        give(pool, number);
    }
}

fn give(pool: &Pool, number: u32) {
    let units = region::unit(number).units.load(Ordering::Relaxed);
    pool.give(number, units.ilog2() as usize);
}
