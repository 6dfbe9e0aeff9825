//! What the two sides of a channel tell each other, without a lock: a message's word, who waits, and who has gone.
//!
//! ```text
//!   sender                              receiver                         who closes
//!   payload; word = count (release)     is the word there? (acquire)     peer_gone = 1
//!   fence                               no: waiter = me                  fence
//!   waiter? wake it                     fence                            waiter? wake it
//!   peer_gone? take back                is it there now? gone? else park
//! ```
//! Each orders what it writes before what it then looks at, so of two that meet at least one sees the other.
//! This file depends on nothing else of the crate, and loom runs its tests in every order (`scripts/model`).

#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, compiler_fence};

#[cfg(loom)]
use crate::fence;
#[cfg(not(loom))]
use mullion_sip_core::order::fence;

/// The word in front of a slot's payload: which message is in it.
#[derive(Debug)]
#[repr(transparent)]
pub struct Word(AtomicU64);

impl Word {
    /// No message.
    pub(crate) fn empty() -> Word {
        Word(AtomicU64::new(0))
    }

    /// The `count`-th message (from 1) is there, and has this number. What was written before is seen by who finds it.
    #[inline]
    pub fn put(&self, count: u32, number: u16) {
        let word = u64::from(count) << 16 | u64::from(number);
        self.0.store(word, Ordering::Release);
    }

    /// The number of the `count`-th message, if it is there.
    #[inline]
    pub fn find(&self, count: u32) -> Option<u16> {
        let word = self.0.load(Ordering::Acquire);
        (word >> 16 == u64::from(count)).then_some(word as u16)
    }
}

/// What one side is told, or tells, in a cache line of its own.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Line {
    /// Who waits here for a message; by its holder, and cleared by who wakes it.
    waiter: AtomicU64,
    /// The OS thread of the endpoint's holder; 0 while it is in flight and once it is closed.
    here: AtomicU64,
    /// Not 0 once the peer has closed.
    peer_gone: AtomicU32,
    /// At the end, how many messages this side has received.
    received: AtomicU32,
}

impl Line {
    pub(crate) fn new(here: u64) -> Line {
        Line {
            waiter: AtomicU64::new(0),
            here: AtomicU64::new(here),
            peer_gone: AtomicU32::new(0),
            received: AtomicU32::new(0),
        }
    }

    /// Whether the holder is on this OS thread. Only that thread writes its own number, so it is never wrong.
    #[inline]
    pub(crate) fn is_on(&self, here: u64) -> bool {
        self.here.load(Ordering::Relaxed) == here
    }

    /// The holder is there from now on.
    pub(crate) fn move_to(&self, here: u64) {
        self.here.store(here, Ordering::Relaxed);
    }

    /// Notes who is to be woken by the next message; the caller looks again before it parks, unless its peer is here.
    #[inline]
    pub(crate) fn note(&self, waiter: u64) {
        self.waiter.store(waiter, Ordering::Relaxed);
    }

    /// Who waits, as its own OS thread sees it.
    #[inline]
    pub(crate) fn waiter(&self) -> u64 {
        self.waiter.load(Ordering::Relaxed)
    }

    /// Who waits, if anybody does, for the caller to wake: nobody else gets the same answer.
    pub(crate) fn take_waiter(&self) -> Option<u64> {
        let waits = self.waiter.load(Ordering::Relaxed) != 0;
        let waiter = waits.then(|| self.waiter.swap(0, Ordering::AcqRel))?;
        (waiter != 0).then_some(waiter)
    }

    #[inline]
    pub(crate) fn is_peer_gone(&self) -> bool {
        self.peer_gone.load(Ordering::Acquire) != 0
    }

    /// The peer has closed.
    pub(crate) fn lose_peer(&self) {
        self.peer_gone.store(1, Ordering::Release);
    }

    /// How many messages this side had received when it closed.
    pub(crate) fn received(&self) -> u32 {
        self.received.load(Ordering::Relaxed)
    }

    /// Who sees afterwards that this side has closed sees this too.
    pub(crate) fn set_received(&self, count: u32) {
        self.received.store(count, Ordering::Relaxed);
    }
}

/// Between what one wrote for the peer and what one looks at of it.
#[inline]
pub fn order() {
    fence();
}

/// The same against signals of the calling thread only, which may end it.
#[cfg(not(loom))]
#[inline]
pub(crate) fn order_here() {
    compiler_fence(Ordering::SeqCst);
}

/// How many endpoints of a channel are open.
#[derive(Debug)]
pub(crate) struct Open(AtomicU32);

impl Open {
    pub(crate) fn both() -> Open {
        Open(AtomicU32::new(2))
    }

    pub(crate) fn is_both(&self) -> bool {
        self.0.load(Ordering::Acquire) == 2
    }

