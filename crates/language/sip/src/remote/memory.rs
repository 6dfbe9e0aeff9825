//! Memory that two OS processes share.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{self, NonNull};
use std::sync::Arc;

/// A mapped file in memory, whose size nobody can take away again. What is in it the other side may change
/// at any time: it is reached by atomic words and by copies only.
#[derive(Clone, Debug)]
pub struct Memory {
    base: NonNull<u8>,
    bytes: usize,
    number: u64,
    _mapping: Arc<Mapping>,
}

/// What is unmapped with the last who knows it.
#[derive(Debug)]
struct Mapping(usize, usize);

// SAFETY: an address range that is mapped as long as the value lives; who reads and writes what is the
// business of who reaches into it.
unsafe impl Send for Memory {}
// SAFETY: a shared value gives out addresses alone, which are mapped as long as it lives.
unsafe impl Sync for Memory {}

impl Memory {
    /// Maps all of a file in memory.
    ///
    /// # Errors
    /// It is smaller than `least` bytes, its size can change, or the system refuses. A peer that cut it off would
    /// have everybody else die of SIGBUS.
    pub fn map(file: BorrowedFd<'_>, least: usize) -> io::Result<Memory> {
        // SAFETY: the calls only ask. (Not `fstat`, which a sandbox could not tell from `stat` of any path.)
        let (bytes, seals) = unsafe {
            let bytes = libc::lseek(file.as_raw_fd(), 0, libc::SEEK_END);
            (bytes, libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS))
        };
        let needed = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
        let (Ok(bytes), 0..) = (usize::try_from(bytes), seals) else {
            return Err(io::Error::last_os_error());
        };
        if seals & needed != needed || bytes < least.max(1) {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        // SAFETY: a new mapping at an address that the system chooses touches no existing memory.
        let base = unsafe {
            libc::mmap(
                ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(Memory {
            base,
            bytes,
            number: 0,
            _mapping: Arc::new(Mapping(base.expose_provenance().get(), bytes)),
        })
    }

    /// With a number by which whoever has shared it knows it: see [`lines`](super::lines).
    pub fn numbered(mut self, number: u64) -> Memory {
        self.number = number;
        self
    }

    /// The number that it has been given.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// How many bytes there are.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The byte at `offset`.
    ///
    /// # Panics
    /// If it is beyond the end.
    #[inline]
    pub(super) fn at(&self, offset: usize) -> NonNull<u8> {
        assert!(offset < self.bytes, "within the memory");
        // SAFETY: within the mapping.
        unsafe { self.base.add(offset) }
    }

    /// Gives the pages of a range back to the system.
    pub(super) fn discard(&self, offset: usize, bytes: usize) {
        let start = self.at(offset);
        let bytes = bytes.min(self.bytes - offset);
        if cfg!(miri) {
            return;
        }
        // SAFETY: within the mapping, which holds bytes of messages only. A failure leaves them, which is as good.
        unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_REMOVE) };
    }
}

#[cfg(not(test))]
impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's, and every `Memory` that knew it has gone.
        unsafe { libc::munmap(ptr::with_exposed_provenance_mut(self.0), self.1) };
    }
}

/// The tests of this crate's own map no file.
#[cfg(test)]
impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the memory is this value's, from `both_ends`, and every `Memory` that knew it has gone.
        unsafe { std::alloc::dealloc(ptr::with_exposed_provenance_mut(self.0), self.layout()) };
    }
}

#[cfg(test)]
impl Mapping {
    fn layout(&self) -> std::alloc::Layout {
        std::alloc::Layout::from_size_align(self.1, 4096).expect("a size")
    }
}

#[cfg(test)]
impl Memory {
    /// Zeroed memory, twice, for two OS threads that play two OS processes.
    pub(super) fn both_ends(bytes: usize) -> [Memory; 2] {
        let mut mapping = Mapping(0, bytes);
        // SAFETY: the size is not 0.
        let base = NonNull::new(unsafe { std::alloc::alloc_zeroed(mapping.layout()) });
        let base = base.expect("memory");
        mapping.0 = base.expose_provenance().get();
        let memory = Memory {
            base,
            bytes,
            number: 0,
            _mapping: Arc::new(mapping),
        };
        [memory.clone(), memory]
    }
}
