//! Locks that a module has. A stopped call's locks are given back when the thread's outermost call of the module ends. Other
//! threads would wait for them for ever; so would other processes, if a lock is one that processes share.

use crate::apr;
use crate::backends::here;
use crate::call::{self, mediate};
use crate::deeds;
use crate::frame::Frame;
use crate::object::Kind;
use crate::walled::{Answer, Walled, lock};
use std::ffi::c_int;

/// A lock that a thread of the module has.
pub(crate) struct Locked {
    lock: u64,
    kind: Kind,
    thread: u64,
}

/// APR's function for a lock that the module may use.
fn act(frame: &Frame, name: &'static str, kind: Kind, lock: u64) -> Answer<c_int> {
    if !call::has(frame, kind, lock) {
        return Err(format!(
            "{name}: {lock:#x} is no lock that the module has made"
        ));
    }
    let real = apr::symbol(name).ok_or("the server does not have it")?;
    // SAFETY: it is APR's function, with a lock that this call holds.
    let real: extern "C" fn(u64) -> c_int = unsafe { std::mem::transmute(real) };
    Ok(real(lock))
}

fn begin(name: &'static str, kind: Kind, at: u64) -> u64 {
    mediate(|frame| {
        if crate::timed::has_locked(at) {
            return Ok(0);
        }
        let status = act(frame, name, kind, at)?;
        if status == 0 {
            frame.walled.deeds.add(deeds::LOCKED);
            lock(&frame.walled.locked).push(Locked {
                lock: at,
                kind,
                thread: here(),
            });
        }
        Ok(status as u32 as u64)
    })
}

fn end(name: &'static str, kind: Kind, at: u64) -> u64 {
    mediate(|frame| {
        // It is given back behind the timer's function.
        if crate::timed::has_locked(at) {
            return Ok(0);
        }
        let thread = here();
        let mut locked = lock(&frame.walled.locked);
        let is_it = |one: &Locked| one.lock == at && one.thread == thread;
        let found = locked.iter().rposition(is_it);
        let found = found.or_else(|| locked.iter().rposition(|one| one.lock == at));
        found.map(|found| locked.swap_remove(found));
        drop(locked);
        Ok(act(frame, name, kind, at)? as u32 as u64)
    })
}

/// The lock goes with its pool: another call may be about to take it.
fn destroy(name: &'static str, kind: Kind, at: u64) -> u64 {
    mediate(|frame| {
        let taken = frame.walled.take_object(at, kind);
        taken.map_err(|what| format!("{name}: {what}"))?;
        Ok(0)
    })
}

macro_rules! functions {
    ($($name:ident = $way:ident, $kind:ident;)*) => {
        $(pub(crate) extern "C" fn $name(lock: u64) -> u64 {
            $way(stringify!($name), Kind::$kind, lock)
        })*
    };
}

functions! {
    apr_thread_mutex_lock = begin, Lock;
    apr_thread_mutex_trylock = begin, Lock;
    apr_thread_mutex_unlock = end, Lock;
    apr_thread_mutex_destroy = destroy, Lock;
    apr_global_mutex_lock = begin, GlobalLock;
    apr_global_mutex_trylock = begin, GlobalLock;
    apr_global_mutex_unlock = end, GlobalLock;
    apr_global_mutex_destroy = destroy, GlobalLock;
}

impl Walled {
    /// Gives back what this thread has locked, at the end of its outermost call of a module that was stopped.
    #[cold]
    pub(crate) fn unlock_all(&'static self, frame: &Frame) {
        if !self.domain.is_ended() || frame.outer().is_some_and(|outer| outer.is_in(self)) {
            return;
        }
        let thread = here();
        let mut locked = lock(&self.locked);
        let (own, rest) = std::mem::take(&mut *locked)
            .into_iter()
            .partition(|one| one.thread == thread);
        *locked = rest;
        drop(locked);
        let own: Vec<Locked> = own;
        for one in own.iter().rev() {
            let name = match one.kind {
                Kind::GlobalLock => "apr_global_mutex_unlock",
                _ => "apr_thread_mutex_unlock",
            };
            // One that has gone with its pool, or is the request's own, is not known.
            if self.knows_or_shares(one.lock, one.kind)
                && let Err(why) = act(frame, name, one.kind, one.lock)
            {
                apr::log(0, &why);
            }
        }
    }
}
