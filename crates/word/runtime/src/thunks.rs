//! What the slots of all domains lead to, in one mapping: a process has room for some 65,000.
//!
//! ```text
//!   | where gates are: a page |  thunks of a domain  |  thunks of another one  | ...
//!
//!   a thunk:  movabs $Inner or $Import, %r10;  jmp *gate(%rip)
//! ```
//!
//! The mapping can be read and executed. It is written by its file, which nobody else has: no mapping of it can be
//! written. Thunks stay for the life of the process, as what they lead to does.

use crate::gates;
use crate::memory::{self, PAGE, Reserved, lock};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::Mutex;

/// Bytes of a thunk.
pub(crate) const THUNK: u64 = 16;

/// Addresses for thunks: they take memory as they are used.
const SPACE: u64 = 1 << 30;

/// Where a thunk leads.
#[derive(Clone, Copy)]
pub(crate) enum Way {
    Enter,
    LeaveAny,
    Leave,
}

pub(crate) struct Thunks {
    memory: Reserved,
    file: File,
    next: Mutex<u64>,
}

impl Thunks {
    pub(crate) fn new() -> io::Result<Thunks> {
        let file = memory::file(c"mullion-thunks", SPACE)?;
        let ways = [
            gates::mullion_word_enter,
            gates::mullion_word_leave_any,
            gates::mullion_word_leave,
        ];
        let ways = ways.map(|way| gates::address(way).to_le_bytes());
        file.write_all_at(ways.as_flattened(), 0)?;
        let memory = Reserved::new(SPACE)?;
        let protection = libc::PROT_READ | libc::PROT_EXEC;
        memory.map_shared(memory.base(), SPACE, protection, &file)?;
        Ok(Thunks {
            memory,
            file,
            next: Mutex::new(PAGE),
        })
    }

    /// In the child of a fork: thunks that are the child's alone, as they were.
    pub(crate) fn separate(&self) -> io::Result<()> {
        let next = lock(&self.next);
        let mut code = vec![0; *next as usize];
        self.file.read_exact_at(&mut code, 0)?;
        let file = memory::file(c"mullion-thunks", SPACE)?;
        file.write_all_at(&code, 0)?;
        let (new, old) = (file.as_raw_fd(), self.file.as_raw_fd());
        // SAFETY: both descriptors are ours; the number of the old one stays, and is the new file.
        if unsafe { libc::dup3(new, old, libc::O_CLOEXEC) } < 0 {
            return Err(io::Error::last_os_error());
        }
        let protection = libc::PROT_READ | libc::PROT_EXEC;
        self.memory
            .map_shared(self.memory.base(), SPACE, protection, &self.file)
    }

    /// Addresses for so many thunks.
    pub(crate) fn take(&self, count: u64) -> io::Result<u64> {
        let mut next = lock(&self.next);
        let bytes = count * THUNK;
        if bytes > SPACE - *next {
            return Err(io::Error::from_raw_os_error(libc::ENOMEM));
        }
        let at = self.memory.base() + *next;
        *next += bytes;
        Ok(at)
    }

    /// Writes thunks that were taken at `at`.
    pub(crate) fn write(&self, at: u64, code: &[u8]) -> io::Result<()> {
        self.file.write_all_at(code, at - self.memory.base())
    }

    /// The thunk at `at` that goes `way` with `value`.
    pub(crate) fn thunk(&self, at: u64, value: u64, way: Way) -> [u8; THUNK as usize] {
        let table = self.memory.base() + 8 * way as u64;
        let distance = table.wrapping_sub(at + THUNK) as i32;
        let mut code = [0; THUNK as usize];
        code[..2].copy_from_slice(&[0x49, 0xba]);
        code[2..10].copy_from_slice(&value.to_le_bytes());
        code[10..12].copy_from_slice(&[0xff, 0x25]);
        code[12..].copy_from_slice(&distance.to_le_bytes());
        code
    }

    /// One that goes to `target`: `movabs $target, %r10; jmp *%r10`.
    pub(crate) fn straight(target: u64) -> [u8; THUNK as usize] {
        let mut code = [0xcc; THUNK as usize];
        code[..2].copy_from_slice(&[0x49, 0xba]);
        code[2..10].copy_from_slice(&target.to_le_bytes());
        code[10..13].copy_from_slice(&[0x41, 0xff, 0xe2]);
        code
    }
}
