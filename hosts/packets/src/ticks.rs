//! Time by the processor's own counter, for figures: to ask the system's clock twice takes longer than a small frame does.

use std::sync::LazyLock;
use std::time::Instant;

/// One moment by both.
static BEGIN: LazyLock<(Instant, u64)> = LazyLock::new(|| (Instant::now(), now()));

/// The counter, of this processor: those of others may be a little behind.
#[inline(always)]
pub(crate) fn now() -> u64 {
    // SAFETY: all processors of this architecture count so; it gives a number and changes nothing.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// From now on ticks can be told as time.
pub(crate) fn begin() {
    LazyLock::force(&BEGIN);
}

/// So many ticks as nanoseconds, by how fast the counter has gone since `begin`.
pub(crate) fn nanoseconds(ticks: u64) -> u64 {
    let (begin, first) = *BEGIN;
    let passed = now().saturating_sub(first).max(1);
    let time = u128::from(ticks) * begin.elapsed().as_nanos() / u128::from(passed);
    u64::try_from(time).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_as_long_as_the_clock_says() {
        begin();
        let (clock, first) = (Instant::now(), now());
        std::thread::sleep(std::time::Duration::from_millis(20));
        let (ticks, clock) = (now() - first, clock.elapsed().as_nanos() as u64);
        let told = nanoseconds(ticks);
        assert!(told > clock / 2 && told < clock * 2, "{told} {clock}");
    }
}
