//! What others give back to an owner, from any OS thread and without a lock.
//!
//! ```text
//!   | generation (32 bits) | units collected (32 bits) |
//! ```
//! The generation is of the owner's life: who still owes something to an owner that has ended gives it to nobody.
//! This file depends on nothing else of the crate, and loom runs its tests in every order (`scripts/model`).

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU64, Ordering};

/// All zero is the first life, with nothing given back.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Credit(AtomicU64);

impl Credit {
    #[cfg(all(test, loom))]
    fn new() -> Credit {
        Credit(AtomicU64::new(0))
    }

    /// The owner's life.
    pub(crate) fn generation(&self) -> u32 {
        (self.0.load(Ordering::Relaxed) >> 32) as u32
    }

    /// What has been given back since it was last collected.
    pub(crate) fn units(&self) -> u32 {
        self.0.load(Ordering::Relaxed) as u32
    }

    /// Gives back to one life of the owner; nothing if it is over, or if there is no room for the sum.
    pub(crate) fn give(&self, generation: u32, units: u64) {
        let add = |now: u64| {
            let collected = u64::from(now as u32) + units;
            let fits = collected <= u64::from(u32::MAX);
            (now >> 32 == u64::from(generation) && fits).then_some(now + units)
        };
        // A stale generation is the answer that the owner has ended.
        let _ = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    /// The owner takes what there is.
    pub(crate) fn collect(&self) -> u32 {
        let units = self.units();
        self.0.fetch_sub(units.into(), Ordering::Relaxed);
        units
    }

    /// The owner's life is over. Its worker alone collects and ends.
    pub(crate) fn end(&self) {
        let next = u64::from(self.generation().wrapping_add(1)) << 32;
        self.0.swap(next, Ordering::Relaxed);
    }
}

#[cfg(all(test, loom))]
mod tests {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    #[test]
    fn nothing_is_lost_or_counted_twice() {
        loom::model(|| {
            let credit = Arc::new(Credit::new());
            let givers: Vec<_> = [1, 10]
                .map(|units| {
                    let credit = credit.clone();
                    thread::spawn(move || credit.give(0, units))
                })
                .into();
            let mut collected = credit.collect();
            for giver in givers {
                giver.join().expect("a giver");
            }
            collected += credit.collect();
            assert_eq!((collected, credit.units()), (11, 0));
        });
    }

    #[test]
    fn the_next_life_gets_nothing_of_the_last() {
        loom::model(|| {
            let credit = Arc::new(Credit::new());
            let giver = {
                let credit = credit.clone();
                thread::spawn(move || credit.give(0, 5))
            };
            credit.end();
            assert_eq!((credit.generation(), credit.units()), (1, 0));
            giver.join().expect("the giver");
            assert_eq!((credit.generation(), credit.collect()), (1, 0));
        });
    }

    #[test]
    fn too_much_is_refused() {
        loom::model(|| {
            let credit = Credit::new();
            credit.give(0, u64::from(u32::MAX));
            credit.give(0, 1);
            assert_eq!((credit.generation(), credit.units()), (0, u32::MAX));
        });
    }
}
