//! Many changes as one: all of them, or none.

use crate::call::{Change, Reply};
use crate::holdings::HoldingId;
use crate::mechanism::Mechanism;
use crate::policy::JoinPolicy;
use crate::set::WordSet;
use crate::state::{Told, carry_out};
use crate::supervisor::Supervisor;
use alloc::vec::Vec;
use mullion_refusal::error::{BatchError, Error};
use mullion_terms::domain::DomainId;
use mullion_terms::range::Range;
use mullion_terms::subject::Subject;

/// What words had before the batch. The holdings are kept, so they stay as they were.
#[derive(Default)]
struct Before(Vec<(Range, HoldingId)>);

impl<M: Mechanism, P: JoinPolicy> Supervisor<M, P> {
    /// Makes changes, each with its caller, as if they were called one after the other. If one of them is refused,
    /// none is made. The mechanism hears of the outcome only: of each word once, if it differs at the end.
    pub fn change_all(&mut self, changes: &[(DomainId, Change)]) -> Result<(), BatchError> {
        let mut before = Before::default();
        let outcome = self.try_all(changes, &mut before);
        match outcome {
            Ok(()) => self.tell_batch(changes, &before),
            Err(_) => self.undo(&before),
        }
        for (_, id) in before.0 {
            self.state.regions.let_go(id);
        }
        match outcome {
            Ok(()) => {
                for (caller, change) in changes {
                    let _recorded = self.record(*caller, change.call(), Ok(Reply::Done));
                }
            }
            Err(BatchError { index, error }) => {
                let (caller, change) = changes[index];
                let _recorded = self.record(caller, change.call(), Err(error));
            }
        }
        outcome
    }

    /// Makes them one after the other, and tells nobody.
    fn try_all(
        &mut self,
        changes: &[(DomainId, Change)],
        before: &mut Before,
    ) -> Result<(), BatchError> {
        let (mut words, mut pieces, mut taking) = (0, 0, true);
        for (index, (caller, change)) in changes.iter().enumerate() {
            let plan = self.plan(*caller, *change);
            let plan = plan.map_err(|error| BatchError { index, error })?;
            let subject = match *change {
                Change::Own { .. } => Subject::Domain(*caller),
                Change::Export { target, .. } => target,
            };
            pieces += plan.count();
            taking &= change.is_taking();
            for (range, grant) in plan {
                words += range.count();
                let first = before.0.len();
                before.0.extend(self.state.regions.numbered(range));
                for (_, id) in &before.0[first..] {
                    self.state.regions.keep(*id);
                }
                self.state.set(range, subject, grant, &mut Told::nobody());
            }
        }
        let index = changes.len().saturating_sub(1);
        self.check_room(words, pieces, taking)
            .map_err(|error: Error| BatchError { index, error })
    }

    fn undo(&mut self, before: &Before) {
        for (range, id) in before.0.iter().rev() {
            let holding = self.state.regions.holding(*id).clone();
            self.state
                .change(*range, &mut Told::nobody(), |now| now.clone_from(&holding));
        }
    }

    fn tell_batch(&mut self, changes: &[(DomainId, Change)], before: &Before) {
        let mut told = Told::new::<M>();
        let mut seen = WordSet::default();
        for (range, id) in &before.0 {
            for first in seen.missing(*range) {
                self.state.compare(first, *id, &mut told);
            }
            seen.insert(*range);
        }
        let written = !told.writes.is_empty();
        carry_out(&self.state, &mut self.mechanism, told);
        if !written {
            return;
        }
        for (_, change) in changes {
            if let Change::Export {
                target: Subject::Group(group),
                range,
                permission,
                ..
            } = *change
            {
                self.hint(group, range, permission);
            }
        }
    }
}
