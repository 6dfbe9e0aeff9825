//! A worker's free runs.

use std::cell::Cell;
use std::sync::atomic::Ordering;

use super::region::{self, ORDERS, UNIT};
use crate::system;

/// Free memory that a pool keeps ready; what comes beyond goes back to the system.
const KEPT: usize = 256 << 20;
/// Single units are taken from the frontier so many at a time.
const BATCH: u32 = 16;

/// Free runs by order, last in, first out. Used by one worker only. All zero is an empty pool.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    heads: [Cell<u32>; ORDERS],
    /// Bytes in the lists whose memory may be present.
    kept: Cell<usize>,
}

impl Pool {
    /// A run of 1 << order units that nobody has. Its memory holds anything.
    #[inline]
    pub(super) fn take(&self, order: usize) -> Option<u32> {
        let head = self.heads[order].get();
        if head == 0 {
            return self.carve(order);
        }
        self.heads[order].set(region::unit(head).next.get());
        self.kept.set(self.kept.get().saturating_sub(UNIT << order));
        Some(head)
    }

    #[cold]
    fn carve(&self, order: usize) -> Option<u32> {
        if order > 0 {
            return region::carve(order);
        }
        let first = region::carve(BATCH.ilog2() as usize)?;
        for number in (first + 1..first + BATCH).rev() {
            self.push(number, 0);
        }
        Some(first)
    }

    /// Takes back a run that nobody has any more.
    #[inline]
    pub(super) fn give(&self, number: u32, order: usize) {
        let bytes = UNIT << order;
        if self.kept.get() + bytes > KEPT {
            // SAFETY: the run is of the region, and it was just given up.
            unsafe { system::discard(region::address(number), bytes) };
        } else {
            self.kept.set(self.kept.get() + bytes);
        }
        self.push(number, order);
    }

    #[inline]
    fn push(&self, number: u32, order: usize) {
        let unit = region::unit(number);
        unit.owner.store(0, Ordering::Relaxed);
        unit.units.store(1 << order, Ordering::Relaxed);
        unit.next.set(self.heads[order].replace(number));
    }
}
