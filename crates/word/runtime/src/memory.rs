//! Mappings, and files of memory whose content cannot change any more.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub(crate) const PAGE: u64 = 4096;

/// Addresses that this value owns, mapped or not; unmapped at its end.
#[derive(Debug)]
pub(crate) struct Reserved {
    base: u64,
    bytes: u64,
}

impl Reserved {
    /// Addresses without access.
    pub(crate) fn new(bytes: u64) -> io::Result<Reserved> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: no address is asked for, so nothing is replaced.
        let base = unsafe {
            let none = std::ptr::null_mut();
            libc::mmap(none, bytes as usize, libc::PROT_NONE, flags, -1, 0)
        };
        match base == libc::MAP_FAILED {
            true => Err(io::Error::last_os_error()),
            false => Ok(Reserved {
                base: base as u64,
                bytes,
            }),
        }
    }

    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    fn check(&self, at: u64, bytes: u64) {
        let inside = at >= self.base && bytes <= self.bytes && at - self.base <= self.bytes - bytes;
        assert!(
            inside && at.is_multiple_of(PAGE),
            "a mapping stays inside its reservation"
        );
    }

    /// Fresh memory at `at`, all zeros.
    pub(crate) fn map(&self, at: u64, bytes: u64, protection: i32) -> io::Result<()> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
        self.map_with(at, bytes, protection, flags, -1, 0)
    }

    /// A private view of a file.
    pub(crate) fn map_file(
        &self,
        at: u64,
        bytes: u64,
        protection: i32,
        file: &OwnedFd,
        offset: u64,
    ) -> io::Result<()> {
        let flags = libc::MAP_PRIVATE | libc::MAP_FIXED;
        self.map_with(at, bytes, protection, flags, file.as_raw_fd(), offset)
    }

    /// A view of a file that shows what is written to it.
    #[cfg(test)]
    fn map_shared(&self, at: u64, bytes: u64, protection: i32, file: &File) -> io::Result<()> {
        let flags = libc::MAP_SHARED | libc::MAP_FIXED;
        self.map_with(at, bytes, protection, flags, file.as_raw_fd(), 0)
    }

    fn map_with(
        &self,
        at: u64,
        bytes: u64,
        protection: i32,
        flags: i32,
        file: i32,
        offset: u64,
    ) -> io::Result<()> {
        self.check(at, bytes);
        assert_ne!(
            protection & (libc::PROT_WRITE | libc::PROT_EXEC),
            libc::PROT_WRITE | libc::PROT_EXEC,
            "no page is writable and executable"
        );
        // SAFETY: the addresses are this reservation's, as was checked; its owner knows who uses them.
        let done = unsafe {
            libc::mmap(
                at as *mut _,
                bytes as usize,
                protection,
                flags,
                file,
                offset as i64,
            )
        };
        match done == libc::MAP_FAILED {
            true => Err(io::Error::last_os_error()),
            false => Ok(()),
        }
    }

    /// Code of the run time's own, where nobody runs anything: it is written while nobody can execute it, and not again as long as
    /// somebody might. No descriptor leads there. Pieces side by side are one mapping.
    pub(crate) fn write_code(&self, at: u64, code: &[u8]) -> io::Result<()> {
        let bytes = (code.len() as u64).next_multiple_of(PAGE);
        self.protect(at, bytes, libc::PROT_READ | libc::PROT_WRITE)?;
        let execute = libc::PROT_READ | libc::PROT_EXEC;
        // SAFETY: `protect` has checked the addresses, which can be written now; nobody else knows of them yet.
        let done = unsafe {
            std::ptr::copy_nonoverlapping(code.as_ptr(), at as *mut u8, code.len());
            libc::mprotect(at as *mut _, bytes as usize, execute)
        };
        match done {
            0 => Ok(()),
            _ => {
                let error = io::Error::last_os_error();
                self.protect(at, bytes, libc::PROT_NONE)?;
                Err(error)
            }
        }
    }

    /// Another protection, without execution.
    pub(crate) fn protect(&self, at: u64, bytes: u64, protection: i32) -> io::Result<()> {
        self.check(at, bytes);
        assert_eq!(
            protection & libc::PROT_EXEC,
            0,
            "code comes from files that no mapping can write"
        );
        // SAFETY: the addresses are this reservation's, as was checked; its owner knows who uses them.
        match unsafe { libc::mprotect(at as *mut _, bytes as usize, protection) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        // SAFETY: the addresses are this value's, which nobody uses any more.
        unsafe { libc::munmap(self.base as *mut _, self.bytes as usize) };
    }
}

/// A file of memory, all zeros.
fn file(name: &CStr, bytes: u64) -> io::Result<File> {
    // SAFETY: the name ends with a zero; the descriptor is new and nobody else has it.
    let file = unsafe {
        let file = libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING);
        if file < 0 {
            return Err(io::Error::last_os_error());
        }
        File::from(OwnedFd::from_raw_fd(file))
    };
    file.set_len(bytes)?;
    Ok(file)
}

/// A file of memory with this content, which nobody can change.
pub(crate) fn sealed(name: &CStr, bytes: u64, pieces: &[(u64, &[u8])]) -> io::Result<OwnedFd> {
    let file = file(name, bytes)?;
    for (at, piece) in pieces {
        file.write_all_at(piece, *at)?;
    }
    seal(&file)?;
    Ok(file.into())
}

/// Nobody can change the file from now on. Linux refuses that for a moment while it holds pages of the file itself, to move them or
/// to count them. Then it is asked again, for two seconds.
fn seal(file: &File) -> io::Result<()> {
    const PATIENCE: Duration = Duration::from_secs(2);
    let seals = libc::F_SEAL_WRITE | libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    let begin = Instant::now();
    // SAFETY: it is a system call on our own descriptor.
    while unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) } != 0 {
        let error = io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::EBUSY) || begin.elapsed() > PATIENCE {
            return Err(error);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// Locks what no panic leaves half done.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_held_for_a_moment_is_sealed_behind_it() {
        let content = file(c"held", PAGE).unwrap();
        let view = Reserved::new(PAGE).unwrap();
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        view.map_shared(view.base(), PAGE, rights, &content)
            .unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(50));
                drop(view);
            });
            seal(&content).unwrap();
        });
        assert!(content.write_all_at(b"x", 0).is_err());
    }
}
