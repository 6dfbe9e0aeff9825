//! Threads that wait for a time.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::time::Instant;

/// Deadlines of one worker's threads, at most one each.
#[derive(Debug, Default)]
pub(crate) struct Timers(RefCell<BTreeSet<(Instant, u32)>>);

impl Timers {
    pub(crate) fn add(&self, deadline: Instant, slot: u32) {
        self.0.borrow_mut().insert((deadline, slot));
    }

    pub(crate) fn remove(&self, deadline: Instant, slot: u32) {
        self.0.borrow_mut().remove(&(deadline, slot));
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    pub(crate) fn next(&self) -> Option<Instant> {
        self.0.borrow().first().map(|(deadline, _)| *deadline)
    }

    /// Takes a thread that is due at `now`.
    pub(crate) fn due(&self, now: Instant) -> Option<u32> {
        let mut timers = self.0.borrow_mut();
        let (deadline, slot) = *timers.first()?;
        (deadline <= now).then(|| {
            timers.pop_first();
            slot
        })
    }
}
