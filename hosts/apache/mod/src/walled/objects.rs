//! Objects of the host's that a module may pass: it has made them, or was given them.

use super::ledger::State;
use super::{Answer, Walled, lock};
use crate::deeds;
use crate::frame::{self, Frame};
use crate::object::{Kind, Sharing};
use crate::pools;
use std::sync::MutexGuard;

/// Whether two threads must not have APR or a library work with an object.
fn is_for_one(kind: Kind, object: u64) -> bool {
    match kind.sharing() {
        Sharing::One => true,
        Sharing::Buffered => crate::own::is_buffered(object),
        Sharing::Many => false,
    }
}

impl Walled {
    /// The module may pass an object from now on, as long as the pool lives; for ever if there is none.
    pub(crate) fn know(
        &'static self,
        frame: &Frame,
        pool: Option<u64>,
        object: u64,
        kind: Kind,
    ) -> Answer<()> {
        if object == 0 {
            return Ok(());
        }
        let note = |state: &mut State| {
            if kind == Kind::Backend {
                let mut acquired = lock(&self.acquired);
                acquired.retain(|(known, _)| *known != object);
                acquired.push((object, crate::backends::here()));
                self.deeds.add(deeds::BACKENDS);
            }
            // What is known keeps the pool that it was made in.
            if state
                .objects
                .get(&object)
                .is_some_and(|(known, _)| *known == kind)
            {
                return Ok(());
            }
            let home = pool.unwrap_or(0);
            state.objects.insert(object, (kind, home));
            if let Some(ledger) = state.ledgers.get_mut(&home) {
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
        let mut state = lock(&self.state);
        state.objects.insert(pool, (Kind::Going, 0)).is_some()
    }

    /// Whether the module has made or was given an object, and this thread's call may use it. It stays until the call of the host
    /// returns that asks, and no other thread uses it if it belongs to no request.
    pub(crate) fn knows(&self, object: u64, kind: Kind) -> bool {
        let state = lock(&self.state);
        match state.objects.get(&object) {
            Some((known, home)) if *known == kind => {
                let home = *home;
                self.is_usable(state, object, (kind, home))
            }
            _ => false,
        }
    }

    /// Whether the newest call of this thread may use what lives as long as a pool.
    fn is_usable(&self, state: MutexGuard<'_, State>, object: u64, known: (Kind, u64)) -> bool {
        let (kind, home) = known;
        let Some(frame) = frame::now() else {
            return true;
        };
        let is_given = home == 0 || frame.is_given(home);
        let is_for_one = is_for_one(kind, object);
        if is_given && !is_for_one {
            return true;
        }
        let is_bound = state
            .ledgers
            .get(&home)
            .is_some_and(|ledger| ledger.is_bound);
        // Nothing is held, and nobody is waited for: it is there now.
        if is_given && is_bound {
            return true;
        }
        drop(state);
        if !is_given && !pools::hold(frame, home, is_bound) {
            return false;
        }
        if is_for_one && !is_bound {
            // Tables and hashes allocate from their pool.
            let turn = match kind {
                Kind::Table | Kind::Hash if home != 0 => home,
                _ => object,
            };
            if frame.take_turn(turn).is_err() {
                return false;
            }
        }
        // It may have gone before it was held.
        lock(&self.state).objects.get(&object) == Some(&known)
    }

    /// Whether the module has made an object, or was given it, that still lives.
    pub(crate) fn has_made(&self, object: u64, kind: Kind) -> bool {
        let state = lock(&self.state);
        let known = state.objects.get(&object);
        known.is_some_and(|(known, _)| *known == kind)
    }

    /// Objects that the module has made or was given, with the pools that they live as long as.
    pub(crate) fn all_made(&self) -> Vec<(u64, u64, Kind)> {
        let state = lock(&self.state);
        let made = state.objects.iter();
        let made = made.map(|(object, (kind, home))| (*object, *home, *kind));
        made.collect()
    }

    /// Whether an object that the module has made may be looked at by a call. Then its pool stays until what the call keeps is let go.
    pub(crate) fn keeps(&self, frame: &Frame, object: u64, home: u64) -> bool {
        let is_here = || {
            let state = lock(&self.state);
            let known = state.objects.get(&object);
            let ledger = state.ledgers.get(&home);
            known.map(|known| (*known, ledger.is_some_and(|ledger| ledger.is_bound)))
        };
        let Some((known, is_bound)) = is_here() else {
            return false;
        };
        // It may have gone before it was held.
        (frame.is_given(home) || pools::hold(frame, home, is_bound))
            && is_here().is_some_and(|(now, _)| now == known)
    }

    /// Requests or connections that the module has made, and that this thread's call may use.
    pub(crate) fn made(&self, kind: Kind) -> Vec<u64> {
        let state = lock(&self.state);
        let made = state.objects.iter().filter(|(_, known)| known.0 == kind);
        let made: Vec<u64> = made.map(|(object, _)| *object).collect();
        drop(state);
        let made = made.into_iter().filter(|object| self.knows(*object, kind));
        made.collect()
    }
}
