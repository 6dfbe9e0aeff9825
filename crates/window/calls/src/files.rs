//! Calls on open descriptors.

use crate::above;
use crate::call::Call;
use crate::descriptor::{O_CLOEXEC, Object, Open};
use crate::device::Device;
use crate::errno::{Answer, CallStop, Errno};
use crate::handle::{Handle, STAT};
use crate::{locks, pipe};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

/// Most pieces of one readv or writev, as Linux has it.
const MOST_PIECES: u64 = 1024;

fn open(call: &Call<'_>) -> Result<Open, CallStop> {
    named(call, call.int(0))
}

/// What the trusted half has opened; for what is only about files.
fn handle(call: &Call<'_>) -> Result<Handle, CallStop> {
    files_only(&open(call)?)
}

fn files_only(open: &Open) -> Result<Handle, CallStop> {
    match &open.object {
        Object::Host(handle) => Ok(handle.clone()),
        _ => Err(Errno::INVAL.into()),
    }
}

fn transfer(
    call: &Call<'_>,
    object: &Object,
    place: (u64, u64),
    write: bool,
    position: Option<i64>,
) -> Answer {
    match object {
        Object::Host(handle) => call.program().transfer(handle, place, write, position),
        Object::Device(device) => move_device(call, *device, place, write),
        Object::Pipe(_) if position.is_some() => Err(Errno::SPIPE.into()),
        Object::Pipe(end) => pipe::transfer(end, call, place, write),
        Object::Above(_) if write => Err(Errno::BADF.into()),
        Object::Above(_) => Err(Errno::ISDIR.into()),
    }
}

/// Reads or writes so many bytes of the program's memory.
fn move_device(call: &Call<'_>, device: Device, (at, length): (u64, u64), write: bool) -> Answer {
    /// Most bytes that are made at a time.
    const PIECE: u64 = 1 << 16;
    if write {
        return Ok(length);
    }
    let mut done = 0;
    while device != Device::Null && done < length && !call.is_out_of_time() {
        let mut bytes = vec![0; PIECE.min(length - done) as usize];
        if device == Device::Random {
            call.program().random(&mut bytes)?;
        }
        call.write(at.wrapping_add(done), &bytes)?;
        done += bytes.len() as u64;
    }
    Ok(done)
}

/// `struct stat` of what is open.
pub(crate) fn stat_of(call: &Call<'_>, open: &Open) -> Result<[u8; STAT], CallStop> {
    match &open.object {
        Object::Host(handle) => call.program().stat_open(handle),
        Object::Device(device) => Ok(device.stat()),
        Object::Pipe(end) => Ok(end.stat()),
        Object::Above(above) => Ok(above.stat()),
    }
}

/// What the descriptor of this number stands for.
pub(crate) fn named(call: &Call<'_>, number: i32) -> Result<Open, CallStop> {
    Ok(call.state(|state| state.descriptors.get(number))??)
}

/// The program's path of the directory that a descriptor stands for.
pub(crate) fn directory(call: &Call<'_>, number: i32) -> Result<Arc<str>, CallStop> {
    named(call, number)?
        .directory
        .ok_or_else(|| Errno::NOTDIR.into())
}

/// Gives what is open the lowest free number from `least` on.
pub(crate) fn add(call: &Call<'_>, open: Open, least: usize, closes: bool) -> Answer {
    Ok(call.state(|state| state.descriptors.add(open, least, closes))??)
}

fn single(call: &Call<'_>, positioned: bool, write: bool) -> Answer {
    let position = positioned.then(|| call.argument(3) as i64);
    if position.is_some_and(|position| position < 0) {
        return Err(Errno::INVAL.into());
    }
    let open = open(call)?;
    if call.argument(2) == 0 {
        return Ok(0);
    }
    let place = (call.argument(1), call.argument(2));
    transfer(call, &open.object, place, write, position)
}

pub(crate) fn read(call: &Call<'_>) -> Answer {
    single(call, false, false)
}

pub(crate) fn write(call: &Call<'_>) -> Answer {
    single(call, false, true)
}

pub(crate) fn pread64(call: &Call<'_>) -> Answer {
    single(call, true, false)
}

pub(crate) fn pwrite64(call: &Call<'_>) -> Answer {
    single(call, true, true)
}

