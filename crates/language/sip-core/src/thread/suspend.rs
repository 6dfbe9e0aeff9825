//! How the running thread suspends itself, and goes on with the next one.
//!
//! ```text
//!   thread --suspend, switch--> the next thread that is ready
//!                    |  nobody is, or something else is to be done
//!                    v
//!                  scheduler, on the worker's own stack
//! ```
//! While it decides, no thread runs (`here::thread`), so that no signal ends it half-way. The scheduler does what may
//! take longer, or allocates.

use std::ptr;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::slot::{State, Thread};
use super::worker::Worker;
use super::{here, switch};
use crate::critical;

/// Clocks are read every so many switches while timers run.
const CLOCK_EVERY: u64 = 64;

// On threads' stacks.
impl Worker {
    /// Waits until the running thread is woken.
    // Inlined, for the reason that `channel::endpoint` gives.
    #[inline(always)]
    pub(crate) fn park(&'static self, thread: &'static Thread) {
        if thread.token.get() {
            thread.token.set(false);
        } else {
            thread.state.set(State::Parked);
            self.suspend(thread);
        }
    }

    /// [`Worker::park`], but not beyond `deadline`.
    pub(crate) fn park_until(&'static self, thread: &'static Thread, deadline: Instant) {
        let host = critical::as_host();
        self.timers.add(deadline, thread.slot.get());
        thread.deadline.set(Some(deadline));
        drop(host);
        self.park(thread);
        let _host = critical::as_host();
        self.forget_deadline(thread);
    }

    /// Lets the others run first.
    #[inline]
    pub(crate) fn yield_now(&'static self, thread: &'static Thread) {
        self.make_ready(thread);
        self.suspend(thread);
        switch::keep(self, thread);
    }

    /// Suspends the running thread, whose state says for what, and goes on with the next.
    // Inlined, so that each place that waits has a jump of its own, which a processor learns to predict: one jump
    // for all costs two wrong guesses there and back.
    #[inline(always)]
    pub(super) fn suspend(&'static self, thread: &'static Thread) {
        here::suspend();
        let next = if self.is_asked() { None } else { self.next() };
        let to = match next {
            Some(next) if ptr::eq(next, thread) => return,
            Some(next) => next.fiber.top(),
            None => self.top.get(),
        };
        // SAFETY: the running thread's top is kept in its place until somebody takes it from the queue. What is gone
        // on with is a thread that was suspended, and taken from the queue just now; or the scheduler, which has
        // switched to the first of the threads that ran since.
        unsafe { switch::switch(thread.fiber.suspended(), to) };
    }
}

// Everywhere on the worker.
impl Worker {
    /// Whether the scheduler has something to do.
    #[inline]
    fn is_asked(&self) -> bool {
        !self.inbox.is_empty() || self.is_time()
    }

    /// Whether it is time to read the clock, and to look for events.
    #[inline]
    pub(super) fn is_time(&self) -> bool {
        let switches = self.switches.load(Ordering::Relaxed);
        if !switches.is_multiple_of(CLOCK_EVERY) {
            return false;
        }
        self.run.rewind();
        !self.timers.is_empty() || self.events().is_some()
    }

    /// The next thread, as the one that runs; `None` if there is none, or an entry that is for the scheduler.
    #[inline]
    pub(super) fn next(&self) -> Option<&'static Thread> {
        let thread = self.run.first()?;
        if thread.state.get() != State::Ready {
            return None;
        }
        self.run.pop();
        thread.state.set(State::Running);
        let switches = self.switches.load(Ordering::Relaxed);
        self.switches.store(switches + 1, Ordering::Relaxed);
        here::enter(thread);
        Some(thread)
    }
}
