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
    pub worker_begins: Option<fn()>,
    /// A process begins, with these limits. None of its threads has run.
    pub process_begins: Option<fn(Owner, &Limits)>,
    /// A process has ended, and every [`Teardown`](crate::owner::Teardown) function has been called for it. Its heap is
    /// still its own.
    pub process_ended: Option<fn(Owner)>,
    /// The worker was asked for a survey of its processes.
    pub survey: Option<fn(&'static Worker)>,
}

impl Hooks {
    /// Nothing is done.
    pub const NONE: Hooks = Hooks {
        worker_begins: None,
        process_begins: None,
        process_ended: None,
        survey: None,
    };
}

type Begins = fn(Owner, &Limits);

/// The hooks of all parts, each kind in the order of the parts.
#[derive(Default)]
pub(crate) struct Registered {
    worker_begins: Box<[fn()]>,
    process_begins: Box<[Begins]>,
    process_ended: Box<[fn(Owner)]>,
    survey: Box<[fn(&'static Worker)]>,
}

__state!(OnceLock<Registered> = OnceLock::new());

/// Has the hooks called from now on. A start that has failed half-way may come again, with the same ones.
pub(crate) fn register(parts: &[Hooks]) {
    state().get_or_init(|| Registered {
        worker_begins: parts.iter().filter_map(|part| part.worker_begins).collect(),
        process_begins: parts
            .iter()
            .filter_map(|part| part.process_begins)
            .collect(),
        process_ended: parts.iter().filter_map(|part| part.process_ended).collect(),
        survey: parts.iter().filter_map(|part| part.survey).collect(),
    });
}

pub(crate) fn worker_begins() {
    if let Some(all) = state().get() {
        all.worker_begins.iter().for_each(|hook| hook());
    }
}

pub(crate) fn process_begins(owner: Owner, limits: &Limits) {
    if let Some(all) = state().get() {
        all.process_begins
            .iter()
            .for_each(|hook| hook(owner, limits));
    }
}

pub(crate) fn process_ended(owner: Owner) {
    if let Some(all) = state().get() {
        all.process_ended.iter().for_each(|hook| hook(owner));
    }
}

pub(crate) fn survey(worker: &'static Worker) {
    if let Some(all) = state().get() {
        all.survey.iter().for_each(|hook| hook(worker));
    }
}
