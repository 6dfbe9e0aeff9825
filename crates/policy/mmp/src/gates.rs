//! Gates: the table in memory and the lookaside buffer over it.
//!
//! The gate table of a domain is an open-addressed hash table of entries in the form of Mondrix,
//! Figure 3: the address, then the kind in bit 31 and the destination in the low 16 bits. (For addresses
//! wider than 32 bits an entry is four words: the address takes two, one is unused.) It is hashed by the
//! *line* of the address, so that one walk finds all gates of an instruction cache line, or finds that
//! there are none and that the line's "gate present" bit may be cleared (section 2.2).
//!
//! The buffer holds gates, and all gates of a line or none: that a line is here says that every gate on
//! it is known.

use crate::table::Walk;
use crate::table::memory::TableMemory;
use std::collections::BTreeMap;

/// What lies under an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// A call to here enters the domain.
    Switch {
        /// The domain's number.
        to: u16,
    },
    /// The return instruction here goes back to the caller's domain.
    Return,
}

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
    gates: BTreeMap<u64, Gate>,
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
    pub fn insert(&mut self, memory: &mut TableMemory, address: u64, gate: Gate) {
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
    pub fn walk(&self, memory: &TableMemory, address: u64, walk: &mut Walk) -> Vec<(u64, Gate)> {
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

    fn write(&self, memory: &mut TableMemory, word: u32, address: u64, gate: Gate) {
        let kind = match gate {
            Gate::Switch { to } => USED | u32::from(to),
            Gate::Return => USED | 1 << 31,
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

const fn decode(kind: u32) -> Gate {
    if kind >> 31 == 1 {
        Gate::Return
    } else {
        Gate::Switch { to: kind as u16 }
    }
}

/// All gates of one line for one domain.
#[derive(Clone, Debug)]
struct LineGates {
    domain: u32,
    line: u64,
    gates: Vec<(u64, Gate)>,
}

/// What was done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct GlbCounts {
    /// Look-ups: fetches from lines whose "gate present" bit is set.
    pub lookups: u64,
    /// Look-ups that walked the gate table.
    pub misses: u64,
}

/// The gate lookaside buffer.
#[derive(Clone, Debug)]
pub struct Glb {
    /// The most recently used line in front.
    lines: Vec<LineGates>,
    capacity: usize,
    line_log2: u32,
    counts: GlbCounts,
}

impl Glb {
    /// An empty buffer for so many gates.
    pub fn new(capacity: u32, line_bytes: u64) -> Self {
        Glb {
            lines: Vec::new(),
            capacity: capacity as usize,
            line_log2: line_bytes.ilog2(),
            counts: GlbCounts::default(),
        }
    }

    /// The counters.
    pub fn counts(&self) -> GlbCounts {
        self.counts
    }

    /// Whether the gates on the line of an address are known.
    pub fn look_up(&mut self, domain: u32, address: u64) -> bool {
        self.counts.lookups += 1;
        let line = address >> self.line_log2;
        let found = self
            .lines
            .iter()
            .position(|entry| entry.line == line && entry.domain == domain);
        match found {
            Some(index) => self.lines[..=index].rotate_right(1),
            None => self.counts.misses += 1,
        }
        found.is_some()
    }

    /// Brings a line's gates in. A line with more gates than the buffer has entries stays outside.
    pub fn refill(&mut self, domain: u32, address: u64, gates: Vec<(u64, Gate)>) {
        if gates.len() > self.capacity {
            return;
        }
        let mut held: usize = self.lines.iter().map(|entry| entry.gates.len()).sum();
        while held + gates.len() > self.capacity {
            match self.lines.pop() {
                Some(victim) => held -= victim.gates.len(),
                None => break,
            }
        }
        let line = address >> self.line_log2;
        self.lines.insert(
            0,
            LineGates {
                domain,
                line,
                gates,
            },
        );
    }

    /// The gate at an address, if its line is here.
    pub fn gate(&self, domain: u32, address: u64) -> Option<Gate> {
        let line = address >> self.line_log2;
        let entry = self
            .lines
            .iter()
            .find(|entry| entry.line == line && entry.domain == domain)?;
        let (_, gate) = entry.gates.iter().find(|(at, _)| *at == address)?;
        Some(*gate)
    }

    /// Forgets what a domain's gates on the lines of a range are.
    pub fn flush(&mut self, domain: u32, range: std::ops::Range<u64>) {
        let lines = range.start >> self.line_log2..=(range.end - 1) >> self.line_log2;
        self.lines
            .retain(|entry| entry.domain != domain || !lines.contains(&entry.line));
    }
}

#[cfg(test)]
#[path = "gates_tests.rs"]
mod tests;
