//! What the slots of all domains lead to, near each other: a thunk reaches the table by a distance.
//!
//! ```text
//!   | where gates are: a page |  thunks of a domain: pages of their own  |  thunks of another one  | ...
//!
//!   a thunk:  movabs $Inner or $Import, %r10;  jmp *gate(%rip)
//! ```
//!
//! Nobody can write there, by a mapping or by a descriptor: it is memory without a file, written before any thunk runs and never
//! again. A function of the host may write to a descriptor of the module's choice, and finds none of it. A copy of the process
//! has its own. Thunks stay for the life of the process, as what they lead to does. Those of all domains are one mapping.

use crate::gates;
use crate::memory::{self, PAGE, Reserved};
use std::ffi::CStr;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of a thunk.
pub(crate) const THUNK: u64 = 16;

/// Addresses for thunks: they take memory as they are used.
const SPACE: u64 = 1 << 30;

const FILE: &CStr = c"mullion-thunks";

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
    /// Bytes of it.
    used: AtomicU64,
}

impl Thunks {
    pub(crate) fn new() -> io::Result<Thunks> {
        let ways = [
            gates::mullion_word_enter,
            gates::mullion_word_leave_any,
            gates::mullion_word_leave,
            gates::mullion_word_mark,
            gates::mullion_word_unwind,
            gates::mullion_word_read,
        ];
        let ways = ways.map(|way| gates::address(way).to_le_bytes());
        let memory = Reserved::new(SPACE)?;
        let table = memory::sealed(FILE, PAGE, &[(0, ways.as_flattened())])?;
        memory.map_file(memory.base(), PAGE, libc::PROT_READ, &table, 0)?;
        Ok(Thunks {
            memory,
            used: AtomicU64::new(PAGE),
        })
    }

    pub(crate) fn memory(&self) -> &Reserved {
        &self.memory
    }

    /// Addresses for so many thunks.
    pub(crate) fn take(&self, count: u64) -> io::Result<u64> {
        let bytes = (count * THUNK).next_multiple_of(PAGE);
        let more = |used: u64| used.checked_add(bytes).filter(|end| *end <= SPACE);
        let order = Ordering::Relaxed;
        match self.used.fetch_update(order, order, more) {
            Ok(at) => Ok(self.memory.base() + at),
            Err(_) => Err(io::Error::from_raw_os_error(libc::ENOMEM)),
        }
    }

    /// Writes thunks to where they were taken, once.
    pub(crate) fn write(&self, at: u64, code: &[u8]) -> io::Result<()> {
        self.memory.write_code(at, code)
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
