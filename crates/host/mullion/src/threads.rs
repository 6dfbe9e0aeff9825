//! Threads of a program's own: each is a thread of the host that calls the program.
//!
//! ```text
//!   the program's first thread -- clone --> ProgramThreads::start --> a thread of the host
//!        |                                                                | calls the program
//!        |  its end, or a fault of any thread:                            | its result: where the program waits
//!        `- all others are cancelled, and waited for                      `- for its end; cleared when all is done
//! ```
//! The first end of any thread, but by a return, is the program's end.

use crate::domain::Domain;
use crate::held;
use mullion_runtime::{CallArguments, CallError, Canceller, Cause, Claimed, Entry, Returned};
use mullion_system::{Threads, Waited};
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// How often a sleeper looks whether its program's time is up. What wakes it otherwise tells it.
const LOOK: Duration = Duration::from_millis(10);
/// The first thread's number.
const FIRST: i32 = 1;

/// The threads of one program, beside its first one.
pub(crate) struct ProgramThreads {
    this: Weak<Self>,
    most: u32,
    canceller: Canceller,
    state: Mutex<State>,
    /// A thread has done all that it does.
    done: Condvar,
}

#[derive(Default)]
struct State {
    /// The program, while it runs.
    domain: Option<Domain>,
    /// Numbers of threads, which are used again.
    numbers: BTreeSet<i32>,
    /// Threads of the host that have not done all yet.
    alive: u32,
    /// Who sleeps, by address, those first that came first.
    sleepers: BTreeMap<u64, Vec<Arc<Sleeper>>>,
    /// How the program has ended.
    end: Option<End>,
}

/// What ended the program: what a call of it came to, or the panic of a host function.
type End = Result<Box<CallError>, Box<dyn Any + Send>>;

/// A thread that sleeps. It is on the list of its address until it is woken, or goes by itself.
#[derive(Default)]
struct Sleeper {
    told: Condvar,
}

impl ProgramThreads {
    /// At most so many beside the first one.
    pub(crate) fn new(most: u32) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            this: this.clone(),
            most,
            canceller: Canceller::new(),
            state: Mutex::default(),
            done: Condvar::new(),
        })
    }

    /// Runs the program's first thread, and returns when all of them have ended.
    pub(crate) fn run(
        &self,
        domain: &Domain,
        entry: Entry,
        arguments: &CallArguments,
    ) -> Result<Returned, Box<CallError>> {
        self.lock().domain = Some(domain.clone());
        let called = catch_unwind(AssertUnwindSafe(|| self.call(domain, entry, arguments)));
        let returned = match called {
            Ok(Ok(returned)) => Some(returned),
            Ok(Err(error)) => {
                self.end(Ok(error));
                None
            }
            Err(payload) => {
                self.end(Err(payload));
                None
            }
        };
        self.stop();
        let mut state = self.lock();
        while state.alive > 0 {
            state = unpoisoned(self.done.wait(state));
        }
        // The program has this, and this has the program no more.
        let (domain, end) = (state.domain.take(), state.end.take());
        drop(state);
        drop(domain);
        match (end, returned) {
            (Some(Ok(error)), _) => Err(error),
            (Some(Err(payload)), _) => resume_unwind(payload),
            (None, Some(returned)) => Ok(returned),
            (None, None) => Err(mullion_runtime::Error::Ended.into()),
        }
    }

    fn call(
        &self,
        domain: &Domain,
        entry: Entry,
        arguments: &CallArguments,
    ) -> Result<Returned, Box<CallError>> {
        let Ok(access) = domain.hold() else {
            return Err(mullion_runtime::Error::Ended.into());
        };
        let Ok(window) = access.domain() else {
            return Err(mullion_runtime::Error::Ended.into());
        };
        let cancellers = std::slice::from_ref(&self.canceller);
        held::invocation(|| window.call_cancellable(entry, arguments, None, cancellers))
    }

    /// What a thread of the program does, from its first instruction until nobody can tell that it was there.
    fn thread(&self, number: i32, entry: Entry, argument: u64) {
        let Some(domain) = self.lock().domain.clone() else {
            self.lock().numbers.remove(&number);
            return self.gone();
        };
        let arguments = CallArguments::new(&[argument]);
        let called = catch_unwind(AssertUnwindSafe(|| self.call(&domain, entry, &arguments)));
        mullion_runtime::leave_thread();
        let waited_at = match called {
            Ok(Ok(returned)) => Some(returned.integer),
            Ok(Err(error)) => {
                self.end(Ok(error));
                None
            }
            Err(payload) => {
                self.end(Err(payload));
                None
            }
        };
        // Whoever waits for its end may start another one in its place. From here on the number is another thread's.
        self.lock().numbers.remove(&number);
        if let Some(at) = waited_at.filter(|at| *at != 0) {
            if let Ok(access) = domain.hold() {
                // The address is what the program says. One that is wrong wakes nobody.
                let _wrong = access.memory().write(Claimed(at), &[0; 4]);
            }
            self.wake(at, 1);
        }
        drop(domain);
        self.gone();
    }

    /// A thread has done all that it does.
    fn gone(&self) {
        self.lock().alive -= 1;
        self.done.notify_all();
    }

    /// The program ends so, unless it has ended before; and all of its threads with it.
    fn end(&self, end: End) {
        // Whoever meets the end of another thread may be here before that one.
        if !matches!(&end, Ok(error) if follows_another(error)) {
            self.lock().end.get_or_insert(end);
        }
        self.stop();
    }

    /// Nobody runs any more, or sleeps on.
    fn stop(&self) {
        self.canceller.cancel();
        let sleepers = std::mem::take(&mut self.lock().sleepers);
        sleepers
            .values()
            .flatten()
            .for_each(|sleeper| sleeper.told.notify_one());
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        unpoisoned(self.state.lock())
    }
}

