//! What crates above have done at the turns of a worker's and of a process's life.
//!
//! ```text
//!   worker's OS thread:  worker_begins -> events ... -> survey
//!   process:             process_begins -> runs -> Teardown functions -> process_ended -> heap goes back
//! ```
//! The core knows none of the crates above it. Each registers its hooks before workers start; a process that is
//! made then finds them all.

use std::sync::OnceLock;

use crate::owners::Owner;
use crate::process::Limits;
use crate::thread::worker::Worker;

/// The hooks of one part of a crate above. All run on the worker that they concern, in no process; none parks or panics.
#[derive(Clone, Copy, Debug)]
pub struct Hooks {
    /// A worker's OS thread begins. No process has run on it.
    pub worker_begins: fn(),
    /// A process begins, with these limits. None of its threads has run.
    pub process_begins: fn(Owner, &Limits),
    /// A process has ended, and every [`Teardown`](crate::owners::Teardown) function has been called for it. Its heap is
    /// still its own.
    pub process_ended: fn(Owner),
    /// The worker was asked for a survey of its processes.
    pub survey: fn(&'static Worker),
}

impl Hooks {
    /// Nothing is done.
    pub const NONE: Hooks = Hooks {
        worker_begins: || {},
        process_begins: |_, _| {},
        process_ended: |_| {},
        survey: |_| {},
    };
}

/// As many parts as can have hooks.
const PARTS: usize = 8;

/// The hooks that are registered, in order.
pub(crate) struct Registered([OnceLock<Hooks>; PARTS]);

impl Registered {
    pub(crate) const fn new() -> Registered {
        Registered([const { OnceLock::new() }; PARTS])
    }

    fn all(&self) -> impl Iterator<Item = &Hooks> {
        self.0.iter().map_while(OnceLock::get)
    }
}

__state!(Registered = Registered::new());

/// Has the hooks called from now on, in this order. A start that has failed half-way may come again, with the same ones.
///
/// # Panics
/// More than [`PARTS`] parts have hooks.
pub(crate) fn register(parts: &[Hooks]) {
    assert!(parts.len() <= PARTS, "at most {PARTS} parts have hooks");
    for (place, hooks) in state().0.iter().zip(parts) {
        let _ = place.set(*hooks);
    }
}

pub(crate) fn worker_begins() {
    state().all().for_each(|hooks| (hooks.worker_begins)());
}

pub(crate) fn process_begins(owner: Owner, limits: &Limits) {
    let all = state().all();
    all.for_each(|hooks| (hooks.process_begins)(owner, limits));
}

pub(crate) fn process_ended(owner: Owner) {
    let all = state().all();
    all.for_each(|hooks| (hooks.process_ended)(owner));
}

pub(crate) fn survey(worker: &'static Worker) {
    state().all().for_each(|hooks| (hooks.survey)(worker));
}
