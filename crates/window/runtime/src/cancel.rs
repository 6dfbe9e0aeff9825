//! Calls that are ended from outside.
//!
//! A call that may be cancelled has a deadline of its own, which never comes. By that number it is told from all others
//! of its thread (`watchdog`). While it runs, its thread is on the list of its [`Canceller`]. Who cancels copies the
//! thread's present deadline to the block's STOP and sends the thread the signal of time limits. From then on the call
//! ends as it would at such a limit. The watchdog does the same again at every tick. For the signal may come where the
//! invocation cannot be ended, or hit one that was nested in it.
//!
//! Who hits whom is settled by the lock of the list:
//!
//! | the call's thread | who cancels |
//! | --- | --- |
//! | begins, under the lock: looks whether it was cancelled, takes a deadline, enters the list | notes that it is cancelled |
//! | runs | under the lock: for each thread on the list, reads its deadline and stops that |
//! | ends: leaves the list, under the lock; then takes back the outer deadline | |
//!
//! So a deadline that is read belongs to the call, or to one that is nested in it. Once the call has left the list,
//! nobody stops anything for it. What was stopped before is no deadline that the thread has again.

use crate::attach::current_or_new;
use crate::call::{NotReturned, Returned};
use crate::deadline::{self, Outer};
use crate::granted::Granted;
use crate::tcb::Tcb;
use crate::watchdog::{self, Asked};
use mullion_report::error::Error;
use mullion_report::refused::CallError;
use std::fmt;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Ends calls of domains from outside, once. These are those that it was given to
/// ([`WindowDomain::call_cancellable`](crate::WindowDomain::call_cancellable)) and run, on whatever threads, and
/// those that would begin later, which are not made. Clones are the same one.
#[derive(Clone, Default)]
pub struct Canceller {
    shared: Arc<SharedPages>,
}

#[derive(Default)]
struct SharedPages {
    asked: AtomicBool,
    running: Mutex<Vec<Running>>,
}

/// The block of a thread that is in a call. It leaves the list before the call ends.
struct Running(*const Tcb);

// SAFETY: others than its thread give it to `deadline::stop` alone, while it is on the list.
unsafe impl Send for Running {}

impl Canceller {
    /// One that nobody has cancelled.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends the calls, each as at a limit of time. That is at once if it runs code of a domain, and else when a host
    /// function returns to one. Does not wait for that. A call that has
    /// returned has its result. Not for handlers of signals.
    pub fn cancel(&self) {
        if self.shared.asked.swap(true, Ordering::SeqCst) {
            return;
        }
        let shared: Weak<SharedPages> = Arc::downgrade(&self.shared);
        watchdog::stop_at_every_tick(shared);
        self.shared.stop();
    }

    /// Whether somebody has cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.shared.asked.load(Ordering::Relaxed)
    }

    /// Makes a call, unless it is cancelled before.
    fn over(
        &self,
        call: impl FnOnce() -> Result<Returned, NotReturned>,
    ) -> Result<Returned, NotReturned> {
        let tcb = current_or_new()?;
        let Some(scope) = Scope::begin(tcb, &self.shared) else {
            return Err(Error::Cancelled.into());
        };
        let called = call();
        drop(scope);
        called.map_err(|error| match *error {
            // It waited for the domain to be open, and does not any more.
            CallError::NotMade(Error::NotOpen) if self.is_cancelled() => Error::Cancelled.into(),
            _ => error,
        })
    }
}

/// Makes a call that each of the cancellers may end.
pub(crate) fn over(
    cancellers: &[Canceller],
    call: &mut dyn FnMut() -> Result<Returned, NotReturned>,
) -> Result<Returned, NotReturned> {
    match cancellers {
        [] => call(),
        [first, others @ ..] => first.over(|| over(others, call)),
    }
}

impl Asked for SharedPages {
    /// Later nothing begins, as it was asked before.
    fn stop(&self) -> bool {
        let running = lock(&self.running);
        for Running(block) in &*running {
            // SAFETY: it is on the list, which is locked: its thread is in the call.
            unsafe { deadline::stop(*block, Granted::cancelled()) };
        }
        !running.is_empty()
    }
}

/// A call that is on the list, however it ends.
struct Scope<'a> {
    tcb: &'a Tcb,
    shared: &'a SharedPages,
    outer: Outer,
}

impl<'a> Scope<'a> {
    /// `None`: it is cancelled.
    fn begin(tcb: &'a Tcb, shared: &'a SharedPages) -> Option<Self> {
        let mut running = lock(&shared.running);
        if shared.asked.load(Ordering::SeqCst) {
            return None;
        }
        let outer = deadline::mark(tcb);
        running.push(Running(tcb));
        Some(Self { tcb, shared, outer })
    }
}

impl Drop for Scope<'_> {
    fn drop(&mut self) {
        let mut running = lock(&self.shared.running);
        let place = running
            .iter()
            .rposition(|Running(block)| ptr::eq(*block, self.tcb));
        if let Some(place) = place {
            running.swap_remove(place);
        }
        drop(running);
        deadline::unmark(self.tcb, &self.outer);
    }
}

impl fmt::Debug for Canceller {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut all = formatter.debug_struct("Canceller");
        all.field("is_cancelled", &self.is_cancelled())
            .finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
