//! How often the watchdog looks, and how it is woken.

use crate::memory::lock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

/// A part of the shortest limit that there was, in nanoseconds.
static TICK: AtomicU64 = AtomicU64::new(LONGEST);
const LONGEST: u64 = 200_000_000;
const SHORTEST: u64 = 5_000_000;
const PART: u64 = 8;

pub(crate) static WAKE: (Mutex<()>, Condvar) = (Mutex::new(()), Condvar::new());

pub(crate) fn nanoseconds(limit: Duration) -> u64 {
    u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX)
}

/// A domain with this limit is loaded: the watchdog looks often enough from now on.
pub(crate) fn expect(limit: Duration) {
    let tick = (nanoseconds(limit) / PART).max(SHORTEST);
    if TICK.fetch_min(tick, Ordering::Relaxed) > tick {
        wake();
    }
}

pub(crate) fn tick() -> Duration {
    Duration::from_nanos(TICK.load(Ordering::Relaxed))
}

#[cold]
pub(crate) fn wake() {
    let _turn = lock(&WAKE.0);
    WAKE.1.notify_one();
}
