//! Whose turn it is: work that one does at a time, and nobody waits for. Who finds it being done leaves word, and whoever
//! does it begins again.
//!
//! ```text
//!   IDLE --ask, who does it--> AGAIN --begin--> BUSY --end--> IDLE
//!                                ^               |
//!                                +--ask, leaves--+   end finds AGAIN: begin
//! ```
//! The first may also begin at once (IDLE to BUSY), for a try after which it may have to run.
//! One word, and each step reads the last one: what was written before `ask` is seen by a `begin` that comes after it.
//! This file depends on nothing else of the crate, and loom runs its tests in every order (`scripts/model`).

#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU32, Ordering};

const IDLE: u32 = 0;
/// Somebody does it.
const BUSY: u32 = 1;
/// Somebody does it, and is to begin (again).
const AGAIN: u32 = 2;

#[derive(Debug, Default)]
pub(super) struct Turn(AtomicU32);

impl Turn {
    /// Has `work` done by the caller, if nobody is at it. True if it has been done after this call, and says that it was
    /// enough; otherwise the caller is to [`run`](Turn::run).
    #[inline]
    pub(super) fn run_at_once(&self, work: impl FnOnce() -> bool) -> bool {
        let begun = (self.0).compare_exchange(IDLE, BUSY, Ordering::Acquire, Ordering::Relaxed);
        if begun.is_err() {
            return false;
        }
        let enough = work();
        let ended = (self.0).compare_exchange(BUSY, IDLE, Ordering::Release, Ordering::Relaxed);
        if ended.is_err() {
            // Somebody has left word, for which the caller runs.
            self.0.swap(IDLE, Ordering::AcqRel);
            return false;
        }
        enough
    }

    /// Has `work` done after this call, by the caller unless somebody is at it. Never by two at once.
    pub(super) fn run(&self, mut work: impl FnMut()) {
        if self.0.swap(AGAIN, Ordering::Release) != IDLE {
            return;
        }
        loop {
            self.0.swap(BUSY, Ordering::Acquire);
            work();
            let ended = self
                .0
                .compare_exchange(BUSY, IDLE, Ordering::Release, Ordering::Relaxed);
            if ended.is_ok() {
                return;
            }
        }
    }
}

#[cfg(all(test, loom))]
mod tests {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::{Arc, Mutex};
    use loom::thread;

    /// What two ask for, and how much of it was done.
    struct Shared {
        turn: Turn,
        asked: [AtomicU32; 2],
        done: UnsafeCell<u32>,
    }

    impl Shared {
        fn ask(&self, who: usize) {
            self.asked[who].store(1, Ordering::Relaxed);
            self.turn.run(|| {
                let asked = self.asked.iter().map(|asked| asked.load(Ordering::Relaxed));
                // SAFETY: loom's cell fails the test if anybody else uses it meanwhile.
                self.done.with_mut(|done| unsafe { *done = asked.sum() });
            });
        }
    }

    impl Shared {
        /// As `Bridge::pump`, of which the first try may be enough.
        fn ask_at_once(&self, who: usize, enough: bool) {
            self.asked[who].store(1, Ordering::Relaxed);
            let work = || {
                let asked = self.asked.iter().map(|asked| asked.load(Ordering::Relaxed));
                // SAFETY: the turn is ours while `work` runs; loom's cell fails the test if anybody else is in it.
                self.done.with_mut(|done| unsafe { *done = asked.sum() });
            };
            let done = self.turn.run_at_once(|| {
                work();
                enough
            });
            if !done {
                self.turn.run(work);
            }
        }
    }

    fn asked_at_once(enough: bool) {
        loom::model(move || {
            let shared = Arc::new(Shared {
                turn: Turn::default(),
                asked: [AtomicU32::new(0), AtomicU32::new(0)],
                done: UnsafeCell::new(0),
            });
            let other = {
                let shared = shared.clone();
                thread::spawn(move || shared.ask_at_once(0, enough))
            };
            shared.ask_at_once(1, enough);
            other.join().expect("the other");
            // SAFETY: the other thread was joined, so nobody else uses the cell.
            assert_eq!(shared.done.with(|done| unsafe { *done }), 2);
        });
    }

