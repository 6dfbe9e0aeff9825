//! Gates: what lies under an instruction, the gate table in memory, and the lookaside buffer over it (Mondrix,
//! section 2.2).

mod buffer;
mod table;

pub use buffer::{Glb, GlbCounts};
pub use table::GateTable;

/// What lies under an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateEntry {
    /// A call to here enters the domain.
    Switch {
        /// The domain's number.
        to: u16,
    },
    /// The return instruction here goes back to the caller's domain.
    Return,
}

#[cfg(test)]
mod tests;
