//! Who has a block of common memory: a word in the table that all members can write, and a byte of each member's own.
//!
//! ```text
//!   word    0                   its maker has it, or nobody has made it
//!           holder | giver      on its way from the giver, or with the holder (giver 0)
//!           RETURNED            nobody has it; its maker takes it when it needs one
//!   here    1 while this member has it
//! ```
//! Whoever takes a block sees all that was written into it before it was lent or returned. The word orders it,
//! whichever way its number goes. `here` is set before the word is changed, and reset before a block is returned and
//! after it is lent. So at no time both say that nobody has a block that somebody has, and it can come again at once.
//!
//! A sweep after a death, a giver that takes back and a taker may meet at one word: one of them gets it.
//! This file depends on nothing else of the crate, and loom runs its tests in every order (`scripts/model`).

#[cfg(loom)]
use loom::sync::atomic::{AtomicU8, AtomicU32, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

/// A block's word in the table. All zero is fit for use.
#[derive(Debug)]
#[repr(transparent)]
pub(super) struct Word(AtomicU32);

/// Whether this member has the block. All zero is no. It orders nothing: the word does.
#[derive(Debug)]
#[repr(transparent)]
pub(super) struct Here(AtomicU8);

/// Nobody has it.
const RETURNED: u32 = u32::MAX;

fn held(by: u16, from: u16) -> u32 {
    u32::from(by) | u32::from(from) << 16
}

/// What the table says of a block that its maker has not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Away {
    /// The life that has it, or is to get it.
    pub(super) holder: u16,
    /// The life that has sent it, until it has arrived; then 0.
    pub(super) giver: u16,
}

impl Word {
    /// What it says now, if somebody has the block who did not make it or had it back.
    pub(super) fn away(&self) -> Option<Away> {
        match self.0.load(Ordering::Relaxed) {
            0 | RETURNED => None,
            word => Some(Away {
                holder: word as u16,
                giver: (word >> 16) as u16,
            }),
        }
    }

    /// Makes a block that this life has not made before: false if somebody has it from an earlier life of the maker's.
    pub(super) fn make(&self, here: &Here) -> bool {
        self.take(here, 0, 0) || self.take_back(here)
    }

    /// Takes a block back that was made here: false if it was not returned.
    pub(super) fn take_back(&self, here: &Here) -> bool {
        // Not one that is 0: it was with another thread of the maker's a moment ago, and may be lent by now.
        self.take(here, RETURNED, 0)
    }

    /// It goes from one life to another.
    pub(super) fn lend(&self, here: &Here, from: u16, to: u16) {
        self.0.store(held(to, from), Ordering::Release);
        here.leave();
    }

    /// Takes a block that another life is said to have sent; `mine` if it was made here. False if it was not sent, was
    /// taken before, or was taken back.
    pub(super) fn arrive(&self, here: &Here, from: u16, to: u16, mine: bool) -> bool {
        let now = if mine { 0 } else { held(to, 0) };
        self.take(here, held(to, from), now)
    }

    /// Gives another's make back.
    pub(super) fn give_back(&self, here: &Here) {
        here.leave();
        self.0.store(RETURNED, Ordering::Release);
    }

    /// What is still as it was found is nobody's from now on.
    pub(super) fn withdraw(&self, found: Away) -> bool {
        self.change(held(found.holder, found.giver), RETURNED)
    }

    fn take(&self, here: &Here, from: u32, to: u32) -> bool {
        // What the word says is later than that the block left here before.
        if self.0.load(Ordering::Acquire) != from || !here.enter() {
            return false;
        }
        let taken = self.change(from, to);
        if !taken {
            here.leave();
        }
        taken
    }

    fn change(&self, from: u32, to: u32) -> bool {
        self.0
            .compare_exchange(from, to, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }
}

impl Here {
    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }

    fn enter(&self) -> bool {
        self.0.swap(1, Ordering::Relaxed) == 0
    }

