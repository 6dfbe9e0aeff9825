//! What a domain may use.

use crate::clock::{Clock, nanoseconds};
use crate::control_stack::MAX_CONTROL_STACK;
use crate::stacks::{MAX_STACK_SIZE, MAX_STACKS};
use std::num::NonZeroU64;
use std::time::Duration;

/// What a domain may use.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Accessible bytes of image and heap together.
    pub memory: u64,
    /// Bytes of each data stack, at most [`MAX_STACK_SIZE`].
    pub stack: u64,
    /// Bytes of the control stack for each invocation, 8 for each return address, at most [`MAX_CONTROL_STACK`]. An
    /// invocation that is nested in it has what that leaves, or less by its own limit.
    pub control_stack: u64,
    /// Threads that may have a data stack at the same time, at most [`MAX_STACKS`].
    pub threads: u32,
    /// Mappings of the kernel that image and heap may take: pieces of memory with
    /// protections of their own, and the gaps between them. The whole process has 65,530
    /// of them, unless `vm.max_map_count` says otherwise.
    pub mappings: usize,
    /// Invocations nested on one thread, of this and other domains.
    pub depth: u32,
    /// Time by the clock for each call from the host.
    pub time: Option<Duration>,
    /// Time by the clock for all calls together, until the domain is restarted. What is nested in a call
    /// of the same domain on the same thread counts once. Calls that run at the same time on several
    /// threads count each. When nothing is left, all of them are stopped: each at most two
    /// [`TICK`](crate::TICK)s late, and by what the kernel takes to wake threads.
    pub total_time: Option<Duration>,
    /// Time on a processor for each call from the host: what the call's thread runs, in host
    /// functions and in the kernel too. What it waits, for a processor as well, does not count,
    /// so that the limit means the same on a busy machine. To look at the clock takes a
    /// system call for each call.
    pub processor_time: Option<Duration>,
    /// Time on a processor for all calls together, as [`Limits::total_time`] is by the clock.
    pub total_processor_time: Option<Duration>,
    /// Gate calls of each invocation; those of nested invocations are their own.
    pub gate_calls: Option<u64>,
    /// Bytes that it may hand to its host as output, until it is restarted: what is
    /// charged by [`GateCall::charge_output`](crate::GateCall::charge_output).
    pub output: Option<u64>,
    /// Steps of all calls together, until the domain is restarted, of an image that counts them
    /// (`mullion cc --mullion-count`). Steps are entries of functions, backward branches, and targets of
    /// indirect ones. At one more the call ends. For the same input it ends at the same instruction, on
    /// any machine, as long as one thread at a time calls. The count lies in the domain's memory, and
    /// code that is hostile can change it: this limit is for replaying, those of time are walls.
    pub steps: Option<u64>,
    /// How long a call waits, at most, for a domain that is being started or restarted. Zero,
    /// the default: it is refused at once, as [`Error::NotOpen`](crate::Error::NotOpen).
    pub start_wait: Duration,
    /// No limit: the clock by which [`Counts::time`](crate::Counts::time) is measured. `None`, the
    /// default: it is not. To look at the clock twice makes each call longer: by about 90 ns on the
    /// wall, by two system calls (1.2 µs) on a processor.
    pub measured: Option<Clock>,
}

/// Limits of one call, beside the domain's: of each the stricter holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallLimits {
    /// Time by the clock.
    pub time: Option<Duration>,
    /// Time on a processor ([`Limits::processor_time`]).
    pub processor_time: Option<Duration>,
    /// Gate calls; those of invocations of the same domain that are nested in this one
    /// count as well, unless these have limits of their own.
    pub gate_calls: Option<u64>,
    /// Invocations nested on the thread from here on, of all domains, this one included.
    pub depth: Option<u32>,
}

/// The stricter of two limits.
pub(crate) fn least<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

impl Limits {
    /// The limit on each call's time, by this clock.
    pub(crate) fn of_call(&self, clock: Clock) -> Option<Duration> {
        match clock {
            Clock::Wall => self.time,
            Clock::Processor => self.processor_time,
        }
    }

    /// The limit on all calls' time, by this clock.
    pub(crate) fn of_all_calls(&self, clock: Clock) -> Option<Duration> {
        match clock {
            Clock::Wall => self.total_time,
            Clock::Processor => self.total_processor_time,
        }
    }

    /// Whether a call must be limited in time, by any clock.
    pub(crate) fn has_time(&self) -> bool {
        let mut clocks = Clock::ALL.into_iter();
        clocks.any(|clock| self.of_call(clock).is_some() || self.of_all_calls(clock).is_some())
    }

    /// Whether something other than time must be looked at in each call.
    pub(crate) fn has_others(&self) -> bool {
        self.measured.is_some()
            || self.gate_calls.is_some()
            || self.control_stack < MAX_CONTROL_STACK
    }

    /// The limit on each call's time by the clock, in nanoseconds, if calls have no other limit.
    pub(crate) fn only_time(&self) -> Option<NonZeroU64> {
        let alone = Self {
            time: None,
            ..self.clone()
        };
        let time = nanoseconds(self.time?).min(u64::MAX >> 1);
        NonZeroU64::new(time).filter(|_| !alone.has_time() && !alone.has_others())
    }
}

impl CallLimits {
    /// The limit on time, by this clock.
    pub(crate) fn of_call(&self, clock: Clock) -> Option<Duration> {
        match clock {
            Clock::Wall => self.time,
            Clock::Processor => self.processor_time,
        }
    }
}

impl Default for Limits {
    /// 1 GiB of memory, stacks of nearly 8 MiB, control stacks of nearly 4 MiB, 95 threads, 2000 mappings,
    /// 100 nested invocations, any time, any number of gate calls, any output.
    fn default() -> Self {
        Self {
            memory: 1 << 30,
            stack: MAX_STACK_SIZE,
            control_stack: MAX_CONTROL_STACK,
            threads: MAX_STACKS,
            mappings: 2000,
            depth: 100,
            time: None,
            total_time: None,
            processor_time: None,
            total_processor_time: None,
            gate_calls: None,
            output: None,
            steps: None,
            start_wait: Duration::ZERO,
            measured: None,
        }
    }
}
