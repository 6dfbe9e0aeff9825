//! A domain's gate table, in memory.
//!
//! It is an open-addressed hash table of entries in the form of Mondrix, Figure 3. That is the address, then the kind
//! in bit 31 and the destination in the low 16 bits. (For addresses wider than 32 bits an entry is four words: the
//! address takes two, one is unused.) It is hashed by the *line* of the address. So one walk finds all gates of an
//! instruction cache line. Where there are none, the line's "gate present" bit may be cleared (section 2.2).

use super::GateEntry;
use crate::table::Walk;
use crate::table::memory::TableMemory;
use std::collections::BTreeMap;

/// The two words of an empty slot: no gate is of kind "switch" with destination 0 (the bottom half
/// of the supervisor has no entry points) at address 0.
const FREE: u32 = 0;

/// Marks a used slot in the unused bits of Figure 3, so that address 0 can have a gate.
const USED: u32 = 1 << 16;

/// A domain's gate table.
#[derive(Clone, Debug)]
pub struct GateTable {
    at: u32,
    slots_log2: u32,
    wide: bool,
    line_log2: u32,
    /// The supervisor's own record, which is not hardware's and not counted.
    gates: BTreeMap<u64, GateEntry>,
}

/// Slots of a new table, base-two logarithm.
const FIRST_SLOTS_LOG2: u32 = 4;

impl GateTable {
    /// An empty table.
    pub fn new(memory: &mut TableMemory, address_bits: u32, line_bytes: u64) -> Self {
        let wide = address_bits > 32;
        GateTable {
            at: memory.allocate(FIRST_SLOTS_LOG2 + entry_words_log2(wide)),
            slots_log2: FIRST_SLOTS_LOG2,
            wide,
            line_log2: line_bytes.ilog2(),
            gates: BTreeMap::new(),
        }
    }

    /// Gives the memory back.
    pub fn destroy(self, memory: &mut TableMemory) {
        memory.release(self.at, self.slots_log2 + entry_words_log2(self.wide));
    }

    /// How many gates there are.
    pub fn len(&self) -> usize {
        self.gates.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.gates.is_empty()
    }

    /// The gates whose addresses lie in a range.
    pub fn in_range(&self, range: std::ops::Range<u64>) -> Vec<u64> {
        self.gates
            .range(range)
            .map(|(&address, _)| address)
            .collect()
    }

    /// Adds or replaces a gate.
    pub fn insert(&mut self, memory: &mut TableMemory, address: u64, gate: GateEntry) {
        let old = self.gates.insert(address, gate);
        if old == Some(gate) {
            return;
        }
        // At most half full: a walk ends at the first free slot.
        if 2 * self.gates.len() as u64 > 1 << self.slots_log2 {
            self.rebuild(memory, self.slots_log2 + 1);
            return;
        }
        let mut slot = self.home(address);
        loop {
            let word = self.word(slot);
            let (kind, at) = self.read(memory, word);
            if kind == FREE || at == address {
                self.write(memory, word, address, gate);
                return;
            }
            slot = self.next(slot);
        }
    }

    /// Removes a gate, if it is there. What stands behind it moves up, so that no walk breaks off.
    pub fn remove(&mut self, memory: &mut TableMemory, address: u64) {
        if self.gates.remove(&address).is_none() {
            return;
        }
        let mut hole = self.home(address);
        while self.read(memory, self.word(hole)).1 != address {
            hole = self.next(hole);
        }
        let mut slot = self.next(hole);
        loop {
            let word = self.word(slot);
            let (kind, other) = self.read(memory, word);
            if kind == FREE {
                break;
            }
            let home = self.home(other);
            let mask = (1 << self.slots_log2) - 1;
            if slot.wrapping_sub(home) & mask >= slot.wrapping_sub(hole) & mask {
                self.write_raw(memory, self.word(hole), other, kind);
                hole = slot;
            }
            slot = self.next(slot);
        }
        self.write_raw(memory, self.word(hole), 0, FREE);
    }

    /// All gates on the line of an address, as the hardware finds them, with the loads it makes.
    pub fn walk(
        &self,
        memory: &TableMemory,
        address: u64,
        walk: &mut Walk,
    ) -> Vec<(u64, GateEntry)> {
        let line = address >> self.line_log2;
        let mut found = Vec::new();
        let mut slot = self.home(address);
        loop {
            let word = self.word(slot);
            walk.load(word);
            let (kind, at) = self.peek(memory, word);
            if kind == FREE {
                return found;
            }
            if at >> self.line_log2 == line {
                walk.load(word + self.entry_words() - 1);
                found.push((at, decode(kind)));
            }
            slot = self.next(slot);
        }
    }

    fn rebuild(&mut self, memory: &mut TableMemory, slots_log2: u32) {
        let old = (self.at, self.slots_log2 + entry_words_log2(self.wide));
        self.at = memory.allocate(slots_log2 + entry_words_log2(self.wide));
        self.slots_log2 = slots_log2;
        memory.release(old.0, old.1);
        let gates: Vec<_> = self.gates.iter().map(|(&at, &gate)| (at, gate)).collect();
        for (address, gate) in gates {
            let mut slot = self.home(address);
            while self.read(memory, self.word(slot)).0 != FREE {
                slot = self.next(slot);
            }
            self.write(memory, self.word(slot), address, gate);
        }
    }

    fn home(&self, address: u64) -> u32 {
        let line = address >> self.line_log2;
        (line.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - self.slots_log2)) as u32
    }

    fn next(&self, slot: u32) -> u32 {
        (slot + 1) & ((1 << self.slots_log2) - 1)
    }

    fn entry_words(&self) -> u32 {
        1 << entry_words_log2(self.wide)
    }

    fn word(&self, slot: u32) -> u32 {
        self.at + (slot << entry_words_log2(self.wide))
    }

    fn read(&self, memory: &mut TableMemory, word: u32) -> (u32, u64) {
        for offset in 0..self.entry_words() {
            memory.read(word + offset);
        }
        self.peek(memory, word)
    }

    fn peek(&self, memory: &TableMemory, word: u32) -> (u32, u64) {
        let kind = memory.peek(word + self.entry_words() - 1);
        let low = u64::from(memory.peek(word));
        let high = if self.wide {
            u64::from(memory.peek(word + 1))
        } else {
            0
        };
        (kind, low | high << 32)
    }

    fn write(&self, memory: &mut TableMemory, word: u32, address: u64, gate: GateEntry) {
        let kind = match gate {
            GateEntry::Switch { to } => USED | u32::from(to),
            GateEntry::Return => USED | 1 << 31,
        };
        self.write_raw(memory, word, address, kind);
    }

    fn write_raw(&self, memory: &mut TableMemory, word: u32, address: u64, kind: u32) {
        memory.write(word, address as u32);
        if self.wide {
            memory.write(word + 1, (address >> 32) as u32);
        }
        memory.write(word + self.entry_words() - 1, kind);
    }
}

const fn entry_words_log2(wide: bool) -> u32 {
    if wide { 2 } else { 1 }
}

const fn decode(kind: u32) -> GateEntry {
    if kind >> 31 == 1 {
        GateEntry::Return
    } else {
        GateEntry::Switch { to: kind as u16 }
    }
}
