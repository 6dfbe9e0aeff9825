//! What a run measured: cycles, crossings, counters, and the paper's ratios of them.

use crate::config::Config;
use crate::gates::GlbCounts;
use crate::machine::MachineRefusal;
use crate::plb::PlbCounts;
use crate::table::memory::Traffic;
use serde::Serialize;

/// Where the cycles went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cycles {
    /// The program's instructions.
    pub instructions: u64,
    /// The program's cache misses, those included that protection's own traffic caused.
    pub stalls: u64,
    /// Refills of the protection lookaside buffer, with their stalls.
    pub plb: u64,
    /// Refills of the gate lookaside buffer, with their stalls.
    pub glb: u64,
    /// Cross-domain calls and returns, with their stalls.
    pub crossing: u64,
    /// The supervisor's top half.
    pub top: u64,
    /// The supervisor's bottom half: table reads and writes with their stalls, and flushes.
    pub bottom: u64,
    /// Nothing ran.
    pub idle: u64,
}

impl Cycles {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.busy().saturating_add(self.idle)
    }

    /// All but idle ones.
    pub fn busy(&self) -> u64 {
        self.instructions
            + self.stalls
            + self.plb
            + self.glb
            + self.crossing
            + self.top
            + self.bottom
    }
}

/// Cross-domain calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Crossings {
    /// Calls through switch gates.
    pub calls: u64,
    /// Those that changed the domain.
    pub to_other: u64,
    /// Returns through return gates.
    pub returns: u64,
    /// The most entries that a cross-domain call stack had.
    pub deepest: u64,
    /// Switches between threads.
    pub switches: u64,
}

/// What a run measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Measurement {
    /// Events of the trace.
    pub events: u64,
    /// Where the cycles went.
    pub cycles: Cycles,
    /// Cycles of the same program without protection, if that was modelled.
    pub plain_cycles: Option<u64>,
    /// Cross-domain calls.
    pub crossings: Crossings,
    /// The protection lookaside buffer.
    pub plb: PlbCounts,
    /// The gate lookaside buffer.
    pub glb: GlbCounts,
    /// Level-one instruction cache: accesses, misses.
    pub instruction_cache: [u64; 2],
    /// Level-one data cache: accesses, misses.
    pub data_cache: [u64; 2],
    /// Level-two cache: accesses, misses.
    pub unified_cache: [u64; 2],
    /// Calls to the supervisor, refused ones included.
    pub supervisor_calls: u64,
    /// Ranges that the bottom half wrote.
    pub table_writes: u64,
    /// The tables' memory, in words of four bytes.
    pub tables: Traffic,
    /// Words that domains may touch at the end only because granules are coarser than words.
    pub exposed_words: u64,
    /// Regions that the supervisor keeps apart at the end.
    pub regions: u64,
    /// Accesses that were refused.
    pub refused_accesses: u64,
    /// Calls that were refused.
    pub refused_calls: u64,
    /// The first of them, in full.
    pub refusals: Vec<MachineRefusal>,
    /// The machine.
    pub config: Config,
}

impl Measurement {
    /// Slowdown over the machine without protection (Table 5, "Cyc"), as a fraction.
    pub fn slowdown(&self) -> Option<f64> {
        let plain = self.plain_cycles?;
        Some(ratio(self.cycles.total(), plain) - 1.0)
    }

    /// Cycles of a kind as a fraction of the machine without protection (Table 5, "Mbot" and "Mtop"), or of
    /// this machine if that was not modelled.
    pub fn share(&self, cycles: u64) -> f64 {
        ratio(cycles, self.plain_cycles.unwrap_or(self.cycles.total()))
    }

    /// What remains of the slowdown (Table 5, "Kern").
    pub fn kernel(&self) -> Option<f64> {
        let supervisor = self.share(self.cycles.bottom) + self.share(self.cycles.top);
        Some(self.slowdown()? - supervisor)
    }

    /// Fraction of all time in cross-domain calls and returns (Table 6, "XD").
    pub fn crossing_time(&self) -> f64 {
        ratio(self.cycles.crossing, self.cycles.total())
    }

    /// Cycles that were not idle for each cross-domain call (Table 6, "Cy/Ca").
    pub fn cycles_per_call(&self) -> Option<f64> {
        (self.crossings.calls > 0).then(|| ratio(self.cycles.busy(), self.crossings.calls))
    }

    /// Fraction of cross-domain calls that a domain made to itself (Table 6, "Self").
    pub fn to_self(&self) -> Option<f64> {
        let calls = self.crossings.calls;
        (calls > 0).then(|| ratio(calls - self.crossings.to_other, calls))
    }

    /// Fraction of all time in refills (Table 8, "PLB time").
    pub fn plb_time(&self) -> f64 {
        ratio(self.cycles.plb, self.cycles.total())
    }

    /// Misses for each look-up (Table 8, "PLB mr").
    pub fn plb_miss_rate(&self) -> f64 {
        ratio(self.plb.misses, self.plb.lookups)
    }

    /// Fraction of all time in refills of the gate lookaside buffer, which the paper does not report.
    pub fn glb_time(&self) -> f64 {
        ratio(self.cycles.glb, self.cycles.total())
    }

    /// Misses for each look-up of the gate lookaside buffer.
    pub fn glb_miss_rate(&self) -> f64 {
        ratio(self.glb.misses, self.glb.lookups)
    }

    /// Bytes in tables at their peak.
    pub fn table_bytes(&self) -> u64 {
        self.tables.peak * 4
    }
}

/// A quotient that is 0 where there is nothing to divide by.
pub(crate) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}
