//! Objects of the host's that a module may pass: it has made them, or was given them.

use super::ledger::State;
use super::{Answer, Walled, lock};
use crate::apr;
use crate::deeds;
use crate::frame::{self, Frame};
use crate::object::{Kind, Life, Sharing};
use crate::pools;
use std::sync::MutexGuard;

/// Who else may have APR or a library work with an object while a call does.
#[derive(Clone, Copy, PartialEq)]
enum Use {
    /// No other thread.
    Alone,
    /// Other threads that do not end it.
    Shared,
    Free,
}

impl Use {
    fn of(kind: Kind, object: u64) -> Use {
        match kind.sharing() {
            Sharing::One => Use::Alone,
            Sharing::Buffered if crate::own::is_buffered(object) => Use::Alone,
            Sharing::Buffered | Sharing::Closed => Use::Shared,
            Sharing::Many => Use::Free,
        }
    }
}

/// What a pool's cleanup has of an object that ends in front of the pool's memory.
#[repr(C)]
struct Ending {
    walled: &'static Walled,
    object: u64,
    kind: Kind,
    home: u64,
}

extern "C" fn ends(data: u64) -> i32 {
    // SAFETY: `Walled::watch` has put it into the pool's own memory.
    let ending = unsafe { &*(data as *const Ending) };
    let known = (ending.kind, ending.home);
    let mut state = lock(&ending.walled.state);
    if state.objects.get(&ending.object) == Some(&known) {
        state.remove(ending.object);
    }
    drop(state);
    if ending.kind == Kind::Allocator {
        // Other modules may have buckets of it, too: those that read from a connection of this one's.
        ending.walled.end_allocator(ending.object);
        let others = crate::load::all().into_iter();
        let others = others.filter(|other| !std::ptr::eq(*other, ending.walled));
        others.for_each(|other| other.end_allocator(ending.object));
    }
    if ending.kind == Kind::List {
        crate::pooled::goes(ending.object);
    }
    0
}

extern "C" fn nothing(_: u64) -> i32 {
    0
}

