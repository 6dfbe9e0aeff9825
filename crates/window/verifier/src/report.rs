//! Collects violations, no more than asked for.

use crate::rule::Violation;

/// The lowest violations by address. They arrive in ascending order within a
/// phase, so keeping the first of each phase keeps the first of all.
pub(crate) struct Report {
    limit: usize,
    violations: Vec<Violation>,
    phase: usize,
    truncated: bool,
}

impl Report {
    pub(crate) const fn new(limit: usize) -> Self {
        Self {
            limit,
            violations: Vec::new(),
            phase: 0,
            truncated: false,
        }
    }

    /// Adds a violation, unless this phase has enough.
    pub(crate) fn add(&mut self, violation: impl FnOnce() -> Violation) {
        if self.phase < self.limit {
            self.violations.push(violation());
        } else {
            self.truncated = true;
        }
        self.phase += 1;
    }

    /// Addresses start again.
    pub(crate) fn next_phase(&mut self) {
        self.phase = 0;
    }

    /// The violations in ascending order, and whether there are more.
    pub(crate) fn finish(mut self) -> (Vec<Violation>, bool) {
        self.violations.sort();
        self.truncated |= self.violations.len() > self.limit;
        self.violations.truncate(self.limit);
        (self.violations, self.truncated)
    }
}
