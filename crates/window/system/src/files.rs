//! Calls on open descriptors.

use crate::answer::{Answer, Stop};
use crate::call::Call;
use crate::descriptor::{Directory, File, Handle, Use};
use crate::stat::{self, permitted};
use crate::streams::{Stream, Streams};
use mullion_runtime::{Claimed, quietly};
use rustix::fd::OwnedFd;
use rustix::fs::{FileType, OFlags, RawDir, SeekFrom};
use rustix::io::Errno;

/// Most bytes of one read or write, as Linux has it.
const LONGEST: u64 = 0x7fff_f000;
/// Most bytes that the kernel moves at a time: between two pieces the time limit is looked at,
/// since a signal interrupts no copy between a file and memory.
const PIECE: u64 = 1 << 20;
/// Most bytes that a receiver is handed at a time.
const TAKEN: u64 = 1 << 16;
/// Most pieces of one readv or writev, as Linux has it.
const MOST_PIECES: u64 = 1024;

fn handle(call: &Call<'_, '_>) -> Result<Handle, Stop> {
    Ok(call.state().descriptors.get(call.int(0))?)
}

/// What is done with the bytes of a descriptor.
#[derive(Clone, Copy)]
struct Way {
    write: bool,
    /// Where in the file; `None`: where the descriptor is.
    position: Option<i64>,
}

/// Moves bytes between a descriptor and the program's memory, piece by piece, until one comes
/// short, the time is up, or all are moved.
fn transfer(
    call: &Call<'_, '_>,
    handle: &Handle,
    (at, length): (Claimed, u64),
    way: Way,
) -> Result<u64, Stop> {
    let length = length.min(LONGEST);
    handle.permits(if way.write { Use::Write } else { Use::Read })?;
    if way.position.is_some() {
        handle.permits(Use::Seek)?;
    }
    if way.write && handle.is_output() {
        call.charge_output(length)?;
    }
    // The whole range is checked, not only what is moved of it.
    call.piece(at, length)?;
    let mut done = 0;
    while done < length {
        let step = PIECE.min(length - done);
        let place = Claimed(at.0.wrapping_add(done));
        let moved = match transfer_piece(call, handle, (place, step), way, done) {
            Ok(moved) => moved,
            // What has been moved is moved; the error comes with the next call.
            Err(_) if done > 0 => break,
            Err(stop) => return Err(stop),
        };
        done += moved;
        // To ask a stream for more would be to wait, while the program has something to work on.
        let enough = moved < step || (!way.write && handle.is_stream());
        if enough || call.is_out_of_time() {
            break;
        }
    }
    Ok(done)
}

/// As [`transfer`], in one piece; the kernel moves the bytes, so that no buffer is needed.
fn transfer_piece(
    call: &Call<'_, '_>,
    handle: &Handle,
    (at, length): (Claimed, u64),
    way: Way,
    done: u64,
) -> Result<u64, Stop> {
    if let Handle::Taken(stream) = handle {
        return taken(call, *stream, (at, length), way.write);
    }
    let descriptor = handle.bytes()?;
    let piece = call.piece(at, length)?;
    let position = way
        .position
        .map(|position| position.saturating_add(done as i64));
    let moved = call.retry(|| {
        Ok(match way.write {
            true => piece.drain_to(descriptor, position)?,
            false => piece.fill_from(descriptor, position)?,
        })
    })?;
    Ok(moved as u64)
}

/// read and write on a taken stream.
fn taken(call: &Call<'_, '_>, stream: Stream, (at, length): (Claimed, u64), write: bool) -> Answer {
    let Streams::Taken(receiver) = &call.grants().streams else {
        return Err(Errno::BADF.into());
    };
    if !write {
        return Ok(0);
    }
    let mut bytes = vec![0; length.min(TAKEN) as usize];
    call.piece(at, bytes.len() as u64)?.read(&mut bytes)?;
    receiver(stream, &bytes).map_err(Stop::End)?;
    Ok(bytes.len() as u64)
}

