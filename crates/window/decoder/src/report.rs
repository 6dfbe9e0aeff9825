//! Collects violations, no more than asked for.

/// The lowest violations by address. They arrive in ascending order within a
/// phase, so keeping the first of each phase keeps the first of all.
#[derive(Debug)]
pub struct Report<Violation> {
    limit: usize,
    violations: Vec<Violation>,
    phase: usize,
    truncated: bool,
}

impl<Violation: Ord> Report<Violation> {
    /// At most `limit` of them.
    #[must_use]
    pub const fn new(limit: usize) -> Self {
        Self {
            limit,
            violations: Vec::new(),
            phase: 0,
            truncated: false,
        }
    }

    /// Adds a violation, unless this phase has enough.
    pub fn add(&mut self, violation: impl FnOnce() -> Violation) {
        if self.phase < self.limit {
            self.violations.push(violation());
        } else {
            self.truncated = true;
        }
        self.phase += 1;
    }

    /// Addresses start again.
    pub fn next_phase(&mut self) {
        self.phase = 0;
    }

    /// The violations in ascending order, and whether there are more.
    #[must_use]
    pub fn finish(mut self) -> (Vec<Violation>, bool) {
        self.violations.sort();
        self.truncated |= self.violations.len() > self.limit;
        self.violations.truncate(self.limit);
        (self.violations, self.truncated)
    }
}
