//! The sorted segment table: an array of segment starts with their permissions, searched by halving.
//!
//! ```text
//!   one word for addresses of 32 bits          two words for wider ones
//!   31                        2 1  0           | start, low 32 bits               |
//!  | start / 4 (30)            |perm|          | start, high bits | perm in 31..30 |
//! ```
//!
//! A segment reaches to the next one's start. The first entry starts at address 0. Neighbours differ.
//! A change in the middle moves everything behind it: cheap to hold, dear to change.

use super::geometry::{Geometry, GeometryError};
use super::memory::TableMemory;
use super::{MemoryBlock, PermissionTable, Root, Walk, largest_block};
use crate::access::Perm;
use std::ops::Range;

/// A sorted table over addresses of a given width.
#[derive(Clone, Copy, Debug)]
pub struct SortedTable {
    address_bits: u32,
}

/// Base-two logarithm of the words that a new table has.
const FIRST_CAPACITY_LOG2: u32 = 4;

impl SortedTable {
    /// A table over addresses of this many bits.
    pub fn new(address_bits: u32) -> Result<Self, GeometryError> {
        Geometry::new(address_bits, crate::access::WORD, 4)?;
        Ok(SortedTable { address_bits })
    }

    const fn entry_words(&self) -> u32 {
        if self.address_bits > 32 { 2 } else { 1 }
    }

    fn decode(&self, memory: &TableMemory, root: Root, index: u32) -> (u64, Perm) {
        let at = root.at + index * self.entry_words();
        let low = u64::from(memory.peek(at));
        if self.entry_words() == 1 {
            return (low & !3, Perm::from_bits(low));
        }
        let high = u64::from(memory.peek(at + 1));
        (
            low | (high & 0x3fff_ffff) << 32,
            Perm::from_bits(high >> 30),
        )
    }

    fn write(&self, memory: &mut TableMemory, root: Root, index: u32, start: u64, perm: Perm) {
        let at = root.at + index * self.entry_words();
        if self.entry_words() == 1 {
            memory.write(at, (start | perm.bits()) as u32);
        } else {
            memory.write(at, start as u32);
            memory.write(at + 1, (start >> 32 | perm.bits() << 30) as u32);
        }
    }

    /// The segment that holds an address, by halving; each probe is reported.
    fn find(
        &self,
        memory: &TableMemory,
        root: Root,
        address: u64,
        mut probe: impl FnMut(u32),
    ) -> u32 {
        let (mut low, mut high) = (0, root.count);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            probe(root.at + middle * self.entry_words());
            if self.decode(memory, root, middle).0 <= address {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    }

    fn find_counted(&self, memory: &mut TableMemory, root: Root, address: u64) -> u32 {
        let mut probes = Vec::new();
        let found = self.find(memory, root, address, |word| probes.push(word));
        for word in probes {
            memory.read(word);
        }
        memory.read(root.at + found * self.entry_words());
        found
    }

    /// Makes room for, or takes away, entries at an index.
    fn splice(&self, memory: &mut TableMemory, root: &mut Root, at: u32, remove: u32, add: u32) {
        let words = self.entry_words();
        let count = root.count - remove + add;
        let tail = root.count - at - remove;
        if count * words > 1 << root.capacity_log2 {
            let capacity_log2 = (count * words).next_power_of_two().ilog2();
            let new = memory.allocate(capacity_log2);
            memory.copy(root.at, new, root.count * words);
            memory.release(root.at, root.capacity_log2);
            root.at = new;
            root.capacity_log2 = capacity_log2;
        }
        if remove != add {
            let from = root.at + (at + remove) * words;
            memory.copy(from, root.at + (at + add) * words, tail * words);
        }
        root.count = count;
    }

    fn set_one(&self, memory: &mut TableMemory, root: &mut Root, range: &Range<u64>, perm: Perm) {
        let first = self.find_counted(memory, *root, range.start);
        let last = self.find_counted(memory, *root, range.end - 1);
        let (first_start, first_perm) = self.decode(memory, *root, first);
        let last_perm = self.decode(memory, *root, last).1;
        let last_end = if last + 1 < root.count {
            self.decode(memory, *root, last + 1).0
        } else {
            1 << self.address_bits
        };
        let mut new: Vec<(u64, Perm)> = Vec::with_capacity(3);
        let mut begin = first;
        if first_start < range.start {
            new.push((first_start, first_perm));
        } else if first > 0 {
            // The segment in front may become one with the range.
            begin = first - 1;
            new.push(self.decode(memory, *root, begin));
        }
        let mut push = |start, perm| {
            if new.last().is_none_or(|&(_, before)| before != perm) {
                new.push((start, perm));
            }
        };
        push(range.start, perm);
        let mut end = last;
        if range.end < last_end {
            push(range.end, last_perm);
        } else if last + 1 < root.count {
            end = last + 1;
            let (start, perm) = self.decode(memory, *root, end);
            push(start, perm);
        }
        let old: Vec<_> = (begin..=end)
            .map(|index| self.decode(memory, *root, index))
            .collect();
        self.splice(memory, root, begin, end + 1 - begin, new.len() as u32);
        for (offset, &(start, perm)) in new.iter().enumerate() {
            if old.len() != new.len() || old[offset] != (start, perm) {
                self.write(memory, *root, begin + offset as u32, start, perm);
            }
        }
    }
}

impl PermissionTable for SortedTable {
    fn create(&self, memory: &mut TableMemory) -> Root {
        let root = Root {
            at: memory.allocate(FIRST_CAPACITY_LOG2),
            count: 1,
            capacity_log2: FIRST_CAPACITY_LOG2,
        };
        self.write(memory, root, 0, 0, Perm::None);
        root
    }

    fn destroy(&self, memory: &mut TableMemory, root: Root) {
        memory.release(root.at, root.capacity_log2);
    }

    /// A sorted table cannot share a part of itself: a group's write is one write for each table.
    fn set(&self, memory: &mut TableMemory, roots: &mut [Root], range: Range<u64>, perm: Perm) {
        for root in roots {
            self.set_one(memory, root, &range, perm);
        }
    }

    fn look_up(
        &self,
        memory: &TableMemory,
        root: Root,
        address: u64,
        walk: &mut Walk,
    ) -> MemoryBlock {
        let found = self.find(memory, root, address, |word| walk.load(word));
        if root.count == 1 {
            walk.load(root.at);
        }
        let (start, perm) = self.decode(memory, root, found);
        let end = if found + 1 < root.count {
            self.decode(memory, root, found + 1).0
        } else {
            1 << self.address_bits
        };
        let (base, size_log2) = largest_block(&(start..end), address, self.address_bits);
        MemoryBlock::uniform(base, size_log2, perm)
    }
}

#[cfg(test)]
#[path = "sorted_tests.rs"]
mod tests;
