//! The memory that permission tables and gate tables live in, counted word by word.
//!
//! Everything that the supervisor's bottom half reads or writes, and everything that the hardware
//! loads on a miss, is a word in here. So sizes, write traffic and cache behaviour come from one
//! place. Allocations are powers of two, as the tables are.

use std::collections::HashMap;

/// One run of words that the bottom half touched, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    /// Index of the first word.
    pub word: u32,
    /// How many words, one after another.
    pub count: u32,
    /// Written (or read).
    pub write: bool,
}

/// What was used and done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Traffic {
    /// Words in allocated tables now.
    pub in_use: u64,
    /// The most words that were ever allocated at once.
    pub peak: u64,
    /// Words written by the bottom half.
    pub written: u64,
    /// Words read by the bottom half.
    pub read: u64,
    /// Tables allocated.
    pub tables: u64,
}

/// A growing array of 32-bit words with power-of-two allocation and full accounting.
#[derive(Debug, Default)]
pub struct TableMemory {
    words: Vec<u32>,
    free: [Vec<u32>; 32],
    /// How many parents a shared allocation has; absent means one.
    shared: HashMap<u32, u32>,
    traffic: Traffic,
    log: Vec<Touch>,
    logging: bool,
}

impl TableMemory {
    /// An empty memory that keeps no log of touches.
    pub fn new() -> Self {
        Self::default()
    }

    /// Turns the log of touches on, for a machine that charges them to its caches.
    pub fn with_log(mut self) -> Self {
        self.logging = true;
        self
    }

    /// The counters.
    pub fn traffic(&self) -> Traffic {
        self.traffic
    }

    /// What was touched since the log was last cleared.
    pub fn log(&self) -> &[Touch] {
        &self.log
    }

    /// Forgets the log.
    pub fn clear_log(&mut self) {
        self.log.clear();
    }

    /// A zeroed allocation of `1 << log2` words; the zeroing is write traffic.
    pub fn allocate(&mut self, log2: u32) -> u32 {
        let size = 1u32 << log2;
        let at = match self.free[log2 as usize].pop() {
            Some(at) => {
                self.words[at as usize..(at + size) as usize].fill(0);
                at
            }
            None => {
                // Natural alignment keeps a table from sharing cache lines with another; what it
                // skips serves smaller tables later.
                let at = self.words.len().next_multiple_of(size as usize);
                let mut gap = self.words.len();
                while gap < at {
                    let log2 = gap.trailing_zeros();
                    self.free[log2 as usize].push(gap as u32);
                    gap += 1 << log2;
                }
                self.words.resize(at + size as usize, 0);
                at as u32
            }
        };
        self.traffic.in_use += u64::from(size);
        self.traffic.peak = self.traffic.peak.max(self.traffic.in_use);
        self.traffic.tables += 1;
        self.touch(at, size, true);
        at
    }

    /// Gives an allocation back. The words are not touched.
    pub fn release(&mut self, at: u32, log2: u32) {
        debug_assert!(!self.shared.contains_key(&at));
        self.traffic.in_use -= 1 << log2;
        self.free[log2 as usize].push(at);
    }

    /// How many parents an allocation has.
    pub fn parents(&self, at: u32) -> u32 {
        self.shared.get(&at).copied().unwrap_or(1)
    }

    /// Sets how many parents an allocation has; at least one.
    pub fn set_parents(&mut self, at: u32, parents: u32) {
        if parents <= 1 {
            self.shared.remove(&at);
        } else {
            self.shared.insert(at, parents);
        }
    }

    /// Reads a word on behalf of the bottom half.
    pub fn read(&mut self, at: u32) -> u32 {
        self.touch(at, 1, false);
        self.words[at as usize]
    }

    /// Writes a word on behalf of the bottom half.
    pub fn write(&mut self, at: u32, value: u32) {
        self.touch(at, 1, true);
        self.words[at as usize] = value;
    }

    /// Reads a word without counting it: for the hardware, which counts its own loads, and for tests.
    #[inline]
    pub fn peek(&self, at: u32) -> u32 {
        self.words[at as usize]
    }

    /// Copies `count` words within the memory (the ranges may overlap), as reads and writes.
    pub fn copy(&mut self, from: u32, to: u32, count: u32) {
        if count == 0 {
            return;
        }
        self.words
            .copy_within(from as usize..(from + count) as usize, to as usize);
        self.touch(from, count, false);
        self.touch(to, count, true);
    }

    fn touch(&mut self, word: u32, count: u32, write: bool) {
        if write {
            self.traffic.written += u64::from(count);
        } else {
            self.traffic.read += u64::from(count);
        }
        if !self.logging {
            return;
        }
        match self.log.last_mut() {
            Some(last) if last.write == write && last.word + last.count == word => {
                last.count += count;
            }
            _ => self.log.push(Touch { word, count, write }),
        }
    }
}
