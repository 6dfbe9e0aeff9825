//! What two OS processes with channels between them share: their bells.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use super::arrivals::Arrivals;
use super::bell::Bell;
use super::hand_over::Leaving;
use super::line;
use super::memory::Memory;
use crate::inner::{CORE, EXCHANGE};

/// Workers of an OS process that can have bridges.
pub(super) const BELLS: usize = 32;

/// Bytes of the memory of a link.
pub const LINK_BYTES: usize = 4096;
const _: () = assert!(2 * BELLS * size_of::<Bell>() <= LINK_BYTES);

/// One OS process's end of what it shares with another.
#[derive(Debug)]
pub struct Link {
    memory: Memory,
    /// Which of the two this OS process is.
    end: usize,
    number: u64,
    pub(super) down: AtomicBool,
    peer: Box<str>,
    /// The peer's life, if it shares memory with this OS process.
    sharer: Option<u16>,
    /// Blocks of channels that have gone on elsewhere, which the peer may not have read.
    lent: Mutex<Vec<u32>>,
    pub(super) leaving: Leaving,
    pub(super) arrivals: Arrivals,
}

impl Link {
    /// The first (0) or second (1) end of a link in fresh memory of [`LINK_BYTES`], to a peer with a name.
    /// None if there is less memory. By the number that the memory has ([`Memory::numbered`]) whoever shares it knows it.
    /// A peer that shares memory (`common_memory`) has a life there.
    pub fn new(memory: Memory, end: usize, peer: &str, sharer: Option<u16>) -> Option<Arc<Link>> {
        (memory.bytes() >= LINK_BYTES && end < 2).then(|| {
            Arc::new(Link {
                number: memory.number(),
                memory,
                end,
                down: AtomicBool::new(false),
                peer: peer.into(),
                sharer,
                lent: Mutex::default(),
                leaving: Leaving::default(),
                arrivals: Arrivals::default(),
            })
        })
    }

    /// The peer's name.
    pub fn peer(&self) -> &str {
        &self.peer
    }

    /// A channel goes on elsewhere, and with it goes what has been lent.
    pub(super) fn remember(&self, lent: Vec<u32>) {
        if !lent.is_empty() {
            self.lent().extend(lent);
            // Taken down meanwhile, nobody else gives them back.
            if self.is_down() {
                self.recall_all();
            }
        }
    }

    /// The peer reads nothing any more: what it has not read is nobody's.
    pub(super) fn recall_all(&self) {
        let lent = std::mem::take(&mut *self.lent());
        if let Some(sharer) = self.sharer {
            EXCHANGE.recall(&lent, sharer);
        }
    }

    fn lent(&self) -> MutexGuard<'_, Vec<u32>> {
        self.lent
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Its number, and which end this is.
    pub(super) fn name(&self) -> (u64, u8) {
        (self.number, self.end as u8)
    }

    pub(super) fn sharer(&self) -> Option<u16> {
        self.sharer
    }

    pub(super) fn is_down(&self) -> bool {
        self.down.load(Ordering::SeqCst)
    }

    #[inline]
    fn bell(&self, end: usize, number: usize) -> &Bell {
        let index = end * BELLS + number % BELLS;
        // SAFETY: there are that many, of atomic words.
        unsafe { self.memory.at(index * size_of::<Bell>()).cast().as_ref() }
    }

    /// The bell by which a worker of this OS process hears.
    #[inline]
    pub(super) fn heard(&self, worker: u16) -> &Bell {
        self.bell(self.end, worker.into())
    }

    /// Tells a worker of the peer's of a message. Gives the processor that it stays on, from 1; 0 for none.
    #[inline]
    pub(super) fn tell(&self, number: u32) -> u32 {
        self.bell(1 - self.end, number as usize).tell(wake_all)
    }

    /// Wakes a worker of this OS process who sleeps on the bell by which it hears.
    pub(super) fn ring_own(&self, worker: u16) {
        self.heard(worker).ring_own(wake_all);
    }

    /// Has a worker of the peer's look at everything.
    pub(super) fn ring(&self, number: u32) {
        self.bell(1 - self.end, number as usize).ring(wake_all);
    }
}

/// With the last channel over it, after the peer has gone.
/// A link, and the memory of a channel over it.
pub type Path = (Arc<Link>, Memory);

/// Tells whoever has the other half of this memory, over the link, that nobody will ever have this one.
pub fn refuse(memory: &Memory, link: &Link) {
    line::refuse(memory, |bell| link.ring(bell));
}

/// Wakes all that sleep on a word of shared memory.
fn wake_all(word: &AtomicU32) {
    CORE.futex_wake_shared(word);
}

impl Drop for Link {
    fn drop(&mut self) {
        if let Some(sharer) = self.sharer {
            EXCHANGE.link_ended(sharer);
        }
    }
}

#[cfg(all(test, not(miri)))]
mod tests;
