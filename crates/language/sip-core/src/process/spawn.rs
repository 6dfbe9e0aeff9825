//! From a program to a process.

use std::sync::atomic::{AtomicUsize, Ordering};

use thiserror::Error;

use super::child::Child;
use super::ending::bury;
use super::exit::Cause;
use super::limits::Limits;
use super::panic;
use super::record::{self, Process};
use super::rights::Rights;
use super::tree::{self, Begin};
use crate::current;
use crate::decide;
use crate::hooks;
use crate::owners::Owner;
use crate::refused::Refused;
use crate::thread::fiber::NewFiber;
use crate::thread::here;
use crate::thread::stacks::{Stack, ThreadError};
use crate::thread::worker::{Request, SharedWorker, Worker};
use crate::thread::workers;

/// On which worker a process lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Home {
    /// Where its parent lives: the quickest to talk to. For the host: the next.
    #[default]
    Here,
    /// On the workers in turn.
    Next,
    /// On this one; counted from 0, modulo their number.
    Worker(usize),
}

/// Why there is no new process.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum SpawnError {
    /// The host has not started workers.
    #[error("no worker runs yet: call Host::start first")]
    NotStarted,
    /// The parent has as many children as its limit allows, or the table is full.
    #[error("the parent may have no more children, or the process table is full")]
    TooMany,
    /// No stack for its main thread.
    #[error("no memory for a stack")]
    NoStack,
    /// Whoever decides about the host's processes refuses.
    #[error("the decider of this host's processes refuses")]
    Refused,
    /// The caller is no process's thread, and its OS thread has not the power of the host.
    #[error("the caller is in no process, and has not the power of the host")]
    NoProcess,
}

/// What a new process runs first: its main function, and what that gets.
pub trait First: Send + 'static {
    /// Asks whether the process may have what it is to begin with. It has not begun.
    ///
    /// # Errors
    /// It may not: then it does not begin.
    fn ask(&self, owner: Owner) -> Result<(), Refused>;

    /// Runs it, as the process. What it holds is the process's from here on, so that it goes back even if the process is
    /// ended before it runs.
    fn into_main(self, owner: Owner) -> impl FnOnce() + 'static;
}

impl<F: First> Begin for F {
    fn fiber(self: Box<Self>, stack: Stack, owner: Owner) -> NewFiber {
        fiber(*self, stack, owner)
    }
}

/// On the home worker.
fn fiber(first: impl First, stack: Stack, owner: Owner) -> NewFiber {
    let main = first.into_main(owner);
    // SAFETY: the process lives on the worker whose OS thread calls, so its fiber is resumed here.
    unsafe { NewFiber::new(stack, move || panic::contain(main)) }
}

impl From<ThreadError> for SpawnError {
    fn from(error: ThreadError) -> SpawnError {
        match error {
            ThreadError::NoProcess => SpawnError::NoProcess,
            ThreadError::TooMany => SpawnError::TooMany,
            ThreadError::NoStack => SpawnError::NoStack,
            ThreadError::Refused(_) => SpawnError::Refused,
        }
    }
}

/// How a new process is to be.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// What it may use.
    pub limits: Limits,
    /// On which worker it lives.
    pub home: Home,
    /// Which names it may bind and look up; never more than its parent may.
    pub rights: Rights,
}

/// Makes a process that runs what `first` gives, as a child of the calling one. The caller is in a critical piece with
/// room for it, as the host.
#[inline]
pub(crate) fn spawn<F: First>(
    name: &'static str,
    first: impl FnOnce() -> F,
    options: &Options,
) -> Result<Child, SpawnError> {
    let parent = current::caller().ok_or(SpawnError::NoProcess)?;
    let here = here::worker();
    let home = choose(options.home, here).ok_or(SpawnError::NotStarted)?;
    let first = first();
    let mut tree = tree::lock();
    let rights = tree.rights(parent).narrowed(&options.rights);
    let (index, process) = tree.add(parent).ok_or(SpawnError::TooMany)?;
    let owner = process.prepare(index, home.index());
    if decide::begin(owner).is_err() {
        tree.remove(index);
        return Err(SpawnError::Refused);
    }
    if first.ask(owner).is_err() {
        decide::end(owner);
        tree.remove(index);
        return Err(SpawnError::Refused);
    }
    let node = tree.node(index);
    node.owner = Some(owner);
    node.name = name;
    node.limits = options.limits;
    node.rights = rights;
    let Some(home) = here.filter(|here| here.index() == home.index()) else {
        node.first = Some(Box::new(first));
        drop(tree);
        home.ask(Request::Start(index));
        return Ok(Child::new(owner));
    };
    let stack = match home.stack_for(owner) {
        Ok(stack) => stack,
        Err(error) => {
            decide::end(owner);
            tree.remove(index);
            return Err(error.into());
        }
    };
    drop(tree);
    open(home, process, &options.limits);
    run_main(home, process, fiber(first, stack, owner));
    Ok(Child::new(owner))
}

// Where the next process without a wish lives.
__state!(AtomicUsize = AtomicUsize::new(0));

/// On the home worker: the process gets its heap and its limits.
fn open(home: &'static Worker, process: &'static Process, limits: &Limits) {
    let owner = process.owner();
    process.heap.open(owner, limits.memory, &home.pool);
    hooks::process_begins(owner, limits);
    process.open(limits);
}

fn choose(home: Home, here: Option<&'static Worker>) -> Option<&'static SharedWorker> {
    let workers = workers::all();
    let number = match (home, here) {
        (Home::Here, Some(here)) => return Some(here.shared()),
        (Home::Worker(number), _) => number,
        _ => state().fetch_add(1, Ordering::Relaxed),
    };
    workers.get(number.checked_rem(workers.len())?)
}

/// On the home worker: a process that another OS thread has made begins.
pub(crate) fn begin(home: &'static Worker, index: u32) {
    let Some(process) = record::place(index) else {
        return;
    };
    let (first, limits) = {
        let mut tree = tree::lock();
        let node = tree.node(index);
        (node.first.take(), node.limits)
    };
    let Some(first) = first else { return };
    open(home, process, &limits);
    match home.stack_for(process.owner()) {
        Ok(stack) => run_main(home, process, first.fiber(stack, process.owner())),
        Err(_) => bury(process, Cause::Memory.into()),
    }
}

fn run_main(home: &'static Worker, process: &'static Process, fiber: NewFiber) {
    match home.add(process, fiber) {
        Ok(thread) => process.main.set(thread.slot.get() + 1),
        Err(fiber) => {
            home.take_back(process.owner(), fiber.into_stack());
            bury(process, Cause::Memory.into());
        }
    }
}
