//! A worker's place for a thread.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::fiber::Fiber;
use super::inbox::Link;
use crate::heap::Heap;
use crate::process::Process;
use crate::table::Zeroed;
use crate::waiter::Waiter;

/// Threads that a worker can have at a time.
pub(crate) const THREADS: usize = 1 << 18;

/// What a place's thread does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub(crate) enum State {
    /// No thread is here.
    #[default]
    Free = 0,
    /// In the run queue.
    Ready,
    /// On the processor.
    Running,
    /// Waits to be unparked.
    Parked,
    /// Ended while in the run queue; free when it is taken out.
    Gone,
}

/// All zero is a free place.
#[repr(C, align(64))]
#[allow(missing_debug_implementations)]
pub(crate) struct Thread {
    // For every OS thread.
    /// Who wakes this life of the place; changes when a life begins and when it ends.
    waiter: AtomicU64,
    pub(crate) link: Link,
    // For the worker only.
    pub(crate) slot: Cell<u32>,
    pub(crate) state: Cell<State>,
    /// An unpark that came while the thread was not parked.
    pub(crate) token: Cell<bool>,
    /// Both from the first `Ready` of a life to its end.
    pub(crate) process: Cell<Option<&'static Process>>,
    pub(crate) heap: Cell<Option<&'static Heap>>,
    pub(crate) fiber: Fiber,
    /// Its thread-locals, if it is of a separately built process and has used one; in that process's heap.
    pub(crate) locals: Cell<*mut u8>,
    pub(crate) deadline: Cell<Option<Instant>>,
    /// The neighbours among the process's threads, or in the worker's list of free places; slot + 1, 0 for none.
    pub(crate) next: Cell<u32>,
    pub(crate) previous: Cell<u32>,
}

// SAFETY: `State::Free` is 0, `Option<&T>` and `Cell<*const T>` are null, a fiber's place is empty, and the
// other fields are numbers. `Option<Instant>` keeps its tag in the nanoseconds, where 0 is a time like any
// other: a valid value too, and `deadline` is written before the first use.
unsafe impl Zeroed for Thread {}
// SAFETY: other OS threads come here by a `SharedWorker`, which uses `waiter` and `link` only, and they are atomic. The rest is
// reached by a `Worker`, which its own OS thread alone has.
unsafe impl Sync for Thread {}

impl Thread {
    /// What names this life of the place.
    #[inline]
    pub(crate) fn waiter(&self) -> Waiter {
        Waiter::from_bits(self.waiter.load(Ordering::Relaxed))
    }

    /// Nobody who knew the waiter wakes the thread from now on.
    #[inline]
    pub(crate) fn renew(&self, worker: u16) {
        let generation = Waiter::next_generation(self.waiter().generation());
        let waiter = Waiter::thread(worker, self.slot.get(), generation);
        self.waiter.store(waiter.to_bits(), Ordering::Relaxed);
    }
}
