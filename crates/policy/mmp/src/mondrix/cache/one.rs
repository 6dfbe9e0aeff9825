//! One set-associative cache with least-recently-used replacement.

use crate::config::{CacheConfig, ConfigError};

/// Nothing in this way. No line has this number: addresses are at most 2^60.
const EMPTY: u64 = u64::MAX;

/// The "gate present" bit is set: the hardware does not know of this line that it has no gates.
pub const GATES_UNKNOWN: u32 = u32::MAX;

/// One cache. The ways of a set stand in the order of their last use. So the first is the most
/// recent and the last the victim.
#[derive(Clone, Debug)]
pub struct Cache {
    lines: Vec<u64>,
    /// For each way the domain for which the line is known to have no gates.
    without_gates: Vec<u32>,
    ways: usize,
    set_mask: u64,
    line_log2: u32,
    accesses: u64,
    misses: u64,
}

impl Cache {
    /// An empty cache.
    pub fn new(config: &CacheConfig, line_bytes: u64) -> Result<Self, ConfigError> {
        let ways = u64::from(config.ways);
        let sets = config.sets(line_bytes)?;
        Ok(Cache {
            lines: vec![EMPTY; (sets * ways) as usize],
            without_gates: vec![GATES_UNKNOWN; (sets * ways) as usize],
            ways: ways as usize,
            set_mask: sets - 1,
            line_log2: line_bytes.ilog2(),
            accesses: 0,
            misses: 0,
        })
    }

    /// Brings the line of an address to the front of its set; whether it was there.
    #[inline]
    pub fn access(&mut self, address: u64) -> bool {
        self.accesses += 1;
        let line = address >> self.line_log2;
        let first = (line & self.set_mask) as usize * self.ways;
        if self.lines[first] == line {
            return true;
        }
        self.access_behind(first, line)
    }

    fn access_behind(&mut self, first: usize, line: u64) -> bool {
        let set = &mut self.lines[first..first + self.ways];
        let gates = &mut self.without_gates[first..first + self.ways];
        let found = set.iter().position(|&other| other == line);
        let until = found.unwrap_or(set.len() - 1);
        let known = found.map_or(GATES_UNKNOWN, |way| gates[way]);
        // By hand: a set is a few words, for which the library's rotation is a detour.
        for way in (0..until).rev() {
            set[way + 1] = set[way];
            gates[way + 1] = gates[way];
        }
        set[0] = line;
        gates[0] = known;
        self.misses += u64::from(found.is_none());
        found.is_some()
    }

    /// Whether the line of an address is here and known to hold no gates for a domain.
    #[inline]
    pub fn known_without_gates(&self, address: u64, domain: u32) -> bool {
        let first = self.first_way(address);
        let line = address >> self.line_log2;
        (first..first + self.ways)
            .any(|way| self.lines[way] == line && self.without_gates[way] == domain)
    }

    /// Clears the "gate present" bit of a line for a domain, if the line is here.
    pub fn note_without_gates(&mut self, address: u64, domain: u32) {
        self.set_gates(address, domain);
    }

    /// Sets the "gate present" bit of a line again, if it is here.
    pub fn forget_gates(&mut self, address: u64) {
        self.set_gates(address, GATES_UNKNOWN);
    }

    fn set_gates(&mut self, address: u64, value: u32) {
        let line = address >> self.line_log2;
        let first = self.first_way(address);
        for way in first..first + self.ways {
            if self.lines[way] == line {
                self.without_gates[way] = value;
            }
        }
    }

    /// Accesses so far.
    pub fn accesses(&self) -> u64 {
        self.accesses
    }

    /// Misses so far.
    pub fn misses(&self) -> u64 {
        self.misses
    }

    #[inline]
    fn first_way(&self, address: u64) -> usize {
        (address >> self.line_log2 & self.set_mask) as usize * self.ways
    }
}
