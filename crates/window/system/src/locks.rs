//! Locks of files in directories that may be written.

use crate::caller::Caller;
use crate::open::{Open, behind};
use crate::stop::told;
use mullion_calls::{CallStop, FileLock, Handle, LockKind, Locks};
use mullion_runtime::{CallEnd, Error};
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use rustix::fd::OwnedFd;
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use std::time::Duration;

/// How long a program waits before it asks for a lock again.
const MOMENT: Duration = Duration::from_millis(1);

/// A file that a program may lock. Whoever may only read would hold off those who write, so it may not.
fn lockable(handle: &Handle) -> Result<&OwnedFd, CallStop> {
    match behind(handle)? {
        Open::File {
            read_only: false,
            descriptor,
        } => Ok(descriptor),
        Open::File { .. } => Err(told(Errno::NOLCK)),
        _ => Err(told(Errno::INVAL)),
    }
}

/// In the kernel's form: a length of 0 is without end.
fn in_words(lock: FileLock) -> Result<libc::flock, CallStop> {
    let kind = match lock.kind {
        LockKind::Shared => libc::F_RDLCK,
        LockKind::Exclusive => libc::F_WRLCK,
        LockKind::Unlock => libc::F_UNLCK,
    };
    let start = i64::try_from(lock.start).map_err(|_| told(Errno::INVAL))?;
    let length = lock
        .end
        .checked_sub(lock.start)
        .filter(|&length| length > 0);
    let length = length.ok_or_else(|| told(Errno::INVAL))?;
    let endless = lock.end > i64::MAX.unsigned_abs();
    Ok(libc::flock {
        l_type: kind as i16,
        l_whence: libc::SEEK_SET as i16,
        l_start: start,
        l_len: if endless { 0 } else { length.cast_signed() },
        l_pid: 0,
    })
}

fn of_nix(error: nix::errno::Errno) -> CallStop {
    mullion_calls::Errno(error as i32).into()
}

impl Locks for Caller<'_, '_> {
    /// By open file, so that two domains of one process keep each other out.
    fn lock(&self, handle: &Handle, lock: FileLock) -> Result<(), CallStop> {
        let words = in_words(lock)?;
        fcntl(lockable(handle)?, FcntlArg::F_OFD_SETLK(&words))
            .map(drop)
            .map_err(of_nix)
    }

    fn hindrance(&self, handle: &Handle, lock: FileLock) -> Result<Option<FileLock>, CallStop> {
        let mut words = in_words(lock)?;
        fcntl(lockable(handle)?, FcntlArg::F_OFD_GETLK(&mut words)).map_err(of_nix)?;
        let kind = match i32::from(words.l_type) {
            libc::F_UNLCK => return Ok(None),
            libc::F_WRLCK => LockKind::Exclusive,
            _ => LockKind::Shared,
        };
        let start = words.l_start.unsigned_abs();
        Ok(Some(FileLock {
            kind,
            start,
            end: match words.l_len {
                0 => 1 << 63,
                length => start + length.unsigned_abs(),
            },
        }))
    }

    fn lock_open(&self, handle: &Handle, kind: LockKind) -> Result<(), CallStop> {
        let how = match kind {
            LockKind::Shared => FlockOperation::NonBlockingLockShared,
            LockKind::Exclusive => FlockOperation::NonBlockingLockExclusive,
            LockKind::Unlock => FlockOperation::NonBlockingUnlock,
        };
        rustix::fs::flock(lockable(handle)?, how).map_err(told)
    }

    /// The kernel would wait better, but not be told that the domain has ended.
    fn wait_for_lock(&self) -> Result<(), CallStop> {
        if self.caller.has_ended() {
            return Err(self.ends(CallEnd::Refused(Box::new(Error::Ended))));
        }
        std::thread::sleep(MOMENT);
        Ok(())
    }
}
