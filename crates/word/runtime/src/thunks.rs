//! What the slots of all domains lead to, near each other: a thunk reaches the table by a distance.
//!
//! ```text
//!   | where gates are: a page |  a domain's first thunks: a page  |  the rest of its thunks: pages  |  another one's  | ...
//!
//!   a thunk:  movabs $Inner or $Import, %r10;  jmp *gate(%rip)
//! ```
//!
//! Nobody can write there, by a mapping or by a descriptor: it is memory without a file. It is written before any of its thunks runs,
//! and not again while one might. A function of the host may write to a descriptor of the module's choice, and finds none of it. A copy
//! of the process has its own. Those of all domains are one mapping.
//!
//! The first page stays for the life of the process, because gates enter the domain by it: anybody may call a gate at any time. The rest
//! are thunks of imports, which the domain's code alone runs. So these pages are another domain's when this one is gone. All are, if it
//! was never made.

use crate::gates;
use crate::memory::{self, PAGE, Reserved, lock};
use mullion_word_abi::SLOT_FIRST_IMPORT;
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::io;
use std::ops::Range;
use std::sync::Mutex;

/// Bytes of a thunk.
pub(crate) const THUNK: u64 = 16;

/// Thunks of a page.
const FIRST: u64 = PAGE / THUNK;
const _: () = assert!(SLOT_FIRST_IMPORT <= FIRST);

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
    free: Mutex<Free>,
}

/// Pages that nobody has.
struct Free {
    /// Where those begin that nobody has ever had.
    fresh: u64,
    /// Others, by their places, with their bytes. No two adjoin.
    pieces: BTreeMap<u64, u64>,
}

/// Pages of thunks. They come back with this.
struct Piece {
    of: &'static Thunks,
    range: Range<u64>,
}

/// The thunks of a domain.
pub(crate) struct Own {
    first: Piece,
    rest: Option<Piece>,
}

impl Free {
    fn take(&mut self, bytes: u64, end: u64) -> Option<Range<u64>> {
        let mut pieces = self.pieces.iter();
        if let Some((&at, &has)) = pieces.find(|(_, has)| **has >= bytes) {
            self.pieces.remove(&at);
            if has > bytes {
                self.pieces.insert(at + bytes, has - bytes);
            }
            return Some(at..at + bytes);
        }
        let at = self.fresh;
        self.fresh = at.checked_add(bytes).filter(|next| *next <= end)?;
        Some(at..self.fresh)
    }

    fn give(&mut self, Range { mut start, mut end }: Range<u64>) {
        if let Some((&before, &bytes)) = self.pieces.range(..start).next_back()
            && before + bytes == start
        {
            self.pieces.remove(&before);
            start = before;
        }
        if let Some(bytes) = self.pieces.remove(&end) {
            end += bytes;
        }
        match end == self.fresh {
            true => self.fresh = start,
            false => drop(self.pieces.insert(start, end - start)),
        }
    }
}

impl Own {
    /// Addresses for so many.
    pub(crate) fn take(of: &'static Thunks, count: u64) -> io::Result<Own> {
        let rest = count.saturating_sub(FIRST);
        Ok(Own {
            first: Piece::take(of, 1)?,
            rest: match rest {
                0 => None,
                rest => Some(Piece::take(of, rest.div_ceil(FIRST))?),
            },
        })
    }

    /// Where the thunk of a slot is.
    pub(crate) fn at(&self, slot: u64) -> u64 {
        match &self.rest {
            Some(rest) if slot >= FIRST => rest.range.start + (slot - FIRST) * THUNK,
            _ => self.first.range.start + slot * THUNK,
        }
    }

    /// Writes all of them, by their slots.
    pub(crate) fn write(&self, mut code: Vec<u8>) -> io::Result<()> {
        code.resize(code.len().next_multiple_of(PAGE as usize), 0xcc);
        let (first, rest) = code.split_at(PAGE as usize);
        let memory = &self.first.of.memory;
        memory.write_code(self.first.range.start, first)?;
        match &self.rest {
            Some(piece) => memory.write_code(piece.range.start, rest),
            None => Ok(()),
        }
    }

    /// No code of the domain runs any more.
    pub(crate) fn end(&mut self) {
        self.rest = None;
    }
}

impl Piece {
    fn take(of: &'static Thunks, pages: u64) -> io::Result<Piece> {
        let taken = lock(&of.free).take(pages * PAGE, of.memory.base() + SPACE);
        let none = || io::Error::from_raw_os_error(libc::ENOMEM);
        taken.map(|range| Piece { of, range }).ok_or_else(none)
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        lock(&self.of.free).give(self.range.clone());
    }
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
        let free = Mutex::new(Free {
            fresh: memory.base() + PAGE,
            pieces: BTreeMap::new(),
        });
        Ok(Thunks { memory, free })
    }

    pub(crate) fn memory(&self) -> &Reserved {
        &self.memory
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_come_back_and_grow_together() {
        let mut free = Free {
            fresh: 100,
            pieces: BTreeMap::new(),
        };
        let end = 200;
        let all = [10, 20, 30].map(|bytes| free.take(bytes, end).unwrap());
        assert_eq!(all, [100..110, 110..130, 130..160]);
        assert_eq!(free.take(41, end), None);
        assert_eq!(free.fresh, 160, "what was refused takes nothing");
        let [a, b, c] = all;
        free.give(a);
        assert_eq!(free.take(5, end), Some(100..105));
        free.give(b);
        // The rest of the first one, and the second.
        assert_eq!(free.take(25, end), Some(105..130));
        free.give(105..130);
        free.give(100..105);
        free.give(c);
        assert_eq!((free.fresh, free.pieces.len()), (100, 0));
        for _ in 0..1000 {
            let (stays, goes) = (free.take(1, 1200).unwrap(), free.take(64, 1200));
            free.give(goes.unwrap());
            assert!(stays.end <= 1200);
        }
    }
}