fn vector(call: &Call<'_>, write: bool) -> Answer {
    let object = open(call)?.object;
    let count = call.argument(2);
    if count > MOST_PIECES {
        return Err(Errno::INVAL.into());
    }
    if count == 0 {
        return Ok(0);
    }
    let is_stream = match &object {
        Object::Host(handle) => call.program().as_stream(handle).is_some(),
        Object::Device(_) | Object::Above(_) => false,
        Object::Pipe(_) => true,
    };
    let mut done: u64 = 0;
    for [at, length] in call.records(1, count as usize)? {
        if length == 0 {
            continue;
        }
        let moved = match transfer(call, &object, (at, length), write, None) {
            Ok(moved) => moved,
            // What has been moved is moved; the error comes with the next call.
            Err(_) if done > 0 => break,
            Err(stop) => return Err(stop),
        };
        done += moved;
        // What came short ends the call, and so does what a stream gave, as in `transfer`.
        let enough = moved < length || (!write && is_stream);
        if enough || call.is_out_of_time() {
            break;
        }
    }
    Ok(done)
}

pub(crate) fn readv(call: &Call<'_>) -> Answer {
    vector(call, false)
}

pub(crate) fn writev(call: &Call<'_>) -> Answer {
    vector(call, true)
}

pub(crate) fn close(call: &Call<'_>) -> Answer {
    let closed = call.state(|state| {
        let closed = state.descriptors.close(call.int(0))?;
        locks::closed(call.program(), &mut state.locks, &closed);
        Ok::<_, Errno>(closed)
    })?;
    // The host's descriptor closes with its last user, when the state is free again.
    drop(closed?);
    Ok(0)
}

pub(crate) fn lseek(call: &Call<'_>) -> Answer {
    let offset = call.argument(1) as i64;
    match open(call)?.object {
        Object::Host(handle) => call.program().seek(&handle, offset, call.int(2)),
        Object::Device(_) => Ok(0),
        Object::Pipe(_) => Err(Errno::SPIPE.into()),
        Object::Above(above) => Ok(above.seek(offset, call.int(2))?),
    }
}

pub(crate) fn fstat(call: &Call<'_>) -> Answer {
    let stat = stat_of(call, &open(call)?)?;
    call.write(call.argument(1), &stat)?;
    Ok(0)
}

/// Terminal questions: a stream may be one, and have a size.
pub(crate) fn ioctl(call: &Call<'_>) -> Answer {
    const TIOCGWINSZ: u64 = 0x5413;
    let (Object::Host(handle), TIOCGWINSZ) = (open(call)?.object, call.argument(1)) else {
        return Err(Errno::NOTTY.into());
    };
    let mut bytes = [0; 8];
    let size = call.program().window_size(&handle)?;
    for (place, value) in bytes.chunks_exact_mut(2).zip(size) {
        place.copy_from_slice(&value.to_le_bytes());
    }
    call.write(call.argument(2), &bytes)?;
    Ok(0)
}

pub(crate) fn fcntl(call: &Call<'_>) -> Answer {
    const DUPLICATE: i32 = 0;
    const DUPLICATE_CLOSING: i32 = 1030;
    const GET_CLOSING: i32 = 1;
    const SET_CLOSING: i32 = 2;
    const GET_FLAGS: i32 = 3;
    const SET_FLAGS: i32 = 4;
    const GET_LOCK: i32 = 5;
    const SET_LOCK: i32 = 6;
    const SET_LOCK_WAITING: i32 = 7;
    const READ_AND_WRITE: u64 = 2;
    const DIRECTORY: u64 = 0o200_000;
    const APPEND: u64 = 0o2_000;
    let open = open(call)?;
    match call.int(1) {
        command @ (DUPLICATE | DUPLICATE_CLOSING) => {
            let least = usize::try_from(call.int(2)).map_err(|_| Errno::INVAL)?;
            add(call, open, least, command == DUPLICATE_CLOSING)
        }
        command @ (GET_CLOSING | SET_CLOSING) => {
            let set = (command == SET_CLOSING).then(|| call.int(2) & 1 != 0);
            let closes = call.state(|state| state.descriptors.closes(call.int(0), set))??;
            Ok(u64::from(closes && command == GET_CLOSING))
        }
        GET_FLAGS => match &open.object {
            Object::Host(handle) => Ok(u64::from(call.program().flags(handle)?)),
            Object::Device(_) => Ok(READ_AND_WRITE),
            Object::Pipe(end) => pipe::flags(end, call),
            Object::Above(_) => Ok(DIRECTORY),
        },
        SET_FLAGS => match &open.object {
            Object::Pipe(end) => pipe::set_flags(end, call, call.int(2).cast_unsigned()),
            Object::Host(handle) => {
                let appends = call.argument(2) & APPEND != 0;
                call.program().set_appends(handle, appends)?;
                Ok(0)
            }
            _ => Ok(0),
        },
        GET_LOCK => locks::get(call, &files_only(&open)?),
        SET_LOCK => locks::set(call, &files_only(&open)?, false),
        SET_LOCK_WAITING => locks::set(call, &files_only(&open)?, true),
        _ => Err(Errno::INVAL.into()),
    }
}

