//! Set-associative caches with least-recently-used replacement, and the two-level hierarchy.

use crate::config::{CacheConfig, Caches, ConfigError};

/// Nothing in this way. No line has this number: addresses are at most 2^60.
const EMPTY: u64 = u64::MAX;

/// The "gate present" bit is set: the hardware does not know of this line that it has no gates.
pub const GATES_UNKNOWN: u32 = u32::MAX;

/// One cache. The ways of a set stand in the order of their last use, so that the first is the most
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
        let sets = config.bytes.checked_div(line_bytes * ways).unwrap_or(0);
        let fits = sets * line_bytes * ways == config.bytes;
        if !fits || !sets.is_power_of_two() || sets > 1 << 24 || ways > 64 {
            return Err(ConfigError::CacheShape {
                bytes: config.bytes,
                ways: config.ways,
                line: line_bytes,
            });
        }
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

/// Level-one instruction and data caches over a unified level two.
#[derive(Clone, Debug)]
pub struct Hierarchy {
    /// Level one, instructions.
    pub instruction: Cache,
    /// Level one, data.
    pub data: Cache,
    /// Level two, both.
    pub unified: Cache,
    line_bytes: u64,
    level1_miss: u64,
    level2_miss: u64,
}

impl Hierarchy {
    /// Empty caches.
    pub fn new(config: &Caches) -> Result<Self, ConfigError> {
        Ok(Hierarchy {
            instruction: Cache::new(&config.instruction, config.line_bytes)?,
            data: Cache::new(&config.data, config.line_bytes)?,
            unified: Cache::new(&config.unified, config.line_bytes)?,
            line_bytes: config.line_bytes,
            level1_miss: config.level1_miss_cycles,
            level2_miss: config.level2_miss_cycles,
        })
    }

    /// Bytes in a line.
    #[inline]
    pub fn line_bytes(&self) -> u64 {
        self.line_bytes
    }

    /// Fetches from the line of an address; the cycles that it stalls.
    #[inline]
    pub fn fetch(&mut self, address: u64) -> u64 {
        if self.instruction.access(address) {
            return 0;
        }
        self.behind_level1(address)
    }

    /// Loads from or stores to the line of an address; the cycles that it stalls.
    #[inline]
    pub fn data(&mut self, address: u64) -> u64 {
        if self.data.access(address) {
            return 0;
        }
        self.behind_level1(address)
    }

    /// Loads from or stores to some bytes, which may lie in two lines.
    #[inline]
    pub fn data_bytes(&mut self, address: u64, bytes: u64) -> u64 {
        let mut stall = self.data(address);
        let line = !(self.line_bytes - 1);
        let last = address + (bytes - 1);
        let mut next = (address & line) + self.line_bytes;
        while next <= last {
            stall += self.data(next);
            next += self.line_bytes;
        }
        stall
    }

    fn behind_level1(&mut self, address: u64) -> u64 {
        if self.unified.access(address) {
            self.level1_miss
        } else {
            self.level1_miss + self.level2_miss
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    /// Obviously right: for each set a queue of lines, the most recent in front.
    struct Naive {
        sets: Vec<VecDeque<u64>>,
        ways: usize,
    }

    impl Naive {
        fn access(&mut self, address: u64) -> bool {
            let line = address / 64;
            let index = (line % self.sets.len() as u64) as usize;
            let set = &mut self.sets[index];
            let hit = set.contains(&line);
            set.retain(|&other| other != line);
            set.push_front(line);
            set.truncate(self.ways);
            hit
        }
    }

    proptest! {
        #[test]
        fn agrees_with_queues(
            addresses in proptest::collection::vec(0u64..16384, 1..2000),
            ways in 1u32..5,
        ) {
            let config = CacheConfig { bytes: 64 * 8 * u64::from(ways), ways };
            let mut cache = Cache::new(&config, 64).unwrap();
            let mut naive = Naive { sets: vec![VecDeque::new(); 8], ways: ways as usize };
            for address in addresses {
                prop_assert_eq!(cache.access(address), naive.access(address));
            }
        }
    }

    #[test]
    fn the_papers_penalties_add_up() {
        let mut caches = Hierarchy::new(&Caches::default()).unwrap();
        assert_eq!(caches.data(0), 216, "misses both levels");
        assert_eq!(caches.data(63), 0, "the same line");
        assert_eq!(
            caches.fetch(0),
            16,
            "in level two, not in the other level one"
        );
        // Four more lines of the same set of 64 push the first out of a 4-way level one.
        for way in 1..=4 {
            assert_eq!(caches.data(way * 64 * 64), 216);
        }
        assert_eq!(caches.data(0), 16);
    }

    #[test]
    fn an_access_over_the_end_of_a_line_touches_both() {
        let mut caches = Hierarchy::new(&Caches::default()).unwrap();
        assert_eq!(caches.data_bytes(60, 8), 432);
        assert_eq!(caches.data_bytes(0, 128), 0);
    }

    #[test]
    fn a_line_forgets_its_gate_bit_when_it_is_evicted() {
        let mut cache = Cache::new(
            &CacheConfig {
                bytes: 128,
                ways: 2,
            },
            64,
        )
        .unwrap();
        cache.access(0);
        assert!(!cache.known_without_gates(0, 7));
        cache.note_without_gates(0, 7);
        cache.access(64);
        cache.access(0);
        assert!(cache.known_without_gates(0, 7));
        assert!(!cache.known_without_gates(0, 8));
        cache.access(64);
        cache.access(128);
        cache.access(0);
        assert!(!cache.known_without_gates(0, 7));
    }
}
