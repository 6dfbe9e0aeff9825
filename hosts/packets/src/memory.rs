//! Pages that this process shares with somebody: with the kernel (`xdp.rs`), or with a user's process (`share.rs`).

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use std::ffi::CStr;
use std::io;
use std::os::fd::OwnedFd;
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
    let file = memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    ftruncate(&file, length)?;
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(file)
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: these pages were mapped so, and nothing borrows from them any more.
        unsafe { libc::munmap(self.start.cast(), self.length) };
    }
}
