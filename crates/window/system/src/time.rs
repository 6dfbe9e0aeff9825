//! The clocks, for programs that were granted them.

use crate::answer::{Answer, Stop};
use crate::call::Call;
use mullion_runtime::Claimed;
use rustix::io::Errno;
use rustix::thread::NanosleepRelativeResult;
use rustix::time::{ClockId, Timespec};

/// Clocks that a program may name: those that tell of time alone.
fn clock(number: i32) -> Result<ClockId, Stop> {
    Ok(match number {
        0 | 5 => ClockId::Realtime,
        1 | 4 | 6 => ClockId::Monotonic,
        7 => ClockId::Boottime,
        2 => ClockId::ProcessCPUTime,
        3 => ClockId::ThreadCPUTime,
        _ => return Err(Errno::INVAL.into()),
    })
}

fn write(call: &Call<'_, '_>, at: Claimed, seconds: i64, fraction: i64) -> Result<(), Stop> {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&seconds.to_le_bytes());
    bytes[8..].copy_from_slice(&fraction.to_le_bytes());
    call.write(at, &bytes)
}

fn read(call: &Call<'_, '_>, index: usize) -> Result<Timespec, Stop> {
    let [seconds, fraction] = call.record(index)?.map(|word: u64| word as i64);
    if seconds < 0 || !(0..1_000_000_000).contains(&fraction) {
        return Err(Errno::INVAL.into());
    }
    Ok(Timespec {
        tv_sec: seconds,
        tv_nsec: fraction,
    })
}

pub(crate) fn clock_gettime(call: &Call<'_, '_>) -> Answer {
    let now = rustix::time::clock_gettime(clock(call.int(0))?);
    write(call, call.pointer(1), now.tv_sec, now.tv_nsec)?;
    Ok(0)
}

pub(crate) fn clock_getres(call: &Call<'_, '_>) -> Answer {
    let resolution = rustix::time::clock_getres(clock(call.int(0))?);
    if call.argument(1) != 0 {
        write(call, call.pointer(1), resolution.tv_sec, resolution.tv_nsec)?;
    }
    Ok(0)
}

pub(crate) fn gettimeofday(call: &Call<'_, '_>) -> Answer {
    let now = rustix::time::clock_gettime(ClockId::Realtime);
    if call.argument(0) != 0 {
        write(call, call.pointer(0), now.tv_sec, now.tv_nsec / 1000)?;
    }
    Ok(0)
}

pub(crate) fn time(call: &Call<'_, '_>) -> Answer {
    let now = rustix::time::clock_gettime(ClockId::Realtime).tv_sec;
    if call.argument(0) != 0 {
        call.write(call.pointer(0), &now.to_le_bytes())?;
    }
    Ok(now as u64)
}

pub(crate) fn nanosleep(call: &Call<'_, '_>) -> Answer {
    sleep(call, read(call, 0)?)
}

pub(crate) fn clock_nanosleep(call: &Call<'_, '_>) -> Answer {
    const TIMER_ABSTIME: i32 = 1;
    let wanted = read(call, 2)?;
    if call.int(1) & TIMER_ABSTIME == 0 {
        return sleep(call, wanted);
    }
    let clock = clock(call.int(0))?;
    loop {
        let now = rustix::time::clock_gettime(clock);
        let left = nanoseconds(wanted) - nanoseconds(now);
        if left <= 0 {
            return Ok(0);
        }
        sleep(
            call,
            Timespec {
                tv_sec: (left / 1_000_000_000) as i64,
                tv_nsec: (left % 1_000_000_000) as i64,
            },
        )?;
    }
}

fn nanoseconds(time: Timespec) -> i128 {
    i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)
}

/// Sleeps on through signals, until the program's own time is up.
fn sleep(call: &Call<'_, '_>, mut left: Timespec) -> Answer {
    call.retry(|| match rustix::thread::nanosleep(&left) {
        NanosleepRelativeResult::Ok => Ok(0),
        NanosleepRelativeResult::Interrupted(rest) => {
            left = rest;
            Err(Errno::INTR.into())
        }
        NanosleepRelativeResult::Err(error) => Err(error.into()),
    })
}