fn single(call: &Call<'_, '_>, positioned: bool, write: bool) -> Answer {
    let position = positioned.then(|| call.argument(3) as i64);
    if position.is_some_and(|position| position < 0) {
        return Err(Errno::INVAL.into());
    }
    let handle = handle(call)?;
    if call.argument(2) == 0 {
        return Ok(0);
    }
    let place = (call.pointer(1), call.argument(2));
    transfer(call, &handle, place, Way { write, position })
}

pub(crate) fn read(call: &Call<'_, '_>) -> Answer {
    single(call, false, false)
}

pub(crate) fn write(call: &Call<'_, '_>) -> Answer {
    single(call, false, true)
}

pub(crate) fn pread64(call: &Call<'_, '_>) -> Answer {
    single(call, true, false)
}

pub(crate) fn pwrite64(call: &Call<'_, '_>) -> Answer {
    single(call, true, true)
}

fn vector(call: &Call<'_, '_>, write: bool) -> Answer {
    let handle = handle(call)?;
    let count = call.argument(2);
    if count > MOST_PIECES {
        return Err(Errno::INVAL.into());
    }
    if count == 0 {
        return Ok(0);
    }
    let mut done: u64 = 0;
    for [at, length] in call.records(1, count as usize)? {
        let at = Claimed(at);
        if length == 0 {
            continue;
        }
        let way = Way {
            write,
            position: None,
        };
        let moved = match transfer(call, &handle, (at, length), way) {
            Ok(moved) => moved,
            // What has been moved is moved; the error comes with the next call.
            Err(_) if done > 0 => break,
            Err(stop) => return Err(stop),
        };
        done += moved;
        // What came short ends the call, and so does what a stream gave, as in `transfer`.
        let enough = moved < length || (!write && handle.is_stream());
        if enough || call.is_out_of_time() {
            break;
        }
    }
    Ok(done)
}

pub(crate) fn readv(call: &Call<'_, '_>) -> Answer {
    vector(call, false)
}

pub(crate) fn writev(call: &Call<'_, '_>) -> Answer {
    vector(call, true)
}

pub(crate) fn close(call: &Call<'_, '_>) -> Answer {
    call.state().descriptors.close(call.int(0))?;
    Ok(0)
}

pub(crate) fn lseek(call: &Call<'_, '_>) -> Answer {
    let offset = call.argument(1) as i64;
    let handle = handle(call)?;
    handle.permits(Use::Seek)?;
    let from = match call.int(2) {
        0 => SeekFrom::Start(u64::try_from(offset).map_err(|_| Errno::INVAL)?),
        1 => SeekFrom::Current(offset),
        2 => SeekFrom::End(offset),
        _ => return Err(Errno::INVAL.into()),
    };
    Ok(rustix::fs::seek(handle.host(), from)?)
}

pub(crate) fn fstat(call: &Call<'_, '_>) -> Answer {
    let stat = rustix::fs::fstat(handle(call)?.host())?;
    call.write(call.pointer(1), &stat::bytes(&stat))?;
    Ok(0)
}

/// Terminal questions: a stream may be one, and have a size.
pub(crate) fn ioctl(call: &Call<'_, '_>) -> Answer {
    const TIOCGWINSZ: u64 = 0x5413;
    let handle = handle(call)?;
    if call.argument(1) != TIOCGWINSZ || !matches!(handle, Handle::Stream(_)) {
        return Err(Errno::NOTTY.into());
    }
    let size = rustix::termios::tcgetwinsize(handle.host())?;
    let mut bytes = [0; 8];
    for (place, value) in
        bytes
            .chunks_exact_mut(2)
            .zip([size.ws_row, size.ws_col, size.ws_xpixel, size.ws_ypixel])
    {
        place.copy_from_slice(&value.to_le_bytes());
    }
    call.write(call.pointer(2), &bytes)?;
    Ok(0)
}

