//! Calls on pipes. What waits for the other end looks again and again, as locks of the C library do.

use crate::call::Call;
use crate::descriptor::{O_CLOEXEC, Object, Open};
use crate::errno::{Answer, CallStop, Errno};
use crate::pipes::{End, Look, ROOM, WHOLE};
use alloc::vec;
use alloc::vec::Vec;

const O_WRONLY: u32 = 1;
const O_NONBLOCK: u32 = 0o4000;

/// Reads or writes so many bytes of the program's memory.
pub(crate) fn transfer(end: &End, call: &Call<'_>, place: (u64, u64), write: bool) -> Answer {
    if write != end.writes() {
        return Err(Errno::BADF.into());
    }
    match write {
        true => put(end, call, place),
        false => take(end, call, place),
    }
}

fn take(end: &End, call: &Call<'_>, (at, length): (u64, u64)) -> Answer {
    let most = ROOM.min(length as usize);
    let mut bytes = Vec::new();
    loop {
        let look =
            call.state(|state| Ok::<_, Errno>(state.pipes.of(end)?.take(&mut bytes, most)))??;
        match look {
            Look::Done(count) => {
                call.write(at, &bytes)?;
                return Ok(count as u64);
            }
            Look::Gone => return Ok(0),
            other => wait(&other, call)?,
        }
    }
}

fn put(end: &End, call: &Call<'_>, (at, length): (u64, u64)) -> Answer {
    let mut done = 0;
    while done < length {
        let mut bytes = vec![0; ROOM.min((length - done) as usize)];
        call.program().read(at.wrapping_add(done), &mut bytes)?;
        match call.state(|state| Ok::<_, Errno>(state.pipes.of(end)?.put(&bytes)))?? {
            Look::Done(count) => done += count as u64,
            // The C library sends the signal, which knows whether the thread holds it back.
            Look::Gone => return Err(Errno::PIPE.into()),
            Look::Hurry if done > 0 => break,
            other => wait(&other, call)?,
        }
    }
    Ok(done)
}

/// What can be done now, as `poll` says it.
pub(crate) fn ready(end: &End, call: &Call<'_>) -> Result<u16, CallStop> {
    use crate::pipes::{ERROR, HANGUP, IN, OUT};
    Ok(call.state(|state| {
        let pipe = state.pipes.of(end)?;
        let other = pipe.lives(!end.writes());
        Ok::<_, Errno>(match end.writes() {
            true => when(ROOM.saturating_sub(pipe.bytes.len()) >= WHOLE, OUT) | when(!other, ERROR),
            false => when(!pipe.bytes.is_empty(), IN) | when(!other, HANGUP),
        })
    })??)
}

/// As `F_GETFL` says it.
pub(crate) fn flags(end: &End, call: &Call<'_>) -> Answer {
    let hurried = call.state(|state| {
        let pipe = state.pipes.of(end)?;
        Ok::<_, Errno>(pipe.hurried[usize::from(end.writes())])
    })??;
    let way = if end.writes() { O_WRONLY } else { 0 };
    Ok(u64::from(way | if hurried { O_NONBLOCK } else { 0 }))
}

/// `F_SETFL`: whether calls wait.
pub(crate) fn set_flags(end: &End, call: &Call<'_>, flags: u32) -> Answer {
    call.state(|state| {
        let pipe = state.pipes.of(end)?;
        pipe.hurried[usize::from(end.writes())] = flags & O_NONBLOCK != 0;
        Ok::<_, Errno>(())
    })??;
    Ok(0)
}

fn wait(look: &Look, call: &Call<'_>) -> Result<(), CallStop> {
    if matches!(look, Look::Hurry) {
        return Err(Errno::AGAIN.into());
    }
    if call.is_out_of_time() {
        return Err(Errno::INTR.into());
    }
    call.program().wait_a_moment()
}

fn when(it_is: bool, bit: u16) -> u16 {
    if it_is { bit } else { 0 }
}

fn make(call: &Call<'_>, flags: u32) -> Answer {
    if flags & !(O_NONBLOCK | O_CLOEXEC) != 0 {
        return Err(Errno::INVAL.into());
    }
    let ends = call.state(|state| state.pipes.make(flags & O_NONBLOCK != 0))?;
    let mut numbers = [0; 8];
    let mut made = Vec::new();
    for (place, end) in numbers.chunks_exact_mut(4).zip(ends) {
        let open = Open {
            object: Object::Pipe(end),
            directory: None,
        };
        let added = call.state(|state| state.descriptors.add(open, 0, flags & O_CLOEXEC != 0))?;
        let number = match added {
            Ok(number) => number as i32,
            Err(error) => {
                undo(call, &made)?;
                return Err(error.into());
            }
        };
        place.copy_from_slice(&number.to_le_bytes());
        made.push(number);
    }
    if let Err(stop) = call.write(call.argument(0), &numbers) {
        undo(call, &made)?;
        return Err(stop);
    }
    Ok(0)
}

fn undo(call: &Call<'_>, made: &[i32]) -> Result<(), CallStop> {
    for number in made {
        drop(call.state(|state| state.descriptors.close(*number))?);
    }
    Ok(())
}

pub(crate) fn pipe(call: &Call<'_>) -> Answer {
    make(call, 0)
}

pub(crate) fn pipe2(call: &Call<'_>) -> Answer {
    make(call, call.argument(1) as u32)
}
