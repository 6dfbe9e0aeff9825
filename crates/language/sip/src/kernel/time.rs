//! Time, as the table counts it.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use mullion_sip_core::wait;

mullion_sip_core::__state!(OnceLock<Instant> = OnceLock::new());

/// When the kernel was first used.
fn beginning() -> Instant {
    *state().get_or_init(Instant::now)
}

pub(super) extern "C" fn now() -> u64 {
    beginning().elapsed().as_nanos() as u64
}

/// A time of the table; none for `u64::MAX`, and beyond what the clock can count.
pub(super) fn instant(deadline: u64) -> Option<Instant> {
    (deadline != u64::MAX)
        .then(|| beginning().checked_add(Duration::from_nanos(deadline)))
        .flatten()
}

pub(super) fn has_passed(deadline: u64) -> bool {
    instant(deadline).is_some_and(|deadline| Instant::now() >= deadline)
}

/// Waits to be woken, at most until then.
pub(super) fn park_until(deadline: u64) {
    match instant(deadline) {
        Some(deadline) => wait::park_until(deadline),
        None => wait::park(),
    }
}

pub(super) extern "C" fn park(deadline: u64) {
    park_until(deadline);
}