pub(crate) fn dup(call: &Call<'_>) -> Answer {
    add(call, open(call)?, 0, false)
}

pub(crate) fn dup2(call: &Call<'_>) -> Answer {
    let number = call.int(1);
    if number == call.int(0) {
        open(call)?;
        return Ok(u64::from(number.unsigned_abs()));
    }
    put_at(call, number, false)
}

/// Gives the number to what another one stands for, and closes what it stood for.
fn put_at(call: &Call<'_>, number: i32, closes: bool) -> Answer {
    let open = open(call)?;
    let replaced = call.state(|state| {
        let closed = state.descriptors.close(number).ok();
        if let Some(closed) = &closed {
            locks::closed(call.program(), &mut state.locks, closed);
        }
        let answer = state.descriptors.replace(number, open, closes)?;
        Ok::<_, Errno>((answer, closed))
    })?;
    let (answer, _closed) = replaced?;
    Ok(answer)
}

pub(crate) fn dup3(call: &Call<'_>) -> Answer {
    if call.int(0) == call.int(1) {
        return Err(Errno::INVAL.into());
    }
    let flags = call.argument(2) as u32;
    if flags & !O_CLOEXEC != 0 {
        return Err(Errno::INVAL.into());
    }
    put_at(call, call.int(1), flags & O_CLOEXEC != 0)
}

pub(crate) fn ftruncate(call: &Call<'_>) -> Answer {
    let length = u64::try_from(call.argument(1) as i64).map_err(|_| Errno::INVAL)?;
    call.program().set_open_length(&handle(call)?, length)?;
    Ok(0)
}

pub(crate) fn fsync(call: &Call<'_>) -> Answer {
    call.program().sync(&handle(call)?)?;
    Ok(0)
}

pub(crate) fn flock(call: &Call<'_>) -> Answer {
    locks::flock(call, &handle(call)?)
}

pub(crate) fn fchmod(call: &Call<'_>) -> Answer {
    let mode = call.argument(1) as u32;
    call.program().set_open_mode(&handle(call)?, mode)?;
    Ok(0)
}

pub(crate) fn fchown(call: &Call<'_>) -> Answer {
    let stat = stat_of(call, &open(call)?)?;
    kept_owner(call, 1, &stat)
}

/// A program is nobody, so it gives no file to anybody. Its owner and group may be left as they are: by -1, or by the
/// numbers that `stat` tells.
pub(crate) fn kept_owner(call: &Call<'_>, owner: usize, stat: &[u8; STAT]) -> Answer {
    // Where `struct stat` has them.
    let kept = [(owner, 28), (owner + 1, 32)].iter().all(|(index, at)| {
        let asked = call.int(*index).to_ne_bytes();
        asked == [0xff; 4] || asked == stat[*at..*at + 4]
    });
    if kept { Ok(0) } else { Err(Errno::PERM.into()) }
}

/// Entries of a directory, as many as fit: inode, position, length, type, name.
pub(crate) fn getdents64(call: &Call<'_>) -> Answer {
    const MOST: u64 = 1 << 16;
    let open = open(call)?;
    if open.directory.is_none() {
        return Err(Errno::NOTDIR.into());
    }
    let room = call.argument(2).min(MOST) as usize;
    let mut bytes = Vec::new();
    let mut put = |(inode, next): (u64, u64), kind: u8, name: &[u8]| {
        let length = above::length(name.len());
        let end = bytes.len() + length;
        bytes.extend(inode.to_le_bytes());
        bytes.extend(next.to_le_bytes());
        bytes.extend((length as u16).to_le_bytes());
        bytes.push(kind);
        bytes.extend(name);
        bytes.resize(end, 0);
    };
    match &open.object {
        Object::Host(handle) => call.program().entries(handle, room, &mut |entry| {
            let name = entry.name.strip_suffix(&[0]).unwrap_or(entry.name);
            put((entry.inode, entry.next), entry.kind, name);
        })?,
        Object::Above(above) => {
            const DIRECTORY: u8 = 4;
            above.entries(room, &mut |inode, next, name| {
                put((inode, next), DIRECTORY, name.as_bytes());
            })?;
        }
        _ => return Err(Errno::NOTDIR.into()),
    }
    call.write(call.argument(1), &bytes)?;
    Ok(bytes.len() as u64)
}
