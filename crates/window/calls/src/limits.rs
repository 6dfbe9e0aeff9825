//! What a program asks of itself as a process: limits, times, other processes, of which there are none.

use crate::call::Call;
use crate::descriptor::LIMIT;
use crate::errno::{Answer, CallStop, Errno};
use crate::program::Moment;

const INFINITE: u64 = u64::MAX;
/// Linux' number of the clock of the time on a processor.
const PROCESSOR: i32 = 2;
/// Linux' number of the clock that only goes forward.
const MONOTONIC: i32 = 1;
/// `times` counts so many a second.
const TICKS: i64 = 100;

/// A limit of this number. Those that the run time has are its own affair: a program meets them as errors.
fn limit(call: &Call<'_>, number: i32) -> Result<u64, Errno> {
    const STACK: i32 = 3;
    const CORE: i32 = 4;
    const PROCESSES: i32 = 6;
    const FILES: i32 = 7;
    const LAST: i32 = 15;
    match number {
        STACK => Ok(call.program().stack_size()),
        CORE => Ok(0),
        PROCESSES => Ok(1),
        FILES => Ok(LIMIT as u64),
        0..=LAST => Ok(INFINITE),
        _ => Err(Errno::INVAL),
    }
}

fn write_limit(call: &Call<'_>, to: usize, limit: u64) -> Result<(), CallStop> {
    if call.argument(to) == 0 {
        return Ok(());
    }
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&limit.to_le_bytes());
    bytes[8..].copy_from_slice(&limit.to_le_bytes());
    call.write(call.argument(to), &bytes)
}

/// A limit stays as it is: nothing lower is kept, and nothing higher is given.
fn unchanged(call: &Call<'_>, from: usize, limit: u64) -> Result<(), CallStop> {
    let [current, most] = call.record(from)?;
    match current == limit && most >= limit {
        true => Ok(()),
        false => Err(Errno::PERM.into()),
    }
}

pub(crate) fn getrlimit(call: &Call<'_>) -> Answer {
    write_limit(call, 1, limit(call, call.int(0))?)?;
    Ok(0)
}

pub(crate) fn setrlimit(call: &Call<'_>) -> Answer {
    unchanged(call, 1, limit(call, call.int(0))?)?;
    Ok(0)
}

/// prlimit64(process, limit, new, old).
pub(crate) fn prlimit64(call: &Call<'_>) -> Answer {
    if !matches!(call.int(0), 0 | 1) {
        return Err(Errno::SRCH.into());
    }
    let limit = limit(call, call.int(1))?;
    if call.argument(2) != 0 {
        unchanged(call, 2, limit)?;
    }
    write_limit(call, 3, limit)?;
    Ok(0)
}

/// What the program has used of a processor. There are no children that have used any.
pub(crate) fn getrusage(call: &Call<'_>) -> Answer {
    const CHILDREN: i32 = -1;
    let (seconds, rest): Moment = match call.int(0) {
        CHILDREN => (0, 0),
        0 | 1 => call.program().now(PROCESSOR)?,
        _ => return Err(Errno::INVAL.into()),
    };
    let mut bytes = [0; 144];
    bytes[..8].copy_from_slice(&seconds.to_le_bytes());
    bytes[8..16].copy_from_slice(&(rest / 1000).to_le_bytes());
    call.write(call.argument(1), &bytes)?;
    Ok(0)
}

fn ticks((seconds, rest): Moment) -> i64 {
    seconds * TICKS + rest / (1_000_000_000 / TICKS)
}

pub(crate) fn times(call: &Call<'_>) -> Answer {
    let used = ticks(call.program().now(PROCESSOR)?);
    if call.argument(0) != 0 {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&used.to_le_bytes());
        call.write(call.argument(0), &bytes)?;
    }
    Ok(ticks(call.program().now(MONOTONIC)?) as u64)
}

/// A machine of one processor and 4 GiB, which is what a window spans.
pub(crate) fn sysinfo(call: &Call<'_>) -> Answer {
    const WINDOW: u64 = 1 << 32;
    let mut bytes = [0; 112];
    bytes[32..40].copy_from_slice(&WINDOW.to_le_bytes());
    bytes[40..48].copy_from_slice(&WINDOW.to_le_bytes());
    bytes[80..82].copy_from_slice(&1_u16.to_le_bytes());
    bytes[104..108].copy_from_slice(&1_u32.to_le_bytes());
    call.write(call.argument(0), &bytes)?;
    Ok(0)
}

/// One processor.
pub(crate) fn sched_getaffinity(call: &Call<'_>) -> Answer {
    const WORD: u64 = 8;
    if call.argument(1) < WORD {
        return Err(Errno::INVAL.into());
    }
    call.write(call.argument(2), &1_u64.to_le_bytes())?;
    Ok(WORD)
}

/// Whoever waits for a child has none.
pub(crate) fn no_child(_: &Call<'_>) -> Answer {
    Err(Errno::CHILD.into())
}
