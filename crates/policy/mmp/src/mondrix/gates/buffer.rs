//! The gate lookaside buffer.
//!
//! It holds gates, and all gates of a line or none: that a line is here says that every gate on it is known.

use super::GateEntry;

/// All gates of one line for one domain.
#[derive(Clone, Debug)]
struct LineGates {
    domain: u32,
    line: u64,
    gates: Vec<(u64, GateEntry)>,
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
    pub fn refill(&mut self, domain: u32, address: u64, gates: Vec<(u64, GateEntry)>) {
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
    pub fn gate(&self, domain: u32, address: u64) -> Option<GateEntry> {
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
