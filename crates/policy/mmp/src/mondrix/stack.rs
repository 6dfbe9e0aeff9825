//! The stack write table: one bit for each word of a thread's stack (Mondrix, section 2.3).
//!
//! The registers (`sb`, `fb`, `sl`) answer for the current frame and for reads of earlier frames. What
//! they do not allow, a store into an earlier frame, is looked up here, and the answer is cached in the
//! protection lookaside buffer. A table is a flat bit vector over the stack, so a walk is one load.

use crate::access::Perm;
use crate::table::memory::TableMemory;
use crate::table::{MemoryBlock, Walk};
use std::ops::Range;

/// Bits, and so words of stack, in a word of the table.
const PARTS: u64 = 32;

/// Base-two logarithm of the bytes of stack that a word of the table describes.
const SPAN_LOG2: u32 = 7;

/// One thread's table.
#[derive(Clone, Debug)]
pub struct StackTable {
    /// Index of the table's first word.
    at: u32,
    words_log2: u32,
    /// The lowest address described, a multiple of the span.
    base: u64,
}

impl StackTable {
    /// A table for a stack at these addresses, with no writable word.
    pub fn new(memory: &mut TableMemory, stack: &Range<u64>) -> Self {
        let base = stack.start >> SPAN_LOG2 << SPAN_LOG2;
        let words = (stack.end - base)
            .div_ceil(1 << SPAN_LOG2)
            .next_power_of_two();
        let words_log2 = words.ilog2();
        StackTable {
            at: memory.allocate(words_log2),
            words_log2,
            base,
        }
    }

    /// Gives the memory back.
    pub fn destroy(self, memory: &mut TableMemory) {
        memory.release(self.at, self.words_log2);
    }

    /// Makes the words of a range inside the stack writable, or not.
    pub fn set(&self, memory: &mut TableMemory, range: &Range<u64>, writable: bool) {
        let mut address = range.start;
        while address < range.end {
            let block = address >> SPAN_LOG2 << SPAN_LOG2;
            let end = range.end.min(block + (1 << SPAN_LOG2));
            let first = (address - block) / 4;
            let count = (end - address) / 4;
            let mask = ((u64::MAX >> (64 - count)) << first) as u32;
            let at = self.word(block);
            let old = memory.read(at);
            let new = if writable { old | mask } else { old & !mask };
            if new != old {
                memory.write(at, new);
            }
            address = end;
        }
    }

    /// What the hardware finds for an address inside the stack: read-write words and read-only ones.
    pub fn look_up(&self, memory: &TableMemory, address: u64, walk: &mut Walk) -> MemoryBlock {
        let base = address >> SPAN_LOG2 << SPAN_LOG2;
        let at = self.word(base);
        walk.load(at);
        let bits = memory.peek(at);
        let perms = (0..PARTS).map(|part| {
            let perm = if bits >> part & 1 == 1 {
                Perm::ReadWrite
            } else {
                Perm::Read
            };
            perm.bits() << (2 * part)
        });
        MemoryBlock {
            base,
            size_log2: SPAN_LOG2,
            parts_log2: PARTS.ilog2(),
            perms: perms.sum(),
        }
    }

    fn word(&self, address: u64) -> u32 {
        let index = (address - self.base) >> SPAN_LOG2;
        debug_assert!(index < 1 << self.words_log2);
        self.at + index as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_bit_a_word() {
        let mut memory = TableMemory::new();
        let table = StackTable::new(&mut memory, &(0x1040..0x3000));
        table.set(&mut memory, &(0x10f8..0x1188), true);
        table.set(&mut memory, &(0x1100..0x1104), false);
        for word in (0x1040u64..0x3000).step_by(4) {
            let mut walk = Walk::default();
            let block = table.look_up(&memory, word, &mut walk);
            let writable = (0x10f8..0x1188).contains(&word) && word != 0x1100;
            let expected = if writable {
                Perm::ReadWrite
            } else {
                Perm::Read
            };
            assert_eq!(block.perm_at(word), expected, "{word:#x}");
            assert_eq!(walk.loads().len(), 1);
        }
    }
}
