//! The program itself: its end, its identity, its threads, signals that it sends itself,
//! random numbers. There is nobody else to be seen.

use crate::call::Call;
use crate::errno::{Answer, CallStop, Errno};
use crate::time;
use alloc::vec;

/// The number of the program and of its first thread.
const SELF: u64 = 1;
/// "nobody", as the identity of everything.
const NOBODY: u64 = 65534;
const SIG_IGN: u64 = 1;
const SIGKILL: i32 = 9;
const SIGSTOP: i32 = 19;
/// Signals that do nothing by default: CHLD, CONT, URG, WINCH.
const HARMLESS: [i32; 4] = [17, 18, 23, 28];

pub(crate) fn exit(call: &Call<'_>) -> Answer {
    Err(CallStop::Exit(call.int(0) & 0xff))
}

pub(crate) fn own_number(_: &Call<'_>) -> Answer {
    Ok(SELF)
}

pub(crate) fn zero(_: &Call<'_>) -> Answer {
    Ok(0)
}

pub(crate) fn nobody(_: &Call<'_>) -> Answer {
    Ok(NOBODY)
}

pub(crate) fn sched_yield(call: &Call<'_>) -> Answer {
    call.program().wait_a_moment()?;
    Ok(0)
}

/// A thread, as our C library asks for one (`clone.c`): where it begins, with which argument, and where its number is
/// to be written first.
pub(crate) fn clone(call: &Call<'_>) -> Answer {
    let [entry, argument, number_to] = [0, 1, 2].map(|index| call.argument(index));
    call.program().start_thread(entry, argument, number_to)
}

/// kill(process, signal).
pub(crate) fn kill(call: &Call<'_>) -> Answer {
    raise(call, call.int(0) == SELF as i32, call.int(1))
}

/// tkill(thread, signal).
pub(crate) fn tkill(call: &Call<'_>) -> Answer {
    raise(call, is_thread(call, call.int(0)), call.int(1))
}

/// tgkill(process, thread, signal).
pub(crate) fn tgkill(call: &Call<'_>) -> Answer {
    raise(call, is_thread(call, call.int(1)), call.int(2))
}

/// The numbers by which its C library knows its threads (`__mullion_extension_start.c`): that of the first,
/// and one for each data stack.
fn is_thread(call: &Call<'_>, number: i32) -> bool {
    let stacks = call.program().most_stacks();
    u64::try_from(number).is_ok_and(|number| (SELF..=SELF + stacks).contains(&number))
}

pub(crate) fn raise(call: &Call<'_>, is_self: bool, signal: i32) -> Answer {
    match signal {
        _ if !is_self => Err(Errno::SRCH.into()),
        0 => Ok(0),
        1..=64 if HARMLESS.contains(&signal) || ignores(call, signal)? => Ok(0),
        1..=64 => Err(CallStop::Raised(signal)),
        _ => Err(Errno::INVAL.into()),
    }
}

fn ignores(call: &Call<'_>, signal: i32) -> Result<bool, Errno> {
    call.state(|state| state.ignored >> signal & 1 != 0)
}

/// No signal is ever delivered, so default and ignoring are what happens; a
/// handler would never run, and the program is told so.
pub(crate) fn rt_sigaction(call: &Call<'_>) -> Answer {
    let signal = call.int(0);
    if !(1..=64).contains(&signal) {
        return Err(Errno::INVAL.into());
    }
    let wanted = match call.argument(1) {
        0 => None,
        _ => Some(call.record::<1>(1)?[0]),
    };
    match wanted {
        Some(_) if matches!(signal, SIGKILL | SIGSTOP) => return Err(Errno::INVAL.into()),
        Some(handler) if handler > SIG_IGN => return Err(Errno::NOSYS.into()),
        _ => {}
    }
    let before = ignores(call, signal)?;
    if call.argument(2) != 0 {
        let mut action = [0; 32];
        action[0] = u8::from(before);
        call.write(call.argument(2), &action)?;
    }
    if let Some(handler) = wanted {
        call.state(|state| {
            state.ignored &= !(1 << signal);
            state.ignored |= u128::from(handler) << signal;
        })?;
    }
    Ok(0)
}

pub(crate) fn rt_sigprocmask(call: &Call<'_>) -> Answer {
    if call.argument(2) != 0 {
        call.write(call.argument(2), &[0; 8])?;
    }
    Ok(0)
}

/// futex(address, operation, value, time or count, other address, other value).
///
/// A program with threads of its own sleeps. Elsewhere nobody sleeps, so nobody is to be woken: whoever waits looks
/// again, and lets other threads of the host run meanwhile. In a domain that has ended nobody waits: the lock may be
/// held by the very call that ended it.
pub(crate) fn futex(call: &Call<'_>) -> Answer {
    const WAIT: i32 = 0;
    const WAKE: i32 = 1;
    const REQUEUE: i32 = 3;
    const CMP_REQUEUE: i32 = 4;
    const WAIT_BITSET: i32 = 9;
    const WAKE_BITSET: i32 = 10;
    const COMMAND: i32 = 127;
    const CLOCK_REALTIME: i32 = 256;
    const REAL: i32 = 0;
    const MONOTONIC: i32 = 1;
    let (program, at, value) = (call.program(), call.argument(0), call.argument(2) as u32);
    let command = call.int(1) & COMMAND;
    if !program.has_threads() {
        if matches!(command, WAKE | WAKE_BITSET) {
            return Ok(0);
        }
        program.wait_a_moment()?;
        return Err(Errno::AGAIN.into());
    }
    match command {
        WAIT | WAIT_BITSET => {
            let given = match call.argument(3) {
                0 => None,
                _ if !program.has_clocks() => return Err(Errno::PERM.into()),
                _ => Some(time::read(call, 3)?),
            };
            let clock = match call.int(1) & CLOCK_REALTIME {
                0 => MONOTONIC,
                _ => REAL,
            };
            let at_most = match given {
                Some(until) if command == WAIT_BITSET => Some(time::left(call, clock, until)?),
                relative => relative,
            };
            program.wait_at(at, value, at_most)?;
            Ok(0)
        }
        WAKE | WAKE_BITSET => program.wake_at(at, value),
        // Those that would wait elsewhere from now on are woken instead: they look, and wait there themselves.
        REQUEUE => program.wake_at(at, value.saturating_add(call.argument(3) as u32)),
        CMP_REQUEUE => {
            let mut found = [0; 4];
            program.read(at, &mut found)?;
            if u32::from_le_bytes(found) != call.argument(5) as u32 {
                return Err(Errno::AGAIN.into());
            }
            program.wake_at(at, value.saturating_add(call.argument(3) as u32))
        }
        _ => Err(Errno::NOSYS.into()),
    }
}

pub(crate) fn getrandom(call: &Call<'_>) -> Answer {
    let mut bytes = vec![0; call.argument(1).min(1 << 20) as usize];
    call.program().random(&mut bytes)?;
    call.write(call.argument(0), &bytes)?;
    Ok(bytes.len() as u64)
}

pub(crate) fn uname(call: &Call<'_>) -> Answer {
    const FIELD: u64 = 65;
    for (index, text) in ["Linux", "mullion", "0", "0", "x86_64", ""]
        .iter()
        .enumerate()
    {
        let mut field = [0; FIELD as usize];
        if let Some(start) = field.get_mut(..text.len()) {
            start.copy_from_slice(text.as_bytes());
        }
        let at = call.argument(0).wrapping_add(FIELD * index as u64);
        call.write(at, &field)?;
    }
    Ok(0)
}
