//! What is counted of a domain, over all its lives.
//!
//! What happens at every call is counted without a locked instruction. Each thread that has a data stack
//! of the domain adds to a [`Tally`] of its own. A reader adds up the tallies. What is rare is counted in
//! one place. Nothing is ever counted back, so a figure that is read while calls run is one of some moment
//! since the reading began.

use crate::error::Error;
use crate::fault::Cause;
use crate::kinds::{FaultKind, LimitKind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The figures of one domain at a moment, over all its lives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Invocations that have begun: calls of the host, of other domains by links, of host functions back
    /// into the domain. Counted are its constructors, too, and what it does when threads come and end.
    pub calls: u64,
    /// Calls of host functions and of linked domains that it has made.
    pub host_calls: u64,
    /// What outermost invocations took that have ended, by the clock of
    /// `Limits::measured`; `None` without. Host functions and
    /// other domains that were called meanwhile are in it.
    pub time: Option<Duration>,
    /// Invocations that ended since the domain ended itself, as `exit` does.
    pub exits: u64,
    /// Invocations that a host function ended, without a fault: by a refusal or a panic.
    pub refused: u64,
    /// Calls that were not made: the domain had ended or was closed, or a limit forbade them.
    pub not_made: u64,
    /// Restarts that were made.
    pub restarts: u64,
    /// Bytes of image and heap that the domain can access now
    /// (`Memory::in_use`); 0 when it is gone.
    pub memory: u64,
    /// The most that it ever could.
    pub memory_highest: u64,
    /// What `Limits::memory` grants.
    pub memory_limit: u64,
    faults: Vec<u64>,
    limits: Vec<u64>,
}

impl Counts {
    /// Invocations that ended by a fault of this kind.
    #[must_use]
    pub fn faults_of(&self, kind: FaultKind) -> u64 {
        self.faults.get(kind as usize).copied().unwrap_or(0)
    }

    /// Invocations that ended by a fault.
    #[must_use]
    pub fn faults(&self) -> u64 {
        self.faults.iter().sum()
    }

    /// How often this limit was hit: a fault, a call that was not made, or memory that
    /// the domain asked for and did not get.
    #[must_use]
    pub fn limit_hits_of(&self, limit: LimitKind) -> u64 {
        self.limits.get(limit as usize).copied().unwrap_or(0)
    }

    /// How often any limit was hit.
    #[must_use]
    pub fn limit_hits(&self) -> u64 {
        self.limits.iter().sum()
    }
}

/// What counts for one domain. It stays when the domain goes.
#[derive(Debug, Default)]
pub struct Meter {
    tallies: Mutex<Vec<Arc<Tally>>>,
    exits: AtomicU64,
    refused: AtomicU64,
    not_made: AtomicU64,
    restarts: AtomicU64,
    memory: AtomicU64,
    memory_highest: AtomicU64,
    memory_limit: u64,
    is_measured: bool,
    has_ended: AtomicBool,
    faults: [AtomicU64; FaultKind::ALL.len()],
    limits: [AtomicU64; LimitKind::ALL.len()],
}

/// What one thread at a time adds to, and others read. In a line of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct Tally {
    calls: AtomicU64,
    host_calls: AtomicU64,
    nanoseconds: AtomicU64,
}

impl Tally {
    #[inline]
    /// An invocation begins.
    pub fn call(&self) {
        add(&self.calls, 1);
    }

    #[inline]
    /// The domain calls a function of the host's.
    pub fn host_call(&self) {
        add(&self.host_calls, 1);
    }

    /// An outermost invocation took so long.
    pub fn time(&self, nanoseconds: u64) {
        add(&self.nanoseconds, nanoseconds);
    }
}

/// Only one thread writes: no locked instruction is needed.
#[inline]
fn add(count: &AtomicU64, more: u64) {
    count.store(
        count.load(Ordering::Relaxed).wrapping_add(more),
        Ordering::Relaxed,
    );
}

impl Meter {
    /// For a domain with so many bytes of memory at most. Whether its time is measured.
    #[must_use]
    pub fn new(memory_limit: u64, is_measured: bool) -> Arc<Self> {
        Arc::new(Self {
            memory_limit,
            is_measured,
            ..Self::default()
        })
    }

    /// Whether the domain has faulted, exited or gone, and takes no calls until it is restarted. It may be
    /// asked while the domain is in use or restarted, and disturbs neither.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }

