//! The return of a task to its program: by then no module has left a lock closed in it, or something of it off.
//!
//! ```text
//!   module ──► gate ──► mediator ──► mutex_lock: noted ──► is the task told of already? ──► mullion_at_return
//!   the task goes back to its program, or a driver's function returns ──► what is noted still? ──► the module is ended
//! ```
//!
//! `mullion_later.c` is the other side of this.

use crate::kernel::Kernel;
use crate::{WALL, journal};
use mullion_word::runtime::Domain;
use std::collections::BTreeSet;
use std::ffi::{c_int, c_ulong, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Tasks that come to [`returned`] before they are in their programs again.
static TOLD: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());

/// `mullion_at_return`.
static AT_RETURN: AtomicUsize = AtomicUsize::new(0);

fn told() -> MutexGuard<'static, BTreeSet<u64>> {
    TOLD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Finds the other side. Without it nothing is looked at.
pub(crate) fn settle(kernel: Kernel, of: *mut c_void) {
    if AT_RETURN.load(Ordering::Relaxed) == 0 {
        let found = kernel.symbol("mullion_at_return", of);
        AT_RETURN.store(found.unwrap_or_default(), Ordering::Relaxed);
    }
}

/// A module has closed a lock in the task that runs, or switched something of it off.
pub(crate) fn watch(task: u64) {
    let function = AT_RETURN.load(Ordering::Relaxed);
    if function == 0 || !told().insert(task) {
        return;
    }
    // SAFETY: `settle` has the address from the kernel, of a function that takes this one.
    let function: extern "C" fn(extern "C" fn()) -> c_int =
        unsafe { std::mem::transmute(function) };
    if function(returned) != 0 {
        // A thread of the kernel, which has no program, or a task that ends.
        told().remove(&task);
    }
}

/// The running task is about to go back to its program, or is done with what was called later.
extern "C" fn returned() {
    let Some(wall) = WALL.get() else {
        return;
    };
    let task = journal::task();
    told().remove(&task);
    journal::forgets(task);
    for (id, thing) in journal::left(task) {
        let domains = wall.domains.lock().unwrap_or_else(PoisonError::into_inner);
        let found = domains.iter().find(|domain| domain.id().get() == id);
        let found = found.copied();
        drop(domains);
        if let Some(domain) = found {
            ends(&domain, thing);
        }
    }
}

fn ends(domain: &Domain, thing: &str) {
    if !domain.is_ended() {
        domain.end(format!("the call has returned, and has left {thing}"));
    }
}

fn left(number: c_ulong) -> Option<(Domain, Vec<&'static str>)> {
    let domain = WALL.get()?.domain(number)?;
    let all = journal::left(journal::task()).into_iter();
    let own = all.filter(|(id, _)| *id == domain.id().get());
    Some((domain, own.map(|(_, thing)| thing).collect()))
}

/// Behind the beginning of a module that is loaded again, in a thread of the kernel: whether it was ended, also for what it has left.
pub(crate) extern "C" fn is_over(number: c_ulong) -> c_int {
    returned();
    let domain = WALL.get().and_then(|wall| wall.domain(number));
    domain.is_some_and(|domain| domain.is_ended()) as c_int
}

/// How much a module has left in the task that runs, before a call of it.
pub(crate) extern "C" fn marks(number: c_ulong) -> c_ulong {
    left(number).map_or(0, |(_, things)| things.len() as c_ulong)
}

/// Behind the call. A thread of the kernel has no program to go back to.
pub(crate) extern "C" fn leaves(number: c_ulong, before: c_ulong) {
    if let Some((domain, things)) = left(number)
        && let Some(thing) = things.get(before as usize)
    {
        ends(&domain, thing);
    }
}
