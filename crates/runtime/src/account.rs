//! The time that all calls of a domain have together.
//!
//! Every call is charged for as long as it runs, by the clock; calls that run at
//! the same time, on several threads, are charged each. The watchdog adds up at
//! every tick, and when nothing is left it stops all of them: so together they
//! have what was granted, and each at most two ticks more and what the kernel takes
//! to wake the watchdog and the thread. None is stopped early.

use crate::control::Tcb;
use crate::watchdog::elapsed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// One domain's, until it is restarted.
#[derive(Debug)]
pub(crate) struct Account {
    granted: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Nanoseconds used until `since`, on the watchdog's clock.
    spent: u64,
    since: u64,
    /// Addresses of the blocks of the threads that run a call.
    running: Vec<usize>,
}

/// Those of domains that live.
static ACCOUNTS: Mutex<Vec<Weak<Account>>> = Mutex::new(Vec::new());

/// A thread that runs a call of a domain whose time is up.
pub(crate) struct Overdrawn {
    pub(crate) block: usize,
    pub(crate) granted: Duration,
}

impl Account {
    pub(crate) fn new(granted: Duration) -> Arc<Self> {
        let account = Arc::new(Self {
            granted,
            state: Mutex::default(),
        });
        let mut all = lock(&ACCOUNTS);
        all.retain(|other| other.strong_count() > 0);
        all.push(Arc::downgrade(&account));
        account
    }

    pub(crate) fn granted(&self) -> Duration {
        self.granted
    }

    /// A call begins on the thread; what it has left if no other one runs.
    pub(crate) fn begin(&self, tcb: &Tcb) -> Option<Duration> {
        let mut state = lock(&self.state);
        state.add_up(elapsed());
        let spent = Duration::from_nanos(state.spent);
        let left = self.granted.checked_sub(spent)?;
        if left.is_zero() {
            return None;
        }
        state.running.push(address(tcb));
        Some(left)
    }

    /// It ends.
    pub(crate) fn end(&self, tcb: &Tcb) {
        let mut state = lock(&self.state);
        state.add_up(elapsed());
        let block = address(tcb);
        let place = state.running.iter().rposition(|running| *running == block);
        if let Some(place) = place {
            state.running.swap_remove(place);
        }
    }

    /// The whole time again. No call runs.
    pub(crate) fn reset(&self) {
        *lock(&self.state) = State::default();
    }
}

/// The threads that run calls of domains whose time is up. For the watchdog.
pub(crate) fn overdrawn(now: u64) -> Vec<Overdrawn> {
    let mut threads = Vec::new();
    for account in lock(&ACCOUNTS).iter().filter_map(Weak::upgrade) {
        let mut state = lock(&account.state);
        state.add_up(now);
        if Duration::from_nanos(state.spent) >= account.granted {
            threads.extend(state.running.iter().map(|block| Overdrawn {
                block: *block,
                granted: account.granted,
            }));
        }
    }
    threads
}

impl State {
    fn add_up(&mut self, now: u64) {
        let passed = now.saturating_sub(self.since);
        let used = passed.saturating_mul(self.running.len() as u64);
        self.spent = self.spent.saturating_add(used);
        self.since = self.since.max(now);
    }
}

fn address(tcb: &Tcb) -> usize {
    std::ptr::from_ref(tcb).addr()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_run_together_are_charged_each() {
        let mut state = State::default();
        state.add_up(10);
        assert_eq!(state.spent, 0);
        state.running.push(1);
        state.add_up(15);
        state.running.push(2);
        state.add_up(25);
        assert_eq!(state.spent, 5 + 20);
        state.add_up(20);
        assert_eq!(state.spent, 25, "a clock that was read before");
        state.running.clear();
        state.add_up(1000);
        assert_eq!(state.spent, 25);
    }
}