    fn leave(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

#[cfg(all(test, loom))]
mod tests {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    const MAKER: u16 = 3;
    const PEER: u16 = 5;

    /// One block, as its maker and a peer see it.
    struct Block {
        word: Word,
        /// The maker's and the peer's.
        here: [Here; 2],
        /// What is in it. loom fails the test if two have it at once, or one sees less than what was written before.
        bytes: UnsafeCell<u32>,
        /// Its number was sent, by a way that orders nothing.
        sent: AtomicU32,
        returned: AtomicU32,
    }

    impl Block {
        fn made() -> Arc<Block> {
            let nowhere = || Here(AtomicU8::new(0));
            let block = Block {
                word: Word(AtomicU32::new(0)),
                here: [nowhere(), nowhere()],
                bytes: UnsafeCell::new(0),
                sent: AtomicU32::new(0),
                returned: AtomicU32::new(0),
            };
            assert!(block.word.make(&block.here[0]));
            Arc::new(block)
        }

        /// Who has it writes into it.
        fn write(&self, value: u32) {
            // SAFETY: loom's cell fails the test if anybody else uses it meanwhile.
            self.bytes.with_mut(|bytes| unsafe { *bytes = value });
        }

        fn read(&self) -> u32 {
            // SAFETY: loom's cell fails the test if anybody writes it meanwhile.
            self.bytes.with(|bytes| unsafe { *bytes })
        }

        fn lend(&self) {
            self.word.lend(&self.here[0], MAKER, PEER);
            self.sent.store(1, Ordering::Relaxed);
        }

        fn arrive(&self) -> bool {
            self.sent.load(Ordering::Relaxed) != 0
                && self.word.arrive(&self.here[1], MAKER, PEER, false)
        }

        fn give_back(&self) {
            self.word.give_back(&self.here[1]);
            self.returned.fetch_add(1, Ordering::Relaxed);
        }

        fn withdraw(&self, giver: u16) -> bool {
            let found = Away {
                holder: PEER,
                giver,
            };
            let withdrawn = self.word.withdraw(found);
            self.returned.fetch_add(withdrawn.into(), Ordering::Relaxed);
            withdrawn
        }

        fn take_back(&self) -> bool {
            self.word.take_back(&self.here[0])
        }
    }

    fn with(block: &Arc<Block>, act: impl FnOnce(&Block) + 'static) -> thread::JoinHandle<()> {
        let block = block.clone();
        thread::spawn(move || act(&block))
    }

    /// loom looks for what comes in between only where somebody waits for it.
    fn until(mut done: impl FnMut() -> bool) {
        while !done() {
            thread::yield_now();
        }
    }

    fn joined(threads: impl IntoIterator<Item = thread::JoinHandle<()>>) {
        for thread in threads {
            thread.join().expect("a thread");
        }
    }

    #[test]
    fn one_has_it_at_a_time_there_and_back() {
        loom::model(|| {
            let block = Block::made();
            let peer = with(&block, |block| {
                until(|| block.arrive());
                assert_eq!(block.read(), 1);
                block.write(2);
                block.give_back();
            });
            block.write(1);
            block.lend();
            until(|| block.take_back());
            assert_eq!(block.read(), 2);
            block.write(3);
            joined([peer]);
        });
    }

    #[test]
    fn one_has_it_at_a_time_if_it_is_sent_back() {
        loom::model(|| {
            let block = Block::made();
            let back = Arc::new(AtomicU32::new(0));
            let peer = {
                let back = back.clone();
                with(&block, move |block| {
                    until(|| block.arrive());
                    block.write(block.read() + 1);
                    block.word.lend(&block.here[1], PEER, MAKER);
                    back.store(1, Ordering::Relaxed);
                })
            };
            block.write(1);
            block.lend();
            until(|| back.load(Ordering::Relaxed) != 0);
            until(|| block.word.arrive(&block.here[0], PEER, MAKER, true));
            assert_eq!(block.read(), 2);
            block.write(3);
            // Of its own again: it can go once more.
            block.lend();
            joined([peer]);
        });
    }

    /// Another thread of the maker's looks for blocks that have come back, while one lends it.
    #[test]
    fn what_is_lent_is_not_taken_back_meanwhile() {
        loom::model(|| {
            let block = Block::made();
            let other = with(&block, |block| assert!(!block.take_back()));
            block.write(1);
            block.lend();
            joined([other]);
            assert!(block.arrive() && block.read() == 1);
        });
    }

    /// A number that is told twice, to two threads of the peer's.
    #[test]
    fn one_of_two_takes_it() {
        loom::model(|| {
            let block = Block::made();
            block.write(1);
            block.lend();
            let take = |block: &Block| {
                if block.arrive() {
                    block.write(block.read() + 1);
                }
            };
            let other = with(&block, take);
            take(&block);
            joined([other]);
            assert_eq!(block.read(), 2);
            assert!(block.here[1].is_set());
        });
    }

    /// A peer that gives it back in one thread, and is lent it again in another.
    #[test]
    fn what_was_given_back_can_come_again() {
        loom::model(|| {
            let block = Block::made();
            block.lend();
            assert!(block.arrive());
            block.write(1);
            let other = with(&block, |block| {
                // The maker.
                until(|| block.take_back());
                block.write(2);
                block.lend();
                // Another thread of the peer's.
                assert!(block.arrive());
                assert_eq!(block.read(), 2);
            });
            block.give_back();
            joined([other]);
        });
    }

    /// The giver takes back what its peer is about to take, and the host sweeps as the peer has died in the middle.
    #[test]
    fn of_a_taker_a_giver_and_a_sweep_one_gets_it() {
        loom::model(|| {
            let block = Block::made();
            block.write(1);
            block.lend();
            let peer = with(&block, |block| {
                if block.arrive() {
                    assert_eq!(block.read(), 1);
                }
            });
            let giver = with(&block, |block| {
                block.withdraw(MAKER);
            });
            if let Some(found) = block.word.away() {
                block.withdraw(found.giver);
            }
            joined([peer, giver]);
            // The peer is over: what it has is nobody's.
            if let Some(found) = block.word.away() {
                assert_eq!((found.holder, found.giver), (PEER, 0));
                block.withdraw(0);
            }
            assert_eq!(block.returned.load(Ordering::Relaxed), 1);
            assert!(block.take_back());
            block.write(2);
        });
    }
}
