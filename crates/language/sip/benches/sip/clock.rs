//! The time-stamp counter, and which core a thread is on.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The counter.
#[inline]
pub(crate) fn now() -> u64 {
    // SAFETY: every x86-64 has it.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// How many of its cycles are a nanosecond.
pub(crate) fn per_nanosecond() -> f64 {
    static RATE: OnceLock<f64> = OnceLock::new();
    *RATE.get_or_init(|| {
        let (begin, cycles) = (Instant::now(), now());
        std::thread::sleep(Duration::from_millis(200));
        let (cycles, nanoseconds) = (now() - cycles, begin.elapsed().as_nanos());
        cycles as f64 / nanoseconds as f64
    })
}

/// The cores that this program may use.
pub(crate) fn cores() -> &'static [usize] {
    static ALLOWED: OnceLock<Vec<usize>> = OnceLock::new();
    ALLOWED.get_or_init(|| {
        let set = sched_getaffinity(None).expect("the cores that may be used");
        (0..CpuSet::MAX_CPU)
            .filter(|&core| set.is_set(core))
            .collect()
    })
}

/// Stays on the `index`-th of them.
pub(crate) fn pin(index: usize) {
    let mut set = CpuSet::new();
    set.set(cores()[index % cores().len()]);
    sched_setaffinity(None, &set).expect("a core");
}