pub(crate) fn fcntl(call: &Call<'_, '_>) -> Answer {
    const DUPLICATE: [i32; 2] = [0, 1030];
    const GET_FLAGS: i32 = 3;
    // Close-on-exec, its setting, and the setting of status flags: there is no exec.
    const NOTHING: [i32; 3] = [1, 2, 4];
    let handle = handle(call)?;
    match call.int(1) {
        command if DUPLICATE.contains(&command) => {
            let least = usize::try_from(call.int(2)).map_err(|_| Errno::INVAL)?;
            Ok(call.state().descriptors.add(handle, least)?)
        }
        GET_FLAGS => Ok(u64::from(rustix::fs::fcntl_getfl(handle.host())?.bits())),
        command if NOTHING.contains(&command) => Ok(0),
        _ => Err(Errno::INVAL.into()),
    }
}

pub(crate) fn dup(call: &Call<'_, '_>) -> Answer {
    let handle = handle(call)?;
    Ok(call.state().descriptors.add(handle, 0)?)
}

pub(crate) fn dup2(call: &Call<'_, '_>) -> Answer {
    let handle = handle(call)?;
    Ok(call.state().descriptors.replace(call.int(1), handle)?)
}

pub(crate) fn dup3(call: &Call<'_, '_>) -> Answer {
    if call.int(0) == call.int(1) {
        return Err(Errno::INVAL.into());
    }
    dup2(call)
}

pub(crate) fn ftruncate(call: &Call<'_, '_>) -> Answer {
    let length = u64::try_from(call.argument(1) as i64).map_err(|_| Errno::INVAL)?;
    match handle(call)? {
        Handle::File(file) => set_length(&file.descriptor, length)?,
        _ => return Err(Errno::INVAL.into()),
    }
    Ok(0)
}

/// ftruncate, for which more than the host's own files may have is an error and no signal.
pub(crate) fn set_length(file: &OwnedFd, length: u64) -> Result<(), Stop> {
    Ok(quietly(|| Ok(rustix::fs::ftruncate(file, length)?))?)
}

pub(crate) fn fsync(call: &Call<'_, '_>) -> Answer {
    let handle = handle(call)?;
    call.retry(|| Ok(rustix::fs::fsync(handle.host())?))?;
    Ok(0)
}

/// Entries of a directory, as many as fit: inode, position, length, type, name. The kernel
/// counts them into as much room as the program has, and keeps the position, so that entries
/// that go meanwhile do not make it skip others.
pub(crate) fn getdents64(call: &Call<'_, '_>) -> Answer {
    const MOST: u64 = 1 << 16;
    let Handle::Directory(directory) = handle(call)? else {
        return Err(Errno::NOTDIR.into());
    };
    let mut buffer = Vec::with_capacity(call.argument(2).min(MOST) as usize);
    let mut entries = RawDir::new(&directory.descriptor, buffer.spare_capacity_mut());
    let mut bytes = Vec::new();
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name().to_bytes_with_nul();
        let length = (19 + name.len()).next_multiple_of(8);
        let end = bytes.len() + length;
        bytes.extend(entry.ino().to_le_bytes());
        bytes.extend(entry.next_entry_cookie().to_le_bytes());
        bytes.extend((length as u16).to_le_bytes());
        bytes.push(kind(entry.file_type()));
        bytes.extend(name);
        bytes.resize(end, 0);
        if entries.is_buffer_empty() {
            break;
        }
    }
    call.write(call.pointer(1), &bytes)?;
    Ok(bytes.len() as u64)
}

fn kind(kind: FileType) -> u8 {
    match kind {
        FileType::Directory => 4,
        FileType::RegularFile => 8,
        FileType::Symlink => 10,
        _ => 0,
    }
}

/// A handle for what has just been opened.
pub(crate) fn opened(descriptor: OwnedFd, path: String, read_only: bool) -> Result<Handle, Errno> {
    if permitted(&descriptor)? == FileType::Directory {
        return Ok(Handle::Directory(Directory { descriptor, path }.into()));
    }
    // Files never wait, so what was set for the opening alone goes.
    let flags = rustix::fs::fcntl_getfl(&descriptor)?;
    rustix::fs::fcntl_setfl(&descriptor, flags.difference(OFlags::NONBLOCK))?;
    Ok(Handle::File(
        File {
            descriptor,
            read_only,
        }
        .into(),
    ))
}
