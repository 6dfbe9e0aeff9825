//! A worker's place for a thread.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use super::fiber::Fiber;
use super::inbox::Link;
use crate::process::Process;
use crate::table::Zeroed;

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
    generation: AtomicU32,
    pub(crate) link: Link,
    // For the worker only.
    pub(crate) slot: Cell<u32>,
    pub(crate) state: Cell<State>,
    /// An unpark that came while the thread was not parked.
    pub(crate) token: Cell<bool>,
    pub(crate) process: Cell<Option<&'static Process>>,
    pub(crate) fiber: Fiber,
    pub(crate) deadline: Cell<Option<Instant>>,
    /// The neighbours among the process's threads, or in the worker's list of free places; slot + 1, 0 for none.
    pub(crate) next: Cell<u32>,
    pub(crate) previous: Cell<u32>,
}

// SAFETY: `State::Free` is 0, `Option<&T>` and `Cell<*const T>` are null, a fiber's place is empty, and the
// other fields are numbers. `Option<Instant>` keeps its tag in the nanoseconds, where 0 is a time like any
// other: a valid value too, and `deadline` is written before the first use.
unsafe impl Zeroed for Thread {}
// SAFETY: other OS threads touch `generation` and `link` only, which are atomic; the rest is reached through
// `here::worker`, which gives a worker to its own OS thread alone.
unsafe impl Sync for Thread {}

impl Thread {
    /// Which life of the place; from 1.
    #[inline]
    pub(crate) fn generation(&self) -> u32 {
        self.generation.load(Ordering::Relaxed)
    }

    pub(crate) fn set_generation(&self, generation: u32) {
        self.generation.store(generation, Ordering::Relaxed);
    }
}
