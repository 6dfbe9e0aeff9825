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
//!
//! A copy of the process (`fork`) sees the same file. What is in it never changes; a copy that wants more of it takes a
//! file of its own first.

use crate::gates;
use crate::memory::{self, PAGE, Reserved, lock};
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Mutex;

/// Bytes of a thunk.
pub(crate) const THUNK: u64 = 16;

/// Addresses for thunks: they take memory as they are used.
const SPACE: u64 = 1 << 30;

const FILE: &CStr = c"mullion-thunks";

fn map(memory: &Reserved, file: &File) -> io::Result<()> {
    let protection = libc::PROT_READ | libc::PROT_EXEC;
    memory.map_shared(memory.base(), SPACE, protection, file)
}

/// Where a thunk leads.
#[derive(Clone, Copy)]
pub(crate) enum Way {
    Enter,
    LeaveAny,
    Leave,
    Mark,
    Unwind,
    Read,
}

pub(crate) struct Thunks {
    memory: Reserved,
    used: Mutex<Used>,
}

struct Used {
    file: File,
    bytes: u64,
    /// Whose file it is.
    process: u32,
}

impl Thunks {
    pub(crate) fn new() -> io::Result<Thunks> {
        let file = memory::file(FILE, SPACE)?;
        let ways = [
            gates::mullion_word_enter,
            gates::mullion_word_leave_any,
            gates::mullion_word_leave,
            gates::mullion_word_mark,
            gates::mullion_word_unwind,
            gates::mullion_word_read,
        ];
        let ways = ways.map(|way| gates::address(way).to_le_bytes());
        file.write_all_at(ways.as_flattened(), 0)?;
        let memory = Reserved::new(SPACE)?;
        map(&memory, &file)?;
        let used = Used {
            file,
            bytes: PAGE,
            process: std::process::id(),
        };
        Ok(Thunks {
            memory,
            used: Mutex::new(used),
        })
    }

    /// The thunks that this process has, in a file of its own, in the place of the one that it shared.
    fn copy(&self, used: &Used) -> io::Result<File> {
        let file = memory::file(FILE, SPACE)?;
        let mut piece = vec![0; 1 << 16];
        let mut at = 0;
        while at < used.bytes {
            let count = (used.bytes - at).min(piece.len() as u64);
            let piece = &mut piece[..count as usize];
            used.file.read_exact_at(piece, at)?;
            file.write_all_at(piece, at)?;
            at += count;
        }
        map(&self.memory, &file)?;
        Ok(file)
    }

    pub(crate) fn memory(&self) -> &Reserved {
        &self.memory
    }

    /// Addresses for so many thunks.
    pub(crate) fn take(&self, count: u64) -> io::Result<u64> {
        let mut used = lock(&self.used);
        let bytes = count * THUNK;
        if bytes > SPACE - used.bytes {
            return Err(io::Error::from_raw_os_error(libc::ENOMEM));
        }
        if used.process != std::process::id() {
            used.file = self.copy(&used)?;
            used.process = std::process::id();
        }
        let at = self.memory.base() + used.bytes;
        used.bytes += bytes;
        Ok(at)
    }

    /// Writes thunks that were taken at `at`.
    pub(crate) fn write(&self, at: u64, code: &[u8]) -> io::Result<()> {
        lock(&self.used)
            .file
            .write_all_at(code, at - self.memory.base())
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
