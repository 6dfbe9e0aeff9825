//! The clocks, for programs that were granted them.

use crate::call::Call;
use crate::errno::{Answer, CallStop, Errno};
use crate::program::Moment;

/// Linux' number of the clock that shows the date.
const REALTIME: i32 = 0;

fn write(call: &Call<'_>, at: u64, (seconds, fraction): Moment) -> Result<(), CallStop> {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&seconds.to_le_bytes());
    bytes[8..].copy_from_slice(&fraction.to_le_bytes());
    call.write(at, &bytes)
}

pub(crate) fn read(call: &Call<'_>, index: usize) -> Result<Moment, CallStop> {
    let [seconds, fraction] = call.record(index)?.map(|word: u64| word as i64);
    if seconds < 0 || !(0..1_000_000_000).contains(&fraction) {
        return Err(Errno::INVAL.into());
    }
    Ok((seconds, fraction))
}

pub(crate) fn clock_gettime(call: &Call<'_>) -> Answer {
    let now = call.program().now(call.int(0))?;
    write(call, call.argument(1), now)?;
    Ok(0)
}

pub(crate) fn clock_getres(call: &Call<'_>) -> Answer {
    let resolution = call.program().resolution(call.int(0))?;
    if call.argument(1) != 0 {
        write(call, call.argument(1), resolution)?;
    }
    Ok(0)
}

pub(crate) fn gettimeofday(call: &Call<'_>) -> Answer {
    let (seconds, nanoseconds) = call.program().now(REALTIME)?;
    if call.argument(0) != 0 {
        write(call, call.argument(0), (seconds, nanoseconds / 1000))?;
    }
    Ok(0)
}

pub(crate) fn time(call: &Call<'_>) -> Answer {
    let (now, _) = call.program().now(REALTIME)?;
    if call.argument(0) != 0 {
        call.write(call.argument(0), &now.to_le_bytes())?;
    }
    Ok(now as u64)
}

pub(crate) fn nanosleep(call: &Call<'_>) -> Answer {
    call.program().sleep(read(call, 0)?)?;
    Ok(0)
}

pub(crate) fn clock_nanosleep(call: &Call<'_>) -> Answer {
    const TIMER_ABSTIME: i32 = 1;
    let wanted = read(call, 2)?;
    if call.int(1) & TIMER_ABSTIME == 0 {
        call.program().sleep(wanted)?;
        return Ok(0);
    }
    loop {
        let left = left(call, call.int(0), wanted)?;
        if left == (0, 0) {
            return Ok(0);
        }
        call.program().sleep(left)?;
    }
}

/// What is left until a moment of the clock; zero, if it is past.
pub(crate) fn left(call: &Call<'_>, clock: i32, until: Moment) -> Result<Moment, CallStop> {
    let now = call.program().now(clock)?;
    let left = (nanoseconds(until) - nanoseconds(now)).max(0);
    let rest = (left % 1_000_000_000) as i64;
    Ok(((left / 1_000_000_000) as i64, rest))
}

fn nanoseconds((seconds, rest): Moment) -> i128 {
    i128::from(seconds) * 1_000_000_000 + i128::from(rest)
}
