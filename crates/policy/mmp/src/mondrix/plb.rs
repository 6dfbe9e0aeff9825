//! The protection lookaside buffer: a fully associative ternary memory of blocks of permissions.
//!
//! An entry's tag has "don't care" bits at its low end, so it answers for an aligned power-of-two range
//! (Mondrix, section 5.2.3). Its domain number keeps domains apart without a flush on a cross-domain
//! call. Entries of the stack write table carry a mark, because a process switch flushes exactly those.
//!
//! No two entries of a domain overlap: a refill first drops what lies inside the new block. So at most
//! one entry matches an address. A small direct-mapped *guess* of where it is can be checked against the
//! entry's own tag and gives exactly what a search gives, sooner.

use crate::access::{MachineAccess, Perm};
use crate::table::MemoryBlock;
use std::ops::Range;

/// The domain number of the stack write table's entries: of the running thread, whatever its domain.
pub const STACK: u32 = u32::MAX;

/// A domain number that no entry has.
const VACANT: u32 = u32::MAX - 1;

/// Slots of guesses: a power of two, well above the number of entries.
const GUESSES: usize = 1024;

/// One entry.
#[derive(Clone, Copy, Debug)]
struct Entry {
    base: u64,
    size_log2: u32,
    domain: u32,
    /// Sub-block size; a shift.
    part_log2: u32,
    /// For each sub-block one bit: read, write, execute.
    allowed: [u32; 3],
    /// When it was last used.
    stamp: u64,
}

impl Entry {
    const VACANT: Entry = Entry {
        base: 0,
        size_log2: 0,
        domain: VACANT,
        part_log2: 0,
        allowed: [0; 3],
        stamp: 0,
    };

    fn new(domain: u32, block: MemoryBlock) -> Entry {
        let mut allowed = [0; 3];
        for part in 0..1 << block.parts_log2 {
            let perm = Perm::from_bits(block.perms >> (2 * part));
            let accesses = [
                MachineAccess::Read,
                MachineAccess::Write,
                MachineAccess::Execute,
            ];
            for (bits, access) in allowed.iter_mut().zip(accesses) {
                *bits |= u32::from(perm.allows(access)) << part;
            }
        }
        Entry {
            base: block.base,
            size_log2: block.size_log2,
            domain,
            part_log2: block.size_log2 - block.parts_log2,
            allowed,
            stamp: 0,
        }
    }

    #[inline]
    fn answer(&self, address: u64, end: u64, access: MachineAccess) -> PlbAnswer {
        let block_end = self.base + (1 << self.size_log2);
        let last = end.min(block_end) - 1;
        let first_part = (address - self.base) >> self.part_log2;
        let last_part = (last - self.base) >> self.part_log2;
        let bits = match access {
            MachineAccess::Read => self.allowed[0],
            MachineAccess::Write => self.allowed[1],
            MachineAccess::Execute => self.allowed[2],
        };
        let wanted = (2u64 << (last_part - first_part)) - 1;
        PlbAnswer {
            allowed: u64::from(bits >> first_part) & wanted == wanted,
            end: block_end,
        }
    }

    #[inline]
    fn matches(&self, domain: u32, address: u64) -> bool {
        self.domain == domain && (address ^ self.base) >> self.size_log2 == 0
    }

    fn overlaps(&self, domain: u32, range: &Range<u64>) -> bool {
        self.domain == domain
            && self.base < range.end
            && self.base + (1 << self.size_log2) > range.start
    }
}

/// What was done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct PlbCounts {
    /// Look-ups: one for each instruction and each data access, one more where an access leaves a block.
    pub lookups: u64,
    /// Look-ups that found no entry.
    pub misses: u64,
    /// Entries dropped by flushes.
    pub flushed: u64,
    /// Flush operations: power-of-two ranges, and stack flushes.
    pub flushes: u64,
}

/// The buffer.
#[derive(Clone, Debug)]
pub struct Plb {
    entries: Vec<Entry>,
    guesses: Vec<u16>,
    clock: u64,
    counts: PlbCounts,
}

/// A found entry's answer for the bytes of it that an access touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlbAnswer {
    /// All of them are allowed.
    pub allowed: bool,
    /// The address behind the block.
    pub end: u64,
}

impl Plb {
    /// An empty buffer; at least one entry, at most 32768.
    pub fn new(entries: u32) -> Self {
        Plb {
            entries: vec![Entry::VACANT; entries.clamp(1, 1 << 15) as usize],
            guesses: vec![0; GUESSES],
            clock: 0,
            counts: PlbCounts::default(),
        }
    }

