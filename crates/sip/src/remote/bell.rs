//! Bells: how an OS process tells another that there is something in shared memory.
//!
//! ```text
//!   who sends                                  a worker that is about to sleep
//!   write the message                          hearer = SLEEPS
//!   fence                                      fence
//!   hearer looks? nothing more to do           a message, or rung since? go on
//!   rung += 1; hearer sleeps? wake             sleep until it is rung
//! ```
//! Either the one sees the other asleep, or the other sees the message. A worker that is awake and has few lines looks at
//! the messages themselves, so that one line of memory goes from core to core and not two. A peer that writes nonsense
//! here wakes us for nothing, or is not heard: no third party depends on it.

use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::time::Duration;

use crate::system;

/// It looks at its lines.
const LOOKS: u32 = 0;
/// It sleeps on the bell.
const SLEEPS: u32 = 1;
/// It looks at the bell: it has many lines, or has just been woken.
const HEARS: u32 = 2;

/// One bell, rung by one OS process and heard by one worker of another.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub(super) struct Bell {
    rung: AtomicU32,
    hearer: AtomicU32,
    /// The processor that the hearer stays on, from 1; 0 if it says nothing.
    processor: AtomicU32,
}

impl Bell {
    /// Tells the other side of a message that was written. Gives the processor that it stays on, from 1.
    #[inline]
    pub(super) fn tell(&self) -> u32 {
        fence(Ordering::SeqCst);
        if self.hearer.load(Ordering::Relaxed) != LOOKS {
            self.ring();
        }
        self.processor.load(Ordering::Relaxed)
    }

    /// Tells the other side to look at everything.
    pub(super) fn ring(&self) {
        self.rung.fetch_add(1, Ordering::SeqCst);
        if self.hearer.load(Ordering::SeqCst) == SLEEPS {
            self.hearer.store(HEARS, Ordering::Relaxed);
            system::futex_wake_shared(&self.rung);
        }
    }

    #[inline]
    pub(super) fn rung(&self) -> u32 {
        self.rung.load(Ordering::Acquire)
    }

    /// The hearer stays on a processor, from 1.
    pub(super) fn set_processor(&self, processor: u32) {
        self.processor.store(processor, Ordering::Relaxed);
    }

    /// What this side does while it is awake: looks at each of its lines, or only at the bell. In the second case it has
    /// to look at everything once more.
    pub(super) fn set_looks(&self, looks: bool) {
        let hearer = if looks { LOOKS } else { HEARS };
        self.hearer.store(hearer, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }
}

/// Sleeps until one of the bells is rung that was last seen as given, `word` is no longer `expected`, or `limit`
/// has passed; may return for no reason. Not at all if there is a message. Afterwards the worker `looks` at lines, or not.
pub(super) fn sleep(
    bells: &[(&Bell, u32)],
    looks: bool,
    has_message: impl Fn() -> bool,
    (word, expected): (&AtomicU32, u32),
    limit: Option<Duration>,
) {
    for (bell, _) in bells {
        bell.hearer.store(SLEEPS, Ordering::Relaxed);
    }
    fence(Ordering::SeqCst);
    if bells.iter().all(|(bell, seen)| bell.rung() == *seen) && !has_message() {
        let words = bells.iter().map(|(bell, seen)| (&bell.rung, *seen));
        system::futex_wait_any(word, expected, words, limit);
    }
    bells.iter().for_each(|(bell, _)| bell.set_looks(looks));
}
