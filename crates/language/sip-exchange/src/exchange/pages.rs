//! Mappings of common memory, and the rights that this OS process has on them.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{self, NonNull};

/// What this OS process may do with pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rights {
    /// Nothing: to touch them is a fault.
    None,
    /// Read and write.
    All,
}

impl Rights {
    fn bits(self) -> i32 {
        match self {
            Rights::None => libc::PROT_NONE,
            Rights::All => libc::PROT_READ | libc::PROT_WRITE,
        }
    }
}

/// Maps a part of a file that is shared, by where it begins there, or else memory that is not.
///
/// # Safety
/// If there is an address, that many bytes there are the caller's to lose.
pub(super) unsafe fn map(
    at: Option<NonNull<u8>>,
    bytes: usize,
    file: Option<(BorrowedFd<'_>, usize)>,
    rights: Rights,
) -> io::Result<NonNull<u8>> {
    let (fixed, address) = match at {
        Some(at) => (libc::MAP_FIXED, at.as_ptr().cast()),
        None => (0, ptr::null_mut()),
    };
    let (kind, file, offset) = match file {
        Some((file, offset)) => (libc::MAP_SHARED, file.as_raw_fd(), offset),
        None => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0),
    };
    let flags = kind | fixed | libc::MAP_NORESERVE;
    // SAFETY: by the caller, or where nothing is.
    let mapped = unsafe {
        libc::mmap(
            address,
            bytes,
            rights.bits(),
            flags,
            file,
            offset as libc::off_t,
        )
    };
    if mapped == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(mapped.cast()).ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
}

/// Changes the rights on pages; false if Linux refuses, who then may have changed some: it keeps a mapping for each run of
/// pages with the same rights, and has a bound on these.
///
/// # Safety
/// They are mapped by [`map`], and the caller's alone: nobody uses them while, or after, they have no rights.
#[must_use]
pub(super) unsafe fn set(at: NonNull<u8>, bytes: usize, rights: Rights) -> bool {
    // SAFETY: the pages are a mapping of `map`'s, which the caller has alone, and nobody relies on the rights that go.
    unsafe { libc::mprotect(at.as_ptr().cast(), bytes, rights.bits()) == 0 }
}

/// Gives the memory of a part of a file back to the system. If that does not want it, it stays.
pub(super) fn punch(file: BorrowedFd<'_>, offset: usize, bytes: usize) {
    let how = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: memory is touched by nobody's leave but whose file it is.
    unsafe {
        libc::fallocate(
            file.as_raw_fd(),
            how,
            offset as libc::off_t,
            bytes as libc::off_t,
        )
    };
}
