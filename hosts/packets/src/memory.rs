//! Pages that this process shares with somebody: with the kernel (`xdp.rs`), or with a user's process (`share.rs`).

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

/// Pages of ours, which go with this. It is an address and a length, and reads and writes nothing by itself.
#[derive(Debug)]
pub(crate) struct Memory {
    start: *mut u8,
    length: usize,
}

// SAFETY: it is an address and a length. Who has a part of it, and may read or write it, its users say.
unsafe impl Send for Memory {}
// SAFETY: its methods give an address and a length, which do not change.
unsafe impl Sync for Memory {}

impl Memory {
    pub(crate) fn anonymous(length: usize) -> io::Result<Memory> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
        Memory::map(length, flags, -1, 0)
    }

    pub(crate) fn map(length: usize, flags: i32, file: i32, offset: i64) -> io::Result<Memory> {
        // SAFETY: no address is asked for, so nothing that is there goes.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                flags,
                file,
                offset,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Memory {
            start: start.cast(),
            length,
        })
    }

    pub(crate) fn start(&self) -> *mut u8 {
        self.start
    }

    pub(crate) fn len(&self) -> usize {
        self.length
    }
}

/// A file in memory, whose length stays. Who writes to it, its users say.
pub(crate) fn sealed(name: &CStr, length: u64) -> io::Result<OwnedFd> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: the name is a string with its end.
    let file = unsafe { libc::memfd_create(name.as_ptr(), flags) };
    let file = crate::ring::check(file)?;
    // SAFETY: it was just made, and nobody else has it.
    let file = unsafe { OwnedFd::from_raw_fd(file) };
    let (number, length) = (file.as_raw_fd(), length.cast_signed());
    // SAFETY: no memory is handed over.
    crate::ring::check(unsafe { libc::ftruncate(number, length) })?;
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    // SAFETY: the seals are a number, and so is the descriptor.
    crate::ring::check(unsafe { libc::fcntl(number, libc::F_ADD_SEALS, seals) })?;
    Ok(file)
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: these pages were mapped so, and nothing borrows from them any more.
        unsafe { libc::munmap(self.start.cast(), self.length) };
    }
}
