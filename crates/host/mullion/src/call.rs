//! Calls that are started, and awaited, waited for or cancelled later.
//!
//! A domain's code runs on a thread and yields to nobody, so a call that its host does not wait for needs a
//! thread. Each has one of its own, which ends with it. What a domain keeps for a thread (a data stack,
//! thread-local data) is given back before the result is there.

use crate::domain::Domain;
use crate::error::Error;
use crate::terms::Terms;
use mullion_runtime::{CallArguments, Canceller, Returned};
use std::any::Any;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// A call that runs on a thread of its own, with an `R` as its result: from [`Function`](crate::Function)'s
/// `start`. A future, of any executor, that needs no polling to go on.
///
/// Dropped before it has ended, it is cancelled; nobody waits for that. The domain is in use until the
/// call has ended ([`Domain::restart_when_idle`] waits for it), and has then ended itself, as after a limit of
/// time: [`Error::Cancelled`].
#[must_use = "dropping a call cancels it"]
pub struct Call<R> {
    running: Running,
    take: fn(&Returned) -> R,
}

/// What does not depend on the result's type.
pub(crate) struct Running {
    shared: Arc<Shared>,
    canceller: Canceller,
}

struct Shared {
    state: Mutex<State>,
    ended: Condvar,
}

enum State {
    /// With whom to wake.
    Runs(Option<Waker>),
    Ended(Outcome),
    /// Somebody has the result.
    Taken,
}

/// The call's result, or the panic of a host function.
type Outcome = Result<Result<Returned, Error>, Box<dyn Any + Send>>;

impl<R> Call<R> {
    pub(crate) fn new(running: Running, take: fn(&Returned) -> R) -> Self {
        Self { running, take }
    }

    /// Waits until it has ended.
    ///
    /// # Errors
    /// As [`Function`](crate::Function)'s `call`; [`Error::Cancelled`].
    ///
    /// # Panics
    /// With the panic of a host function that the domain called.
    pub fn wait(self) -> Result<R, Error> {
        let shared = &self.running.shared;
        let mut state = shared.lock();
        loop {
            if let Some(outcome) = state.take() {
                drop(state);
                return self.result(outcome);
            }
            state = wait(shared.ended.wait(state));
        }
    }

    /// Waits until it has ended, but only `at_most` so long: `None`, if it goes on, or if its result has been given.
    ///
    /// # Errors
    /// As [`Call::wait`].
    ///
    /// # Panics
    /// As [`Call::wait`].
    pub fn wait_for(&self, at_most: Duration) -> Option<Result<R, Error>> {
        let begun = Instant::now();
        let shared = &self.running.shared;
        let mut state = shared.lock();
        while let State::Runs(_) = *state {
            let left = at_most.checked_sub(begun.elapsed())?;
            state = wait(shared.ended.wait_timeout(state, left)).0;
        }
        let outcome = state.take();
        drop(state);
        Some(self.result(outcome?))
    }

    /// Ends it, if it has not ended: at once where it runs code of a domain, and else when a host
    /// function returns to one. The result then is [`Error::Cancelled`], unless there was one already.
    pub fn cancel(&self) {
        self.running.canceller.cancel();
    }

    /// What cancels it, for others to have.
    #[must_use]
    pub fn canceller(&self) -> Canceller {
        self.running.canceller.clone()
    }

    /// Whether it has ended, so that nothing waits for it.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        !matches!(*self.running.shared.lock(), State::Runs(_))
    }

    fn result(&self, outcome: Outcome) -> Result<R, Error> {
        match outcome {
            Ok(result) => result.map(|returned| (self.take)(&returned)),
            Err(payload) => resume_unwind(payload),
        }
    }
}

impl<R> Future for Call<R> {
    type Output = Result<R, Error>;

    /// # Panics
    /// As [`Call::wait`], and if the result has been given before.
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.running.shared.lock();
        if let State::Runs(waker) = &mut *state {
            match waker {
                Some(waker) => waker.clone_from(context.waker()),
                None => *waker = Some(context.waker().clone()),
            }
            return Poll::Pending;
        }
        let outcome = state.take();
        drop(state);
        let outcome = outcome.expect("a future is not polled after it has given its result");
        Poll::Ready(self.result(outcome))
    }
}

impl Running {
    /// Begins a call.
    pub(crate) fn new(
        domain: &Domain,
        export: usize,
        arguments: CallArguments,
        mut terms: Terms,
    ) -> Result<Self, Error> {
        // Beside those of the function, which end its other calls too.
        let canceller = Canceller::new();
        terms.cancellers.push(canceller.clone());
        let shared = Arc::new(Shared {
            state: Mutex::new(State::Runs(None)),
            ended: Condvar::new(),
        });
        let (told, domain) = (shared.clone(), domain.clone());
        let thread = std::thread::Builder::new().name("mullion-call".to_owned());
        let run = move || {
            let call = || domain.call(export, &arguments, Some(&terms));
            let outcome = catch_unwind(AssertUnwindSafe(call));
            mullion_runtime::leave_thread();
            // It may have been the last one.
            drop(domain);
            told.end(outcome);
        };
        thread.spawn(run).map_err(Error::Thread)?;
        Ok(Self { shared, canceller })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(*self.shared.lock(), State::Runs(_)) {
            self.canceller.cancel();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        wait(self.state.lock())
    }

    fn end(&self, outcome: Outcome) {
        let before = std::mem::replace(&mut *self.lock(), State::Ended(outcome));
        self.ended.notify_all();
        // Behind the lock: it is the executor's.
        if let State::Runs(Some(waker)) = before {
            waker.wake();
        }
    }
}

impl State {
    /// The result, once.
    fn take(&mut self) -> Option<Outcome> {
        match std::mem::replace(self, Self::Taken) {
            Self::Ended(outcome) => Some(outcome),
            other => {
                *self = other;
                None
            }
        }
    }
}

/// Nothing panics while it has the lock.
fn wait<T>(locked: Result<T, PoisonError<T>>) -> T {
    locked.unwrap_or_else(PoisonError::into_inner)
}

impl<R> fmt::Debug for Call<R> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut all = formatter.debug_struct("Call");
        all.field("has_ended", &self.has_ended())
            .finish_non_exhaustive()
    }
}
