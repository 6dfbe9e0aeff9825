//! Counters that many threads count up, without a line of the cache that goes from processor to processor.

use std::sync::atomic::{AtomicU64, Ordering};

/// So many places, each in a line of its own.
const PLACES: usize = 32;

#[derive(Default)]
#[repr(align(64))]
struct Place(AtomicU64);

#[derive(Default)]
pub(crate) struct Counter([Place; PLACES]);

impl Counter {
    /// Threads' stacks lie apart, so an address on one says which place is the thread's. Two threads may have the same one;
    /// if they count at the same moment, one of the two is lost.
    #[inline]
    pub(crate) fn count(&self) -> u64 {
        self.add(1)
    }

    /// Adds, and says what was there.
    #[inline]
    pub(crate) fn add(&self, more: u64) -> u64 {
        let mark = 0u8;
        let at = (&raw const mark as usize >> 23) % PLACES;
        let place = &self.0[at].0;
        let before = place.load(Ordering::Relaxed);
        place.store(before + more, Ordering::Relaxed);
        before
    }

    pub(crate) fn sum(&self) -> u64 {
        let places = self.0.iter();
        places.map(|place| place.0.load(Ordering::Relaxed)).sum()
    }
}
