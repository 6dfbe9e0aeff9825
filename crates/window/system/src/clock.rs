//! The clocks, for programs that were granted them.

use crate::caller::Caller;
use crate::stop::told;
use mullion_calls::{CallStop, Clocks, Moment};
use rustix::io::Errno;
use rustix::thread::NanosleepRelativeResult;
use rustix::time::{ClockId, Timespec, clock_getres, clock_gettime};

impl Clocks for Caller<'_, '_> {
    fn has_clocks(&self) -> bool {
        self.system.grants.clock
    }

    fn now(&self, clock: i32) -> Result<Moment, CallStop> {
        Ok(moment(clock_gettime(self.clock(clock)?)))
    }

    fn resolution(&self, clock: i32) -> Result<Moment, CallStop> {
        Ok(moment(clock_getres(self.clock(clock)?)))
    }

    /// Sleeps on through signals, until the program's own time is up.
    fn sleep(&self, (seconds, rest): Moment) -> Result<(), CallStop> {
        self.clock(0)?;
        let mut left = Timespec {
            tv_sec: seconds,
            tv_nsec: rest,
        };
        self.retry(|| match rustix::thread::nanosleep(&left) {
            NanosleepRelativeResult::Ok => Ok(()),
            NanosleepRelativeResult::Interrupted(rest) => {
                left = rest;
                Err(told(Errno::INTR))
            }
            NanosleepRelativeResult::Err(error) => Err(told(error)),
        })
    }
}

impl Caller<'_, '_> {
    /// A clock, if they were granted: one that tells of time alone.
    fn clock(&self, number: i32) -> Result<ClockId, CallStop> {
        if !self.has_clocks() {
            return Err(told(Errno::PERM));
        }
        Ok(match number {
            0 | 5 => ClockId::Realtime,
            1 | 4 | 6 => ClockId::Monotonic,
            7 => ClockId::Boottime,
            2 => ClockId::ProcessCPUTime,
            3 => ClockId::ThreadCPUTime,
            _ => return Err(told(Errno::INVAL)),
        })
    }
}

fn moment(time: Timespec) -> Moment {
    (time.tv_sec, time.tv_nsec)
}