impl Threads for ProgramThreads {
    fn start(&self, entry: Entry, argument: u64, told: &mut dyn FnMut(i32) -> bool) -> Option<i32> {
        let this = self.this.upgrade()?;
        let mut state = self.lock();
        if state.end.is_some() || state.numbers.len() as u32 >= self.most {
            return None;
        }
        let number = (FIRST + 1..).find(|number| !state.numbers.contains(number))?;
        state.numbers.insert(number);
        state.alive += 1;
        drop(state);
        let name = format!("mullion-{number}");
        let begin = move || this.thread(number, entry, argument);
        let started = told(number) && std::thread::Builder::new().name(name).spawn(begin).is_ok();
        if !started {
            self.lock().numbers.remove(&number);
            self.gone();
        }
        started.then_some(number)
    }

    fn wait(
        &self,
        at: u64,
        at_most: Option<Duration>,
        is_so: &mut dyn FnMut() -> bool,
        is_over: &mut dyn FnMut() -> bool,
    ) -> Waited {
        let begun = Instant::now();
        let mut state = self.lock();
        if !is_so() {
            return Waited::Changed;
        }
        let sleeper = Arc::new(Sleeper::default());
        state.sleepers.entry(at).or_default().push(sleeper.clone());
        loop {
            if self.canceller.is_cancelled() || is_over() {
                state.leave(at, &sleeper);
                return Waited::Over;
            }
            let left = at_most.map(|most| most.saturating_sub(begun.elapsed()));
            if left.is_some_and(|left| left.is_zero()) {
                state.leave(at, &sleeper);
                return Waited::TimedOut;
            }
            let look = left.map_or(LOOK, |left| left.min(LOOK));
            state = unpoisoned(sleeper.told.wait_timeout(state, look)).0;
            if !state.sleeps(at, &sleeper) && !self.canceller.is_cancelled() {
                return Waited::Woken;
            }
        }
    }

    fn wake(&self, at: u64, count: u32) -> u32 {
        let mut state = self.lock();
        let Some(sleepers) = state.sleepers.get_mut(&at) else {
            return 0;
        };
        let woken = sleepers.len().min(count as usize);
        let first: Vec<_> = sleepers.drain(..woken).collect();
        if sleepers.is_empty() {
            state.sleepers.remove(&at);
        }
        drop(state);
        first.iter().for_each(|sleeper| sleeper.told.notify_one());
        woken as u32
    }
}

impl State {
    fn sleeps(&self, at: u64, sleeper: &Arc<Sleeper>) -> bool {
        let sleepers = self.sleepers.get(&at);
        sleepers.is_some_and(|all| all.iter().any(|other| Arc::ptr_eq(other, sleeper)))
    }

    /// It goes by itself.
    fn leave(&mut self, at: u64, sleeper: &Arc<Sleeper>) {
        if let Some(sleepers) = self.sleepers.get_mut(&at) {
            sleepers.retain(|other| !Arc::ptr_eq(other, sleeper));
            if sleepers.is_empty() {
                self.sleepers.remove(&at);
            }
        }
    }
}

/// Whether a call ended so because another one had ended the program.
fn follows_another(error: &CallError) -> bool {
    use mullion_runtime::Error::{Cancelled, Ended};
    match error {
        CallError::Fault(fault) => matches!(fault.cause, Cause::Cancelled),
        CallError::Refused(why) => matches!(why.downcast_ref(), Some(Ended)),
        CallError::NotMade(why) => matches!(why, Cancelled | Ended),
        CallError::Exit(_) => false,
    }
}

/// Nothing panics while it has the lock.
fn unpoisoned<T>(locked: Result<T, PoisonError<T>>) -> T {
    locked.unwrap_or_else(PoisonError::into_inner)
}
