//! Bells: how an OS process tells another that there is something in shared memory.
//!
//! ```text
//!   who sends                                  a worker that is about to sleep
//!   write the message                          hearer = SLEEPS
//!   fence                                      fence
//!   hearer looks? nothing more to do           a message, or rung since? go on
//!   rung += 1; fence; hearer sleeps?           sleep until it is rung
//!   hearer = HEARS; rung += 1; wake
//! ```
//! Either the one sees the other asleep, or the other sees the message. A worker that is awake and has few lines looks at
//! the messages themselves. So one line of memory goes from core to core and not two. A peer that writes nonsense
//! here wakes us for nothing, or is not heard: no third party depends on it.
//!
//! It is rung a second time after HEARS. Who rings may be late, and take the note of a later sleep away than the one that
//! it has seen. That one then sees the second ring, or is woken by it.
//!
//! This file depends on nothing else of the crate, and loom runs its tests in every order (`scripts/model`): sleeping and
//! waking are the callers'.

#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU32, Ordering};

#[cfg(loom)]
use crate::fence;
#[cfg(not(loom))]
use mullion_sip_core::order::fence;

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
    /// Tells the other side of a message that was written; `wake` wakes who sleeps on the word. Gives the processor that
    /// it stays on, from 1.
    #[inline]
    pub(super) fn tell(&self, wake: impl FnOnce(&AtomicU32)) -> u32 {
        fence();
        if self.hearer.load(Ordering::Relaxed) != LOOKS {
            self.ring(wake);
        }
        self.processor.load(Ordering::Relaxed)
    }

    /// Tells the other side to look at everything.
    pub(super) fn ring(&self, wake: impl FnOnce(&AtomicU32)) {
        self.rung.fetch_add(1, Ordering::Release);
        fence();
        if self.hearer.load(Ordering::Relaxed) == SLEEPS {
            self.hearer.store(HEARS, Ordering::Relaxed);
            self.rung.fetch_add(1, Ordering::Release);
            wake(&self.rung);
        }
    }

    /// Wakes who hears, by the same OS process.
    pub(super) fn ring_own(&self, wake: impl FnOnce(&AtomicU32)) {
        self.rung.fetch_add(1, Ordering::Release);
        wake(&self.rung);
    }

    #[inline]
    pub(super) fn rung(&self) -> u32 {
        self.rung.load(Ordering::Acquire)
    }

    /// What who hears sleeps on.
    pub(super) fn word(&self) -> &AtomicU32 {
        &self.rung
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
        fence();
    }
}

/// Calls `wait` unless one of the bells is no longer as it was last seen, or there is a message. `wait` returns when one of
/// the words is not as given, or for no reason. Afterwards the worker `looks` at lines, or not.
pub(super) fn sleep<'a>(
    bells: impl Iterator<Item = (&'a Bell, u32)> + Clone,
    looks: bool,
    has_message: impl FnOnce() -> bool,
    wait: impl FnOnce(),
) {
    for (bell, _) in bells.clone() {
        bell.hearer.store(SLEEPS, Ordering::Relaxed);
    }
    fence();
    if bells.clone().all(|(bell, seen)| bell.rung() == seen) && !has_message() {
        wait();
    }
    bells.for_each(|(bell, _)| bell.set_looks(looks));
}

#[cfg(all(test, loom))]
mod tests {
    use super::*;
    use loom::sync::{Arc, Condvar, Mutex};
    use loom::thread;

    /// A line of messages, its bell, and the lock of Linux's futex: who waits holds it while it compares. Messages order
    /// nothing by themselves here.
    #[derive(Default)]
    struct Way {
        bell: Bell,
        messages: AtomicU32,
        lock: Mutex<()>,
        woken: Condvar,
    }

    impl Way {
        fn wake(&self) {
            let lock = self.lock.lock().expect("whole");
            self.woken.notify_all();
            drop(lock);
        }

        fn wait(&self, expected: u32) {
            let lock = self.lock.lock().expect("whole");
            if self.bell.word().load(Ordering::Relaxed) == expected {
                drop(self.woken.wait(lock));
            }
        }

        fn send(&self, count: u32) {
            self.messages.store(count, Ordering::Relaxed);
            self.bell.tell(|_| self.wake());
        }

        /// As a worker does: it sleeps only if nothing has come since it last looked. Who is not woken sleeps here for
        /// ever, which loom finds.
        fn hear(&self, count: u32, looks: bool) {
            let mut seen = self.bell.rung();
            let has_message = || self.messages.load(Ordering::Relaxed) >= count;
            // Who hears only the bell looks at the line when it was rung, and once after it has said that it does.
            while !has_message() {
                let look = || looks && has_message();
                let bells = std::iter::once((&self.bell, seen));
                sleep(bells, looks, look, || self.wait(seen));
                seen = self.bell.rung();
            }
        }
    }

    fn heard(messages: u32, looks: bool) {
        loom::model(move || {
            let way = Arc::new(Way::default());
            let sender = {
                let way = way.clone();
                thread::spawn(move || (1..=messages).for_each(|count| way.send(count)))
            };
            way.bell.set_looks(looks);
            (1..=messages).for_each(|count| way.hear(count, looks));
            sender.join().expect("the sender");
        });
    }

    #[test]
    fn nobody_sleeps_over_a_message() {
        heard(1, true);
    }

    #[test]
    fn nobody_sleeps_over_a_bell() {
        heard(1, false);
    }

    #[test]
    fn nobody_sleeps_over_what_is_only_rung_for() {
        loom::model(|| {
            let way = Arc::new(Way::default());
            let sender = {
                let way = way.clone();
                thread::spawn(move || {
                    way.messages.store(1, Ordering::Relaxed);
                    way.bell.ring(|_| way.wake());
                })
            };
            way.bell.set_looks(false);
            way.hear(1, false);
            sender.join().expect("the sender");
        });
    }

    #[test]
    fn who_rings_late_does_not_silence_the_next_sleep() {
        heard(2, true);
    }

    #[test]
    fn nor_where_only_the_bell_is_heard() {
        heard(2, false);
    }

    #[test]
    fn nobody_sleeps_over_one_of_two_senders() {
        loom::model(|| {
            let way = Arc::new(Way::default());
            let senders = [(); 2].map(|()| {
                let way = way.clone();
                thread::spawn(move || {
                    way.messages.fetch_add(1, Ordering::Relaxed);
                    way.bell.tell(|_| way.wake());
                })
            });
            way.hear(2, true);
            for sender in senders {
                sender.join().expect("a sender");
            }
        });
    }
}
