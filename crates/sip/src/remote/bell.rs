//! Bells: how an OS process tells another that there is something in shared memory.
//!
//! ```text
//!   who rings                        a worker that is about to sleep
//!   write the message                asleep = 1
//!   rung += 1                        fence
//!   asleep? wake                     rung as before? sleep until it is not
//! ```
//! Either the one sees the other asleep, or the other sees the bell rung. A peer that writes nonsense here wakes
//! us for nothing, or is not heard: no third party depends on it.

use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::time::Duration;

use crate::system;

/// One bell, rung by one OS process and heard by one worker of another.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub(super) struct Bell {
    rung: AtomicU32,
    asleep: AtomicU32,
}

impl Bell {
    /// Tells the other side to look.
    #[inline]
    pub(super) fn ring(&self) {
        self.rung.fetch_add(1, Ordering::SeqCst);
        if self.asleep.load(Ordering::SeqCst) != 0 {
            self.asleep.store(0, Ordering::Relaxed);
            system::futex_wake_shared(&self.rung);
        }
    }

    #[inline]
    pub(super) fn rung(&self) -> u32 {
        self.rung.load(Ordering::Acquire)
    }

    fn set_asleep(&self, asleep: bool) {
        self.asleep.store(asleep.into(), Ordering::Relaxed);
    }
}

/// Sleeps until one of the bells is rung that was last seen as given, `word` is no longer `expected`, or `limit`
/// has passed; may return for no reason.
pub(super) fn sleep(
    bells: &[(&Bell, u32)],
    word: &AtomicU32,
    expected: u32,
    limit: Option<Duration>,
) {
    bells.iter().for_each(|(bell, _)| bell.set_asleep(true));
    fence(Ordering::SeqCst);
    if bells.iter().all(|(bell, seen)| bell.rung() == *seen) {
        let words = bells.iter().map(|(bell, seen)| (&bell.rung, *seen));
        system::futex_wait_any(word, expected, words, limit);
    }
    bells.iter().for_each(|(bell, _)| bell.set_asleep(false));
}
