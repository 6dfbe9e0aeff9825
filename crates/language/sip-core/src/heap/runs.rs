//! How a heap comes to have runs, and gives them back: in critical pieces, since the pool outlives the heap.

use std::sync::atomic::Ordering;

use super::block::{Heap, OutOfMemory};
use super::pool::Pool;
use super::region::{self, UNIT};
use crate::critical::critical;
use crate::decide;
use crate::owners::Owner;

impl Heap {
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
