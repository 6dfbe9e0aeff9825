//! What the whole heap holds.

use super::worker;

/// A count of blocks, exact while no thread takes or frees any.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Census {
    /// Blocks in use: owned by somebody, or in flight. A channel is three of them.
    pub in_use: u64,
    /// Blocks ever taken.
    pub ever: u64,
}

/// Counts, from any thread.
pub fn census() -> Census {
    let (taken, returned) = worker::totals();
    Census {
        in_use: taken.wrapping_sub(returned),
        ever: taken,
    }
}
