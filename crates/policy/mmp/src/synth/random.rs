//! Random numbers that are the same everywhere and for ever: SplitMix64.

/// A generator.
#[derive(Clone, Debug)]
pub(super) struct Random {
    state: u64,
}

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Random { state: seed }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// Below `bound`, which is not 0. The bias of the remainder is far below what any figure shows.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Below `bound`, and small more often than large: the fourth power of a number between 0 and 1. Half
    /// of all choices fall on a sixteenth of the places, as in programs, where few places are hot.
    pub(super) fn hot(&mut self, bound: u64) -> u64 {
        let place = self.fraction().powi(4) * bound as f64;
        (place as u64).min(bound - 1)
    }

    fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// True with this probability.
    pub(super) fn chance(&mut self, probability: f64) -> bool {
        self.fraction() < probability
    }
}
