//! What two OS processes with channels between them share: their bells.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::bell::Bell;
use super::memory::Memory;
use crate::system::futex_wake_shared;

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
    down: AtomicBool,
    peer: Box<str>,
    /// The peer's life, if it shares memory with this OS process.
    sharer: Option<u16>,
}

impl Link {
    /// The first (0) or second (1) end of a link in fresh memory of [`LINK_BYTES`], to a peer with a name.
    /// None if there is less memory. A peer that shares memory ([`commons`](crate::exchange::commons)) has a life there.
    pub fn new(memory: Memory, end: usize, peer: &str, sharer: Option<u16>) -> Option<Arc<Link>> {
        (memory.bytes() >= LINK_BYTES && end < 2).then(|| {
            Arc::new(Link {
                memory,
                end,
                down: AtomicBool::new(false),
                peer: peer.into(),
                sharer,
            })
        })
    }

    /// The peer's name.
    pub fn peer(&self) -> &str {
        &self.peer
    }

    /// The peer is no more: what it has sent is still received, and then its channels are closed.
    pub fn take_down(&self) {
        self.down.store(true, Ordering::SeqCst);
        super::post::change_all();
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
        self.bell(1 - self.end, number as usize)
            .tell(futex_wake_shared)
    }

    /// Has a worker of the peer's look at everything.
    pub(super) fn ring(&self, number: u32) {
        self.bell(1 - self.end, number as usize)
            .ring(futex_wake_shared);
    }
}

/// With the last channel over it, after the peer has gone.
impl Drop for Link {
    fn drop(&mut self) {
        if let Some(sharer) = self.sharer {
            crate::exchange::commons::link_ended(sharer);
        }
    }
}
