//! The log of decisions.

use crate::call::{Call, Reply};
use crate::error::Error;
use alloc::collections::VecDeque;
use mullion_terms::domain::DomainId;

/// One decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Counts from 0, over refusals too.
    pub number: u64,
    /// Who called.
    pub caller: DomainId,
    /// What it asked.
    pub call: Call,
    /// What it got.
    pub outcome: Result<Reply, Error>,
}

/// The latest decisions, at most as many as asked for; older ones make way.
#[derive(Clone, Debug)]
pub struct AuditLog {
    capacity: usize,
    next: u64,
    decisions: VecDeque<Decision>,
}

impl AuditLog {
    /// Keeps so many, but one at least.
    #[must_use]
    pub fn new(capacity: usize) -> AuditLog {
        AuditLog {
            capacity: capacity.max(1),
            next: 0,
            decisions: VecDeque::new(),
        }
    }

    /// Adds one.
    pub fn record(&mut self, caller: DomainId, call: Call, outcome: Result<Reply, Error>) {
        if self.decisions.len() == self.capacity {
            self.decisions.pop_front();
        }
        let number = self.next;
        self.next += 1;
        self.decisions.push_back(Decision {
            number,
            caller,
            call,
            outcome,
        });
    }

    /// The decisions kept, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Decision> {
        self.decisions.iter()
    }

    /// How many decisions there were, with those that made way.
    pub fn total(&self) -> u64 {
        self.next
    }
}