    /// One is closed. True for the second, who sees all that the first did.
    pub(crate) fn close(&self) -> bool {
        self.0.fetch_sub(1, Ordering::AcqRel) == 1
    }
}

#[cfg(all(test, loom))]
mod tests {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::{Arc, Notify};
    use loom::thread;

    /// A channel with two slots, as `place` uses these words; `woken` stands for the parking of the receiver, which
    /// is number 7, and `dropped` counts messages that are dropped.
    struct Channel {
        words: [Word; 2],
        payloads: [UnsafeCell<u32>; 2],
        /// The sender's and the receiver's.
        lines: [Line; 2],
        open: Open,
        woken: Notify,
        dropped: AtomicU32,
    }

    impl Channel {
        fn new() -> Arc<Channel> {
            Arc::new(Channel {
                words: [Word::empty(), Word::empty()],
                payloads: [UnsafeCell::new(0), UnsafeCell::new(0)],
                lines: [Line::new(1), Line::new(2)],
                open: Open::both(),
                woken: Notify::new(),
                dropped: AtomicU32::new(0),
            })
        }

        fn push(&self, count: u32) {
            let slot = count as usize % 2;
            // SAFETY: loom's cell fails the test if anybody else uses it meanwhile.
            self.payloads[slot].with_mut(|payload| unsafe { *payload = count * 10 });
            self.words[slot].put(count, 5);
        }

        fn wake(&self) {
            if let Some(waiter) = self.lines[1].take_waiter() {
                assert_eq!(waiter, 7);
                self.woken.notify();
            }
        }

        /// Sends, as `Endpoint::push_elsewhere` does. False if the peer had gone before.
        fn send(&self, count: u32) -> bool {
            if self.lines[0].is_peer_gone() {
                return false;
            }
            self.push(count);
            order();
            self.wake();
            if self.lines[0].is_peer_gone() {
                while self.open.is_both() {
                    thread::yield_now();
                }
                self.drop_from(self.lines[1].received());
            }
            true
        }

        fn payload(&self, count: u32) -> Option<u32> {
            let slot = count as usize % 2;
            let number = self.words[slot].find(count)?;
            assert_eq!(number, 5);
            // SAFETY: loom's cell fails the test if anybody writes it meanwhile.
            Some(self.payloads[slot].with(|payload| unsafe { *payload }))
        }

        /// Drops what comes after the `received`-th; as `EndpointPlace::drop_incoming`.
        fn drop_from(&self, mut received: u32) {
            while self.payload(received + 1).is_some() {
                received += 1;
                self.dropped.fetch_add(1, Ordering::Relaxed);
            }
            self.lines[1].set_received(received);
        }

        /// The receiver waits for the `count`-th message; `None` if the peer has gone.
        fn receive(&self, count: u32) -> Option<u32> {
            loop {
                if let Some(payload) = self.payload(count) {
                    return Some(payload);
                }
                self.lines[1].note(7);
                order();
                if let Some(payload) = self.payload(count) {
                    self.lines[1].note(0);
                    return Some(payload);
                }
                if self.lines[1].is_peer_gone() {
                    return self.payload(count);
                }
                // Parked: who is not woken waits here for ever, which loom finds.
                self.woken.wait();
            }
        }

        fn close_receiver(&self, received: u32) {
            self.lines[0].lose_peer();
            order();
            self.drop_from(received);
            if self.open.close() {
                self.drop_from(self.lines[1].received());
            }
        }

        fn close_sender(&self) {
            self.lines[1].lose_peer();
            order();
            self.wake();
            if self.open.close() {
                self.drop_from(self.lines[1].received());
            }
        }
    }

    #[test]
    fn a_message_arrives_whole_and_wakes() {
        loom::model(|| {
            let channel = Channel::new();
            let sender = {
                let channel = channel.clone();
                thread::spawn(move || assert!(channel.send(1)))
            };
            assert_eq!(channel.receive(1), Some(10));
            sender.join().expect("the sender");
        });
    }

    #[test]
    fn the_end_of_a_sender_wakes_and_comes_after_its_messages() {
        loom::model(|| {
            let channel = Channel::new();
            let sender = {
                let channel = channel.clone();
                thread::spawn(move || {
                    assert!(channel.send(1));
                    channel.close_sender();
                })
            };
            assert_eq!(channel.receive(1), Some(10));
            assert_eq!(channel.receive(2), None);
            sender.join().expect("the sender");
        });
    }

    #[test]
    fn what_nobody_receives_is_dropped_once() {
        loom::model(|| {
            let channel = Channel::new();
            let sender = {
                let channel = channel.clone();
                thread::spawn(move || {
                    let sent = u32::from(channel.send(1));
                    channel.close_sender();
                    sent
                })
            };
            channel.close_receiver(0);
            let sent = sender.join().expect("the sender");
            assert_eq!(channel.dropped.load(Ordering::Relaxed), sent);
        });
    }
}
