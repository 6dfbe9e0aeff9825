//! The two clocks that limits of time are measured by.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// How often the watchdog looks while some invocation has a limit.
pub const TICK: Duration = Duration::from_millis(2);

/// What a limit of time counts, and what is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// Time by the clock on the wall, in which a call may wait, and wait for a processor.
    Wall,
    /// Time that the call's thread has run on a processor, in host functions and in the kernel too.
    Processor,
}

impl Clock {
    pub(crate) const ALL: [Self; 2] = [Self::Wall, Self::Processor];

    /// Nanoseconds on this clock, for a thread of this process that lives.
    pub(crate) fn of(self, thread: libc::pid_t) -> u64 {
        match self {
            Self::Wall => elapsed(),
            Self::Processor => processor_time(thread),
        }
    }
}

/// Nanoseconds since the first use, plus one.
pub(crate) fn elapsed() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    let elapsed = START.get_or_init(Instant::now).elapsed().as_nanos();
    u64::try_from(elapsed).unwrap_or(u64::MAX >> 2) + 1
}

/// As the kernel keeps it for each thread: its number, inverted, and what is asked, in the
/// clock's name (`CPUCLOCK_PERTHREAD | CPUCLOCK_SCHED`, include/linux/posix-timers.h).
fn processor_time(thread: libc::pid_t) -> u64 {
    const OF_THREAD: libc::clockid_t = 4 | 2;
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the structure is valid. A thread that is gone is an error, and 0.
    unsafe { libc::clock_gettime((!thread << 3) | OF_THREAD, &mut time) };
    nanoseconds(Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}

/// A duration in nanoseconds, 584 years at most.
pub(crate) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_works_has_used_time_and_one_that_sleeps_none() {
        // SAFETY: gettid cannot fail.
        let own = unsafe { libc::gettid() };
        let (wall, used) = (Clock::Wall.of(own), Clock::Processor.of(own));
        std::thread::sleep(Duration::from_millis(20));
        assert!(Clock::Wall.of(own) - wall >= 20_000_000);
        let asleep = Clock::Processor.of(own) - used;
        assert!(asleep < 20_000_000, "{asleep} ns");
        while Clock::Processor.of(own) - used < asleep + 5_000_000 {}
        assert_eq!(Clock::Processor.of(1 << 27), 0, "no such thread");
    }
}
