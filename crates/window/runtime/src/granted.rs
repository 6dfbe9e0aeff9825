//! Why an invocation is stopped, as one word.

use crate::clock::{Clock, nanoseconds};
use mullion_report::fault::Cause;
use std::time::Duration;

/// The limit that an invocation is stopped for: nanoseconds, and in the two highest bits
/// whether it is one of all calls of the domain, and by which clock. One word, as it is kept and
/// restored around every limited call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Granted(u64);

const OF_ALL: u64 = 1 << 63;
const BY_PROCESSOR: u64 = 1 << 62;
/// No limit at all: the host has cancelled the call. Durations are below it (73 years).
const CANCELLED: u64 = 1 << 61;

impl Granted {
    /// On one call.
    pub(crate) fn call(clock: Clock, time: Duration) -> Self {
        let by = match clock {
            Clock::Wall => 0,
            Clock::Processor => BY_PROCESSOR,
        };
        Self(nanoseconds(time).min(CANCELLED - 1) | by)
    }

    /// By the host, whatever the limits are.
    pub(crate) fn cancelled() -> Self {
        Self(CANCELLED)
    }

    /// On all calls of the domain.
    pub(crate) fn total(clock: Clock, time: Duration) -> Self {
        Self(Self::call(clock, time).0 | OF_ALL)
    }

    /// On one call, by the clock: so many nanoseconds.
    #[inline]
    pub(crate) fn by_clock(nanoseconds: u64) -> Self {
        Self(nanoseconds.min(CANCELLED - 1))
    }

    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    pub(crate) fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// What it is when the time is up.
    pub(crate) fn cause(self) -> Cause {
        if self.0 & CANCELLED != 0 {
            return Cause::Cancelled;
        }
        let granted = Duration::from_nanos(self.0 & (CANCELLED - 1));
        match (self.0 & BY_PROCESSOR != 0, self.0 & OF_ALL != 0) {
            (false, false) => Cause::TimeLimit { granted },
            (false, true) => Cause::TotalTimeLimit { granted },
            (true, false) => Cause::ProcessorTimeLimit { granted },
            (true, true) => Cause::TotalProcessorTimeLimit { granted },
        }
    }
}

/// The time that an invocation has by one clock, and why.
pub(crate) type Bound = (Duration, Granted);
