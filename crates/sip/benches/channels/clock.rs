//! The time-stamp counter.

use std::time::{Duration, Instant};

/// How fast the counter runs.
pub(crate) struct Clock {
    pub(crate) per_nanosecond: f64,
}

impl Clock {
    pub(crate) fn new() -> Clock {
        let (begin, cycles) = (Instant::now(), now());
        std::thread::sleep(Duration::from_millis(200));
        let (cycles, nanoseconds) = (now() - cycles, begin.elapsed().as_nanos());
        Clock {
            per_nanosecond: cycles as f64 / nanoseconds as f64,
        }
    }
}

/// The counter.
#[inline]
pub(crate) fn now() -> u64 {
    // SAFETY: every x86-64 has it.
    unsafe { core::arch::x86_64::_rdtsc() }
}
