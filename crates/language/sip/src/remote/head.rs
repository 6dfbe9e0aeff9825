//! What the OS process at each end of a line tells the other: that it has closed, and by which bell it hears.
//!
//! ```text
//!   who closes                                  who sends, and then closes too
//!   closed = 1                                  message; closed = 1
//!   fence                                       fence
//!   takes what has been sent                    peer closed? take back what it has not taken
//! ```
//! Of two that close at once, one at least sees what the other wrote before: what was sent is taken, or taken back.
//!
//! ```text
//!   who begins                                  who refuses
//!   bell = its worker's                         closed = 1, at both ends
//!   fence                                       fence
//!   closed? it ends                             rings the bell
//! ```
//! Whoever begins sees that it was refused, or is rung for.
//! This file depends on nothing else of the crate, and loom runs its tests in every order (`scripts/model`).

#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU32, Ordering};

#[cfg(loom)]
use crate::fence;
#[cfg(not(loom))]
use mullion_sip_core::order::fence;

/// All zero is open.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub(super) struct Head {
    closed: AtomicU32,
    /// Which bell of its OS process is to be rung.
    bell: AtomicU32,
}

impl Head {
    /// It sends nothing more, and takes nothing that is sent from now on.
    pub(super) fn close(&self) {
        self.closed.store(1, Ordering::Release);
    }

    /// By whoever has neither end, for an OS process that has this one or will have: which of its bells to ring then.
    pub(super) fn refuse(&self) -> u32 {
        self.close();
        fence();
        self.bell()
    }

    /// Who sees this sees all that was sent before.
    #[inline]
    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire) != 0
    }

    pub(super) fn set_bell(&self, bell: u32) {
        self.bell.store(bell, Ordering::Relaxed);
    }

    /// Any number there is, is one of a bell.
    pub(super) fn bell(&self) -> u32 {
        self.bell.load(Ordering::Relaxed)
    }
}

#[cfg(all(test, loom))]
mod tests {
    use super::*;
    use crate::line::{Word, order};
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    /// A line with one slot in each direction and an arena to the server; `lent` stands for a block that goes along,
    /// which its taker and its giver want, and one gets (`exchange/claim.rs`).
    struct Line {
        heads: [Head; 2],
        words: [Word; 2],
        arena: UnsafeCell<u32>,
        lent: AtomicU32,
        dropped: AtomicU32,
    }

    const CLIENT: usize = 0;
    const SERVER: usize = 1;

    impl Line {
        fn new() -> Arc<Line> {
            Arc::new(Line {
                heads: Default::default(),
                words: [Word::empty(), Word::empty()],
                arena: UnsafeCell::new(0),
                lent: AtomicU32::new(0),
                dropped: AtomicU32::new(0),
            })
        }

        fn write(&self, value: u32) {
            // SAFETY: loom's cell fails the test if anybody else uses it meanwhile.
            self.arena.with_mut(|arena| unsafe { *arena = value });
        }

        fn read(&self) -> u32 {
            // SAFETY: loom's cell fails the test if anybody writes it meanwhile.
            self.arena.with(|arena| unsafe { *arena })
        }

        fn send_block(&self) {
            self.lent.store(1, Ordering::Relaxed);
            self.words[SERVER].put(1, 5);
        }

        fn take_block(&self) {
            let taken = self
                .lent
                .compare_exchange(1, 0, Ordering::Relaxed, Ordering::Relaxed);
            self.dropped
                .fetch_add(taken.is_ok().into(), Ordering::Relaxed);
        }

        /// As `Bridge::end` at the server.
        fn end_of_server(&self) {
            self.heads[SERVER].close();
            order();
            if self.words[SERVER].find(1).is_some() {
                self.take_block();
            }
        }

        /// As `Bridge::end` at the client.
        fn end_of_client(&self) {
            self.heads[CLIENT].close();
            order();
            if self.heads[SERVER].is_closed() {
                self.take_block();
            }
        }
    }

    fn with(line: &Arc<Line>, act: impl FnOnce(&Line) + 'static) -> thread::JoinHandle<()> {
        let line = line.clone();
        thread::spawn(move || act(&line))
    }

    #[test]
    fn an_arena_is_written_again_when_the_peer_has_answered() {
        loom::model(|| {
            let line = Line::new();
            let server = with(&line, |line| {
                for count in 1..=2 {
                    while line.words[SERVER].find(count).is_none() {
                        thread::yield_now();
                    }
                    assert_eq!(line.read(), count);
                    line.words[CLIENT].put(count, 5);
                }
            });
            for count in 1..=2 {
                line.write(count);
                line.words[SERVER].put(count, 5);
                while line.words[CLIENT].find(count).is_none() {
                    thread::yield_now();
                }
            }
            server.join().expect("the server");
        });
    }

    #[test]
    fn what_was_sent_before_the_end_is_seen_with_it() {
        loom::model(|| {
            let line = Line::new();
            let client = with(&line, |line| {
                line.write(1);
                line.words[SERVER].put(1, 5);
                line.heads[CLIENT].close();
            });
            // As `Bridge::move_all`: ends are looked for before messages.
            if line.heads[CLIENT].is_closed() {
                assert_eq!(line.words[SERVER].find(1), Some(5));
                assert_eq!(line.read(), 1);
            }
            client.join().expect("the client");
        });
    }

    #[test]
    fn what_is_sent_as_both_end_is_taken_or_taken_back() {
        loom::model(|| {
            let line = Line::new();
            let server = with(&line, Line::end_of_server);
            line.send_block();
            line.end_of_client();
            server.join().expect("the server");
            assert_eq!(line.dropped.load(Ordering::Relaxed), 1);
        });
    }

    #[test]
    fn who_begins_as_it_is_refused_sees_it_or_is_rung_for() {
        loom::model(|| {
            let line = Line::new();
            let refused = Arc::new(AtomicU32::new(0));
            let other = {
                let (line, refused) = (line.clone(), refused.clone());
                thread::spawn(move || refused.store(line.heads[CLIENT].refuse(), Ordering::Relaxed))
            };
            // As `Bridge::go`.
            line.heads[CLIENT].set_bell(7);
            order();
            let sees = line.heads[CLIENT].is_closed();
            other.join().expect("the other");
            assert!(sees || refused.load(Ordering::Relaxed) == 7);
        });
    }

    /// The client finds out by the server's bell.
    #[test]
    fn what_is_sent_to_one_who_ends_is_taken_or_taken_back() {
        loom::model(|| {
            let line = Line::new();
            let server = with(&line, Line::end_of_server);
            line.send_block();
            server.join().expect("the server");
            line.end_of_client();
            assert_eq!(line.dropped.load(Ordering::Relaxed), 1);
        });
    }
}