    /// Follows the domain's life, which decides.
    pub fn set_ended(&self, ended: bool) {
        self.has_ended.store(ended, Ordering::Relaxed);
    }

    /// A tally that no other thread has: there are as many as threads had one at once.
    #[must_use]
    pub fn tally(&self) -> Arc<Tally> {
        let mut tallies = self.tallies.lock().unwrap_or_else(PoisonError::into_inner);
        // Under the lock nobody gets another reference; the one that goes last has released
        // what its thread wrote.
        for tally in tallies.iter_mut() {
            if Arc::get_mut(tally).is_some() {
                return tally.clone();
            }
        }
        let new = Arc::<Tally>::default();
        tallies.push(new.clone());
        new
    }

    /// The domain ended itself.
    pub fn exited(&self) {
        one(&self.exits);
    }

    /// A host function ended an invocation, by a refusal or by a panic.
    pub fn refused(&self) {
        one(&self.refused);
    }

    /// An invocation ended by a fault.
    pub fn fault(&self, cause: &Cause) {
        let kind = cause.kind();
        one(&self.faults[kind as usize]);
        if let Some(limit) = kind.limit() {
            self.hit(limit);
        }
    }

    /// A call was not made.
    #[cold]
    pub fn not_made(&self, error: &Error) {
        one(&self.not_made);
        if let Some(limit) = error.limit() {
            self.hit(limit);
        }
    }

    /// A limit was hit.
    pub fn hit(&self, limit: LimitKind) {
        one(&self.limits[limit as usize]);
    }

    /// A restart was made.
    pub fn restarted(&self) {
        one(&self.restarts);
    }

    /// What the domain can access now.
    pub fn has_memory(&self, bytes: u64) {
        self.memory.store(bytes, Ordering::Relaxed);
        self.memory_highest.fetch_max(bytes, Ordering::Relaxed);
    }

    /// The figures now.
    #[must_use]
    pub fn read(&self) -> Counts {
        let mut counts = Counts {
            exits: load(&self.exits),
            refused: load(&self.refused),
            not_made: load(&self.not_made),
            restarts: load(&self.restarts),
            memory: load(&self.memory),
            memory_highest: load(&self.memory_highest),
            memory_limit: self.memory_limit,
            faults: self.faults.iter().map(load).collect(),
            limits: self.limits.iter().map(load).collect(),
            ..Counts::default()
        };
        let mut nanoseconds = 0u64;
        let tallies = self.tallies.lock().unwrap_or_else(PoisonError::into_inner);
        for tally in tallies.iter() {
            counts.calls = counts.calls.wrapping_add(load(&tally.calls));
            counts.host_calls = counts.host_calls.wrapping_add(load(&tally.host_calls));
            nanoseconds = nanoseconds.wrapping_add(load(&tally.nanoseconds));
        }
        counts.time = self.is_measured.then(|| Duration::from_nanos(nanoseconds));
        counts
    }
}

fn one(count: &AtomicU64) {
    count.fetch_add(1, Ordering::Relaxed);
}

fn load(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tally_serves_one_thread_after_the_other() {
        let meter = Meter::new(7, false);
        let (one, other) = (meter.tally(), meter.tally());
        assert!(!Arc::ptr_eq(&one, &other));
        one.call();
        other.call();
        drop(one);
        let again = meter.tally();
        again.call();
        again.host_call();
        let counts = meter.read();
        assert_eq!((counts.calls, counts.host_calls), (3, 1));
        assert_eq!(meter.tallies.lock().unwrap().len(), 2);
        assert_eq!(counts.memory_limit, 7);
    }

    #[test]
    fn a_fault_by_a_limit_is_counted_as_both() {
        let meter = Meter::new(0, false);
        meter.fault(&Cause::GateLimit { granted: 3 });
        meter.fault(&Cause::Trap);
        meter.not_made(&Error::Depth { depth: 1 });
        meter.not_made(&Error::Ended);
        let counts = meter.read();
        assert_eq!((counts.faults(), counts.limit_hits()), (2, 2));
        assert_eq!(counts.faults_of(FaultKind::GateLimit), 1);
        assert_eq!(counts.limit_hits_of(LimitKind::GateCalls), 1);
        assert_eq!(counts.limit_hits_of(LimitKind::Depth), 1);
        assert_eq!(counts.not_made, 2);
    }
}
