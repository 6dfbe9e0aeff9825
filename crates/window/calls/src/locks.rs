//! Locks of files.
//!
//! `fcntl`'s are the program's, by file, whatever descriptor they came by, and all of a file go when one of its
//! descriptors is closed (POSIX). The kernel keeps them by open file, so that two programs in one process keep each
//! other out. So all locks of a file are taken through one of the program's open files: the one that locked it first.
//! `flock`'s are an open file's, as the kernel has them.

use crate::call::Call;
use crate::descriptor::{Object, Open};
use crate::errno::{Answer, CallStop, Errno};
use crate::handle::Handle;
use crate::locked::{ENDLESS, FileLock, LockKind, Locks};
use crate::program::Program;
use alloc::vec::Vec;

/// `struct flock`, in words: kind and origin, start, length, process.
const WORDS: usize = 4;

/// Device and inode of an open file.
fn file(program: &dyn Program, handle: &Handle) -> Result<(u64, u64), CallStop> {
    let stat = program.stat_open(handle)?;
    let word = |at: usize| {
        let bytes = stat.get(at..).and_then(|rest| rest.first_chunk());
        bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
    };
    Ok((word(0), word(8)))
}

/// A descriptor of this has been closed: the program has no more locks of that file.
pub(crate) fn closed(program: &dyn Program, locks: &mut Locks, open: &Open) {
    let Object::Host(handle) = &open.object else {
        return;
    };
    if locks.is_empty() || open.directory.is_some() {
        return;
    }
    let Some(holder) = file(program, handle)
        .ok()
        .and_then(|file| locks.forget(file))
    else {
        return;
    };
    // Another descriptor may keep this file open. An error would leave locks that nobody can ask for.
    let _unlocked = program.lock(
        &holder,
        FileLock {
            kind: LockKind::Unlock,
            start: 0,
            end: ENDLESS,
        },
    );
}

/// What a `struct flock` asks for, of this open file.
fn asked(
    call: &Call<'_>,
    handle: &Handle,
    [kind, start, length, _]: [u64; WORDS],
) -> Result<FileLock, CallStop> {
    let (kind, origin) = (kind as u16, (kind >> 16) as u16);
    let from: u64 = match origin {
        0 => 0,
        1 => call.program().seek(handle, 0, 1)?,
        2 => {
            let stat = call.program().stat_open(handle)?;
            let bytes = stat.get(48..).and_then(|rest| rest.first_chunk());
            bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
        }
        _ => return Err(Errno::INVAL.into()),
    };
    // The numbers are 64 bits wide, so their sums are not.
    let start = i128::from(from) + i128::from(start as i64);
    let length = i128::from(length as i64);
    let (start, end) = match length {
        0 => (start, i128::from(ENDLESS)),
        length if length < 0 => (start + length, start),
        length => (start, start + length),
    };
    let start = u64::try_from(start).map_err(|_| Errno::INVAL)?;
    let end = u64::try_from(end).map_err(|_| Errno::INVAL)?;
    if start >= ENDLESS || end > ENDLESS {
        return Err(Errno::OVERFLOW.into());
    }
    let kind = match kind {
        0 => LockKind::Shared,
        1 => LockKind::Exclusive,
        2 => LockKind::Unlock,
        _ => return Err(Errno::INVAL.into()),
    };
    Ok(FileLock { kind, start, end })
}

/// `F_SETLK`, and with `wait` `F_SETLKW`.
pub(crate) fn set(call: &Call<'_>, handle: &Handle, wait: bool) -> Answer {
    const WAY: u32 = 3;
    const READ_ONLY: u32 = 0;
    const WRITE_ONLY: u32 = 1;
    let program = call.program();
    let lock = asked(call, handle, call.record(2)?)?;
    // By its own descriptor a call may lock what it may read, and lock out readers where it may write.
    let way = program.flags(handle)? & WAY;
    let refused = match lock.kind {
        LockKind::Shared => way == WRITE_ONLY,
        LockKind::Exclusive => way == READ_ONLY,
        LockKind::Unlock => false,
    };
    if refused {
        return Err(Errno::BADF.into());
    }
    let file = file(program, handle)?;
    let act = |holder: &Handle| match program.lock(holder, lock) {
        // The call's own descriptor allows it, and the one that has the locks does not.
        Err(CallStop::Error(Errno::BADF)) => Err(Errno::NOLCK.into()),
        other => other,
    };
    until_free(program, wait, || {
        call.state(|state| state.locks.set(file, handle, lock, act))?
    })
}

/// Tries until nobody else's lock hinders it, or once.
fn until_free(
    program: &dyn Program,
    wait: bool,
    mut attempt: impl FnMut() -> Result<(), CallStop>,
) -> Answer {
    loop {
        match attempt() {
            Err(CallStop::Error(Errno::AGAIN)) if wait => program.wait_for_lock()?,
            other => return other.map(|()| 0),
        }
        if program.is_out_of_time() {
            return Err(Errno::INTR.into());
        }
    }
}

/// `F_GETLK`: a lock of somebody else that hinders this one. Who that is, is not told.
pub(crate) fn get(call: &Call<'_>, handle: &Handle) -> Answer {
    const NOBODY: u64 = u32::MAX as u64;
    let program = call.program();
    let words: [u64; WORDS] = call.record(2)?;
    let lock = asked(call, handle, words)?;
    if lock.kind == LockKind::Unlock {
        return Err(Errno::INVAL.into());
    }
    let file = file(program, handle)?;
    let holder = call.state(|state| state.locks.holder(file).cloned())?;
    let found = program.hindrance(holder.as_ref().unwrap_or(handle), lock)?;
    let answer = match found {
        None => {
            let [kind, start, length, process] = words;
            [kind & !0xffff | 2, start, length, process]
        }
        Some(lock) => {
            let length = match lock.end {
                ENDLESS => 0,
                end => end - lock.start,
            };
            let kind = u64::from(lock.kind == LockKind::Exclusive);
            [kind, lock.start, length, NOBODY]
        }
    };
    let bytes: Vec<u8> = answer.into_iter().flat_map(u64::to_le_bytes).collect();
    call.write(call.argument(2), &bytes)?;
    Ok(0)
}

/// `flock`.
pub(crate) fn flock(call: &Call<'_>, handle: &Handle) -> Answer {
    const AT_ONCE: i32 = 4;
    let program = call.program();
    let kind = match call.int(1) & !AT_ONCE {
        1 => LockKind::Shared,
        2 => LockKind::Exclusive,
        8 => LockKind::Unlock,
        _ => return Err(Errno::INVAL.into()),
    };
    let wait = call.int(1) & AT_ONCE == 0;
    until_free(program, wait, || program.lock_open(handle, kind))
}
