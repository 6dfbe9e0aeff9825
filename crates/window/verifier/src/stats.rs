//! What the linear pass counted.

use mullion_abi::{GATE_BUILTIN_END, GATE_FIRST_IMPORT};

/// Counts over all executable segments. They describe; nothing relies on them,
/// except on [`Stats::gs`], [`Stats::x87`] and [`Stats::mxcsr`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Instructions, as far as they were decoded.
    pub instructions: u64,
    /// Labels: possible targets of indirect branches.
    pub labels: u64,
    /// Indirect calls and jumps.
    pub indirect: u64,
    /// Accesses of form 1, `%gs:` with 32-bit addressing: all of them, reads that need not be confined
    /// and those of label checks included. See [`crate::Verified::needs_gs_base`].
    pub gs: u64,
    /// Accesses of form 2, `disp(%r14,%rN)`.
    pub offset: u64,
    /// Accesses of form 3, through a window pointer.
    pub pointer: u64,
    /// Accesses of form 4, through `%r15`.
    pub stack: u64,
    /// Accesses of form 5, relative to `%rip`.
    pub rip: u64,
    /// Reads that nothing confines (`write-call` only, and not through `%gs`).
    pub reads_unconfined: u64,
    /// String instructions.
    pub strings: u64,
    /// Some instruction uses x87 state. Without one, x87 control and stack are at a gate as they were at entry.
    pub x87: bool,
    /// Some instruction reads or writes the SSE control word. Without one, its masks and modes are as they
    /// were at entry, and what else is in it is not seen.
    pub mxcsr: bool,
    built_in: [u64; GATE_BUILTIN_END as usize],
    imports: Vec<u64>,
}

impl Stats {
    pub(crate) fn new(imports: usize) -> Self {
        Self {
            imports: vec![0; imports],
            ..Self::default()
        }
    }

    pub(crate) fn count_gate(&mut self, slot: u64) {
        let built_in = usize::try_from(slot)
            .ok()
            .and_then(|slot| self.built_in.get_mut(slot));
        let import = slot
            .checked_sub(GATE_FIRST_IMPORT)
            .and_then(|number| usize::try_from(number).ok());
        let import = import.and_then(|number| self.imports.get_mut(number));
        if let Some(count) = built_in.or(import) {
            *count += 1;
        }
    }

    /// Direct branches to the gate of each import, in the order of the imports.
    #[must_use]
    pub fn import_branches(&self) -> &[u64] {
        &self.imports
    }

    /// Direct branches to each built-in gate, by slot number.
    #[must_use]
    pub fn built_in_branches(&self) -> &[u64] {
        &self.built_in
    }
}
