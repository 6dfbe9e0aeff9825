//! What the linear pass counted.

/// Counts over all executable segments. They describe; nothing relies on them, except on [`Stats::x87`] and [`Stats::mxcsr`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Instructions, as far as they were decoded.
    pub instructions: u64,
    /// Labels: possible targets of indirect jumps within a function.
    pub labels: u64,
    /// Indirect calls and jumps.
    pub indirect: u64,
    /// Calls and jumps through slots.
    pub slots: u64,
    /// Checks.
    pub checks: u64,
    /// Accesses that rely on a check.
    pub checked: u64,
    /// Accesses to the data stack by constant displacements.
    pub stack: u64,
    /// Accesses relative to `%rip`.
    pub rip: u64,
    /// Reads that nothing checks (`write` only).
    pub free: u64,
    /// String instructions.
    pub strings: u64,
    /// Some instruction uses x87 state.
    pub x87: bool,
    /// Some instruction reads or writes the SSE control word.
    pub mxcsr: bool,
}
