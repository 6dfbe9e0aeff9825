//! Threads, for programs that were granted them.

use crate::caller::Caller;
use crate::stop::{of_address, told};
use mullion_calls::{CallStop, Moment};
use mullion_runtime::{CallEnd, Claimed, Entry, Error};
use rustix::io::Errno;
use std::time::Duration;

/// A host that starts threads for a program, and has them sleep and wake each other.
pub trait Threads: Send + Sync {
    /// Starts a thread that enters the program there, with one argument. Before that, `told` is called with its
    /// number, 2 or more. `None`: no more threads are granted, or `told` answers no.
    fn start(&self, entry: Entry, argument: u64, told: &mut dyn FnMut(i32) -> bool) -> Option<i32>;

    /// Sleeps until somebody wakes this address. Nobody does between `is_so`, which is asked first, and the sleep.
    /// `is_over` is asked now and then, and ends it.
    fn wait(
        &self,
        at: u64,
        at_most: Option<Duration>,
        is_so: &mut dyn FnMut() -> bool,
        is_over: &mut dyn FnMut() -> bool,
    ) -> Waited;

    /// Wakes so many of those that wait at this address; how many there were.
    fn wake(&self, at: u64, count: u32) -> u32;
}

/// How a thread's sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// Somebody woke it.
    Woken,
    /// It did not begin: things were not as it thought.
    Changed,
    /// Its time was up.
    TimedOut,
    /// The program ends.
    Over,
}

impl mullion_calls::Threads for Caller<'_, '_> {
    fn has_threads(&self) -> bool {
        self.system.grants.threads.is_some()
    }

    fn start_thread(&self, entry: u64, argument: u64, number_to: u64) -> Result<u64, CallStop> {
        let Ok(entry) = self.caller.entry(Claimed(entry)) else {
            return Err(told(Errno::FAULT));
        };
        let memory = self.caller.memory();
        let mut told_number = |number: i32| {
            memory
                .write(Claimed(number_to), &number.to_le_bytes())
                .is_ok()
        };
        let started = self.threads()?.start(entry, argument, &mut told_number);
        let number = started.ok_or_else(|| told(Errno::AGAIN))?;
        Ok(number.unsigned_abs().into())
    }

    fn wait_at(&self, at: u64, value: u32, at_most: Option<Moment>) -> Result<(), CallStop> {
        let memory = self.caller.memory();
        let mut found = Ok([0; 4]);
        let mut is_so = || {
            found = memory.read::<4>(Claimed(at));
            found == Ok(value.to_le_bytes())
        };
        let at_most = at_most.map(|(seconds, rest)| {
            Duration::new(seconds.unsigned_abs(), u32::try_from(rest).unwrap_or(0))
        });
        let mut is_over = || self.caller.has_ended() || self.caller.is_out_of_time();
        let waited = self.threads()?.wait(at, at_most, &mut is_so, &mut is_over);
        found.map_err(of_address)?;
        match waited {
            Waited::Woken => Ok(()),
            Waited::Changed => Err(told(Errno::AGAIN)),
            Waited::TimedOut => Err(told(Errno::TIMEDOUT)),
            // Whoever ended the program has said why.
            Waited::Over if self.caller.has_ended() => {
                Err(self.ends(CallEnd::Refused(Box::new(Error::Ended))))
            }
            Waited::Over => Err(told(Errno::INTR)),
        }
    }

    fn wake_at(&self, at: u64, count: u32) -> Result<u64, CallStop> {
        Ok(self.threads()?.wake(at, count).into())
    }
}

impl Caller<'_, '_> {
    /// The threads, if they were granted.
    fn threads(&self) -> Result<&dyn Threads, CallStop> {
        let granted = self.system.grants.threads.as_deref();
        granted.ok_or_else(|| told(Errno::PERM))
    }
}