impl State {
    /// The module has an object no more, nor what is part of it; whether it was there.
    pub(super) fn remove(&mut self, object: u64) -> bool {
        let known = self.objects.remove(&object);
        self.parts.remove(&object);
        if matches!(known, Some((Kind::DbHandle, _))) {
            let parts = self.parts.iter().filter(|(_, whole)| **whole == object);
            let parts: Vec<u64> = parts.map(|(part, _)| *part).collect();
            for part in parts {
                self.parts.remove(&part);
                self.objects.remove(&part);
            }
        }
        known.is_some()
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
            if home != 0 && kind.life() == Life::Ends {
                // SAFETY: the module may use the pool, so it lives, and this thread has its turn.
                unsafe { self.watch(object, kind, home) };
            }
            if let Some(ledger) = state.ledgers.get_mut(home) {
                ledger.objects.push(object);
            }
            Ok(())
        };
        match pool {
            Some(pool) => self.with(frame, pool, note),
            None => note(&mut lock(&self.state)),
        }
    }

    /// An object that has just been made ends by a cleanup of its pool. This one is newer, so it runs before that. A cleanup of
    /// the module's that is older runs behind both, and does not find the object.
    ///
    /// # Safety
    /// The pool lives, and no other thread works with it.
    unsafe fn watch(&'static self, object: u64, kind: Kind, home: u64) {
        let ending = Ending {
            walled: self,
            object,
            kind,
            home,
        };
        // SAFETY: by the caller; the data lies in the pool's memory, which stays until the cleanup has run.
        unsafe {
            let at = apr::apr_palloc(home, size_of::<Ending>() as u64);
            (at as *mut Ending).write(ending);
            let (act, none) = (ends as *const () as usize, nothing as *const () as usize);
            apr::apr_pool_cleanup_register(home, at, act, none);
        }
    }

    /// A statement or a result is part of a connection to a database, and is gone when that is closed. A thing of a provider's has the
    /// function that has made it.
    pub(crate) fn know_part(&self, part: u64, whole: u64) {
        lock(&self.state).parts.insert(part, whole);
    }

    /// The connection to a database that something is part of.
    pub(crate) fn whole_of(&self, part: u64) -> Option<u64> {
        lock(&self.state).parts.get(&part).copied()
    }

    /// The pool that an object lives as long as; none if the module has not made it, and 0 if it stays.
    pub(crate) fn home_of(&self, object: u64) -> Option<u64> {
        let state = lock(&self.state);
        state.objects.get(&object).map(|(_, home)| *home)
    }

    /// It has an object no more; whether it was there.
    pub(crate) fn forget_object(&self, object: u64) -> bool {
        lock(&self.state).remove(object)
    }

    /// Takes an object from the module, for a function that ends it. No other call works with it then, until the call of the host
    /// returns. The answer is false for an object that is not ended now, and goes with its pool. Threads share it without a count,
    /// or another one works with it that only needs it to stay.
    ///
    /// # Errors
    /// The module has not made it, or it is for one thread, and another call works with it.
    pub(crate) fn take_object(&self, object: u64, kind: Kind) -> Answer<bool> {
        // A turn is the thread's: a call of this very thread may work with it, and have called the module back.
        let is_at_work = frame::now().is_some_and(|frame| frame.has_turn(object));
        let is_shared = match kind.sharing() {
            Sharing::Many => true,
            Sharing::Closed | Sharing::Buffered => {
                is_at_work || !self.knows_for(object, kind, |_, _| Use::Alone)
            }
            Sharing::One if is_at_work => {
                let kind = kind.name();
                return Err(format!("{object:#x} is a {kind} that a call works with"));
            }
            Sharing::One => false,
        };
        let how = if is_shared { Use::Free } else { Use::Alone };
        let is_had = self.knows_for(object, kind, |_, _| how) && self.forget_object(object);
        is_had.then_some(!is_shared).ok_or_else(|| {
            let kind = kind.name();
            format!(
                "{object:#x} is no {kind} that the module has made, or another call works with it"
            )
        })
    }

    /// A pool of the module's is about to go; whether it was there.
    pub(crate) fn going(&self, pool: u64) -> bool {
        let mut state = lock(&self.state);
        state.objects.insert(pool, (Kind::Going, 0)).is_some()
    }

    /// Whether the module has made or was given an object, and this thread's call may use it. It stays until the call of the host
    /// returns that asks, and no other thread uses it if it belongs to no request.
    pub(crate) fn knows(&self, object: u64, kind: Kind) -> bool {
        self.knows_for(object, kind, Use::of)
    }

    #[inline]
    fn knows_for(&self, object: u64, kind: Kind, how: impl Fn(Kind, u64) -> Use) -> bool {
        let state = lock(&self.state);
        match state.objects.get(&object) {
            Some((known, home)) if *known == kind => {
                let home = *home;
                self.is_usable(state, object, (kind, home), how(kind, object))
            }
            _ => false,
        }
    }

    /// Whether the newest call of this thread may use what lives as long as a pool.
    fn is_usable(
        &self,
        state: MutexGuard<'_, State>,
        object: u64,
        known: (Kind, u64),
        how: Use,
    ) -> bool {
        let (kind, home) = known;
        let Some(frame) = frame::now() else {
            return true;
        };
        let is_given = home == 0 || frame.is_given(home);
        if is_given && how == Use::Free {
            return true;
        }
        let is_bound = state
            .ledgers
            .get(home)
            .is_some_and(|ledger| ledger.is_bound);
        // Nothing is held, and nobody is waited for: it is there now.
        if is_given && is_bound {
            return true;
        }
        drop(state);
        if !is_given && !pools::hold(frame, home, is_bound) {
            return false;
        }
        if !is_bound {
            // Tables and hashes allocate from their pool, and so does all that works with a connection or its buckets.
            let turn = match kind {
                Kind::Table | Kind::Hash | Kind::Connection | Kind::Allocator if home != 0 => home,
                _ => object,
            };
            let taken = match how {
                Use::Alone => frame.take_turn(turn),
                Use::Shared => frame.share_turn(turn),
                Use::Free => Ok(()),
            };
            if taken.is_err() {
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
            let ledger = state.ledgers.get(home);
            known.map(|known| (*known, ledger.is_some_and(|ledger| ledger.is_bound)))
        };
        let Some((known, is_bound)) = is_here() else {
            return false;
        };
        // It may have gone before it was held.
        (frame.is_given(home) || pools::hold(frame, home, is_bound))
            && is_here().is_some_and(|(now, _)| now == known)
    }

    /// An object that the module has made, by its address.
    pub(crate) fn made_at(&self, kind: Kind, is_it: impl Fn(&u64) -> bool) -> Option<u64> {
        let state = lock(&self.state);
        let mut made = state.objects.iter().filter(|(_, known)| known.0 == kind);
        made.find(|(object, _)| is_it(object))
            .map(|(object, _)| *object)
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