    #[test]
    fn what_was_asked_for_is_done_at_once_or_later() {
        asked_at_once(true);
    }

    #[test]
    fn also_if_the_first_try_is_not_enough() {
        asked_at_once(false);
    }

    /// As `Bridge::pump` where the first try moves one message, and what was sent before there was a way waits for it.
    #[test]
    fn also_if_more_waits_than_the_first_try_moves() {
        #[derive(Default)]
        struct Bridge {
            turn: Turn,
            sent: AtomicU32,
            /// Whether there is a way, and how many have gone.
            ends: Mutex<(bool, u32)>,
        }
        impl Bridge {
            fn pump(&self) {
                let enough = self.turn.run_at_once(|| {
                    let Ok(mut ends) = self.ends.try_lock() else {
                        return false;
                    };
                    let sent = self.sent.load(Ordering::Relaxed);
                    ends.1 += u32::from(ends.0 && ends.1 < sent);
                    ends.0 && ends.1 == self.sent.load(Ordering::Relaxed)
                });
                if enough {
                    return;
                }
                self.turn.run(|| {
                    if let Ok(mut ends) = self.ends.try_lock()
                        && ends.0
                    {
                        ends.1 = self.sent.load(Ordering::Relaxed);
                    }
                });
            }
        }
        loom::model(|| {
            let bridge = Arc::new(Bridge::default());
            let travels = {
                let bridge = bridge.clone();
                thread::spawn(move || {
                    bridge.ends.lock().expect("whole").0 = true;
                    bridge.pump();
                })
            };
            for sent in 1..=2 {
                bridge.sent.store(sent, Ordering::Relaxed);
                bridge.pump();
            }
            travels.join().expect("the other");
            assert_eq!(bridge.ends.lock().expect("whole").1, 2);
        });
    }

    fn asked_by(who: &'static [usize]) {
        loom::model(move || {
            let shared = Arc::new(Shared {
                turn: Turn::default(),
                asked: [AtomicU32::new(0), AtomicU32::new(0)],
                done: UnsafeCell::new(0),
            });
            let other = {
                let shared = shared.clone();
                thread::spawn(move || who.iter().for_each(|who| shared.ask(*who)))
            };
            shared.ask(1);
            other.join().expect("the other");
            // SAFETY: loom's cell fails the test if anybody writes it meanwhile.
            assert_eq!(shared.done.with(|done| unsafe { *done }), 2);
        });
    }

    #[test]
    fn what_was_asked_for_is_done_and_by_one_at_a_time() {
        asked_by(&[0]);
    }

    #[test]
    fn also_if_it_is_asked_for_again() {
        asked_by(&[0, 0]);
    }

    /// As `Bridge::pump`, while `travel` has the bridge's lock and pumps when it has let go.
    #[test]
    fn also_if_somebody_has_it_out_of_turn() {
        #[derive(Default)]
        struct Bridge {
            turn: Turn,
            sent: AtomicU32,
            moved: Mutex<u32>,
        }
        impl Bridge {
            fn pump(&self) {
                self.turn.run(|| {
                    if let Ok(mut moved) = self.moved.try_lock() {
                        *moved = self.sent.load(Ordering::Relaxed);
                    }
                });
            }
        }
        loom::model(|| {
            let bridge = Arc::new(Bridge::default());
            let travels = {
                let bridge = bridge.clone();
                thread::spawn(move || {
                    drop(bridge.moved.lock().expect("whole"));
                    bridge.pump();
                })
            };
            bridge.sent.store(1, Ordering::Relaxed);
            bridge.pump();
            travels.join().expect("the other");
            assert_eq!(*bridge.moved.lock().expect("whole"), 1);
        });
    }
}
