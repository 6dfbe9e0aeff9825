//! The two levels of caches, and what a miss in each costs.

use super::Cache;
use crate::config::{Caches, ConfigError};

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