    /// The counters.
    pub fn counts(&self) -> PlbCounts {
        self.counts
    }

    /// Counts further look-ups that the same block answers: the other instructions of a straight line.
    #[inline]
    pub fn count_more(&mut self, lookups: u64) {
        self.counts.lookups += lookups;
    }

    /// Counts a look-up that missed because there is no buffer.
    pub fn count_absent(&mut self, lookups: u64) {
        self.counts.lookups += lookups;
        self.counts.misses += lookups;
    }

    /// Looks up the bytes from `address` to before `end`, as far as one block reaches.
    #[inline]
    pub fn look_up(
        &mut self,
        domain: u32,
        address: u64,
        end: u64,
        access: MachineAccess,
    ) -> Option<PlbAnswer> {
        self.counts.lookups += 1;
        self.clock += 1;
        let slot = guess_slot(domain, address);
        let mut index = usize::from(self.guesses[slot]);
        // A guess is an index that was valid when it was written; entries never become fewer.
        if !self.entries[index].matches(domain, address) {
            match self.search(domain, address) {
                Some(found) => {
                    self.guesses[slot] = found as u16;
                    index = found;
                }
                None => {
                    self.counts.misses += 1;
                    return None;
                }
            }
        }
        let clock = self.clock;
        let entry = &mut self.entries[index];
        entry.stamp = clock;
        Some(entry.answer(address, end, access))
    }

    #[inline(never)]
    fn search(&self, domain: u32, address: u64) -> Option<usize> {
        self.entries
            .iter()
            .position(|entry| entry.matches(domain, address))
    }

    /// Brings a block in, in the place of the least recently used entry. What it says of an access.
    pub fn refill(
        &mut self,
        domain: u32,
        block: MemoryBlock,
        address: u64,
        end: u64,
        access: MachineAccess,
    ) -> PlbAnswer {
        let entry = Entry::new(domain, block);
        let block_range = block.base..block.base + (1 << block.size_log2);
        for other in &mut self.entries {
            if other.overlaps(domain, &block_range) {
                *other = Entry::VACANT;
            }
        }
        // Vacant entries have stamp 0 and so go first.
        let victim = (0..self.entries.len())
            .min_by_key(|&index| self.entries[index].stamp)
            .unwrap_or(0);
        self.clock += 1;
        self.entries[victim] = Entry {
            stamp: self.clock,
            ..entry
        };
        self.guesses[guess_slot(domain, address)] = victim as u16;
        entry.answer(address, end, access)
    }

    /// Drops what a domain's entries say of a range. The hardware takes aligned power-of-two ranges, so
    /// this is as many operations as the range has such pieces.
    pub fn flush(&mut self, domain: u32, range: Range<u64>) -> u64 {
        for entry in &mut self.entries {
            if entry.overlaps(domain, &range) {
                *entry = Entry::VACANT;
                self.counts.flushed += 1;
            }
        }
        let operations = power_of_two_pieces(range);
        self.counts.flushes += operations;
        operations
    }

    /// Drops all entries of a domain number, such as [`STACK`].
    pub fn flush_all_of(&mut self, domain: u32) {
        for entry in &mut self.entries {
            if entry.domain == domain {
                *entry = Entry::VACANT;
                self.counts.flushed += 1;
            }
        }
        self.counts.flushes += 1;
    }
}

#[inline]
fn guess_slot(domain: u32, address: u64) -> usize {
    // Leaf blocks are 64 bytes in the format of the paper; a multiplication spreads domains.
    ((address >> 6) as usize ^ domain.wrapping_mul(0x9e3779b1) as usize >> 8) % GUESSES
}

/// What a block says of the bytes from `address` to before `end`, as far as it reaches: what a buffer
/// would, without one.
pub fn answer(block: MemoryBlock, address: u64, end: u64, access: MachineAccess) -> PlbAnswer {
    Entry::new(0, block).answer(address, end, access)
}

/// How many aligned power-of-two ranges make up a range.
pub fn power_of_two_pieces(range: Range<u64>) -> u64 {
    let mut at = range.start;
    let mut pieces = 0;
    while at < range.end {
        let fits = (range.end - at).ilog2();
        let aligned = if at == 0 { 63 } else { at.trailing_zeros() };
        at += 1 << fits.min(aligned);
        pieces += 1;
    }
    pieces
}

#[cfg(test)]
#[path = "plb_tests.rs"]
mod tests;
