//! The time that all calls of a domain have together, by one of the clocks.
//!
//! Every call is charged for as long as it runs; calls that run at the same time, on several
//! threads, are charged each. The watchdog adds up at every tick, and when nothing is left it stops
//! all of them. So together they have what was granted. Each has at most two ticks more, and what
//! the kernel takes to wake the watchdog and the thread. None is stopped early.

use crate::clock::Clock;
use crate::granted::Granted;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// One domain's, until it is restarted.
#[derive(Debug)]
pub(crate) struct Account {
    clock: Clock,
    granted: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Nanoseconds that calls which have ended took.
    spent: u64,
    /// Calls that run.
    running: Vec<Running>,
}

/// A thread that makes calls.
#[derive(Clone, Copy)]
pub(crate) struct Thread {
    /// The address of its block.
    pub(crate) block: usize,
    /// Its number.
    pub(crate) number: libc::pid_t,
}

/// A thread that runs a call.
#[derive(Clone, Copy, Debug)]
struct Running {
    /// The address of its block, and its number.
    block: usize,
    thread: libc::pid_t,
    /// What its clock showed when the call began.
    since: u64,
}

/// Those of domains that live.
static ACCOUNTS: Mutex<Vec<Weak<Account>>> = Mutex::new(Vec::new());

/// A thread that runs a call of a domain whose time is up.
pub(crate) struct Overdrawn {
    pub(crate) block: usize,
    pub(crate) granted: Granted,
}

impl Account {
    pub(crate) fn new(clock: Clock, granted: Duration) -> Arc<Self> {
        let account = Arc::new(Self {
            clock,
            granted,
            state: Mutex::default(),
        });
        let mut all = lock(&ACCOUNTS);
        all.retain(|other| other.strong_count() > 0);
        all.push(Arc::downgrade(&account));
        account
    }

    /// What all calls have.
    pub(crate) fn granted(&self) -> Duration {
        self.granted
    }

    /// A call begins on the thread; what it has left if no other one runs.
    pub(crate) fn begin(&self, thread: Thread) -> Option<Duration> {
        let mut state = lock(&self.state);
        let left = self.granted.checked_sub(state.total(self.clock))?;
        if left.is_zero() {
            return None;
        }
        state.running.push(Running {
            block: thread.block,
            thread: thread.number,
            since: self.clock.of(thread.number),
        });
        Some(left)
    }

    /// It ends.
    pub(crate) fn end(&self, thread: Thread) {
        let now = self.clock.of(thread.number);
        let mut state = lock(&self.state);
        let place = state
            .running
            .iter()
            .rposition(|call| call.block == thread.block);
        if let Some(place) = place {
            let call = state.running.swap_remove(place);
            state.spent = state.spent.saturating_add(now.saturating_sub(call.since));
        }
    }

    /// The whole time again. No call runs.
    pub(crate) fn reset(&self) {
        *lock(&self.state) = State::default();
    }
}

/// The threads that run calls of domains whose time is up. For the watchdog.
pub(crate) fn overdrawn() -> Vec<Overdrawn> {
    let mut threads = Vec::new();
    for account in lock(&ACCOUNTS).iter().filter_map(Weak::upgrade) {
        let state = lock(&account.state);
        if !state.running.is_empty() && state.total(account.clock) >= account.granted {
            threads.extend(state.running.iter().map(|call| Overdrawn {
                block: call.block,
                granted: Granted::total(account.clock, account.granted),
            }));
        }
    }
    threads
}

impl State {
    /// What calls have taken, those that run too.
    fn total(&self, clock: Clock) -> Duration {
        let running = self.running.iter().fold(0, |sum: u64, call| {
            sum.saturating_add(clock.of(call.thread).saturating_sub(call.since))
        });
        Duration::from_nanos(self.spent.saturating_add(running))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_run_together_are_charged_each() {
        let mut state = State {
            spent: 5,
            running: Vec::new(),
        };
        assert_eq!(state.total(Clock::Wall), Duration::from_nanos(5));
        let call = Running {
            block: 1,
            thread: 0,
            since: Clock::Wall.of(0),
        };
        state.running = vec![call; 3];
        std::thread::sleep(Duration::from_millis(2));
        assert!(state.total(Clock::Wall) >= Duration::from_millis(6));
        state.running.clear();
        assert_eq!(state.total(Clock::Wall), Duration::from_nanos(5));
    }
}
