//! Objects of the host's that a module may pass: it has made them, or was given them.

use super::ledger::State;
use super::{Answer, Walled, lock};
use crate::deeds;
use crate::frame::Frame;
use crate::pools::GOING;

impl Walled {
    /// The module may pass an object from now on, as long as the pool lives; for ever if there is none.
    pub(crate) fn know(
        &'static self,
        frame: &Frame,
        pool: Option<u64>,
        object: u64,
        kind: u8,
    ) -> Answer<()> {
        if object == 0 {
            return Ok(());
        }
        let note = |state: &mut State| {
            if kind == b'X' {
                let mut acquired = lock(&self.acquired);
                acquired.retain(|(known, _)| *known != object);
                acquired.push((object, crate::backends::here()));
                self.deeds.add(deeds::BACKENDS);
            }
            if state.objects.insert(object, kind).is_none()
                && let Some(ledger) = pool.and_then(|pool| state.ledgers.get_mut(&pool))
            {
                ledger.objects.push(object);
            }
            Ok(())
        };
        match pool {
            Some(pool) => self.with(frame, pool, note),
            None => note(&mut lock(&self.state)),
        }
    }

    /// It has an object no more; whether it was there.
    pub(crate) fn forget_object(&self, object: u64) -> bool {
        lock(&self.state).objects.remove(&object).is_some()
    }

    /// A pool of the module's is about to go; whether it was there.
    pub(crate) fn going(&self, pool: u64) -> bool {
        lock(&self.state).objects.insert(pool, GOING).is_some()
    }

    /// Whether the module has made or was given an object.
    pub(crate) fn knows(&self, object: u64, kind: u8) -> bool {
        lock(&self.state).objects.get(&object) == Some(&kind)
    }

    /// Requests or connections that the module has made.
    pub(crate) fn made(&self, kind: u8) -> Vec<u64> {
        let state = lock(&self.state);
        let made = state.objects.iter().filter(|(_, known)| **known == kind);
        made.map(|(r, _)| *r).collect()
    }
}
