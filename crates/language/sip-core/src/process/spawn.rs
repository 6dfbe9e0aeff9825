//! From a program to a process, and its end.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use thiserror::Error;

use super::exit::{Cause, Exit};
use super::limits::Limits;
use super::panic;
use super::record::{self, Process};
use super::rights::Rights;
use super::tree::{self, Begin};
use crate::critical::as_host;
use crate::current;
use crate::decide;
use crate::hooks;
use crate::owners::{self, Owner};
use crate::refused::Refused;
use crate::thread::fiber::NewFiber;
use crate::thread::here;
use crate::thread::stacks::{Stack, ThreadError};
use crate::thread::worker::{self, Request, Worker};
use crate::wait::{self, Waiter};

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
    #[error("whoever decides about this host's processes refuses")]
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
    if here.is_none_or(|here| here.index() != home.index()) {
        node.first = Some(Box::new(first));
        drop(tree);
        home.ask(Request::Start(index));
        return Ok(Child { owner });
    }
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
    Ok(Child { owner })
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

fn choose(home: Home, here: Option<&'static Worker>) -> Option<&'static Worker> {
    let workers = worker::all();
    let number = match (home, here) {
        (Home::Here, Some(here)) => return Some(here),
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

/// On the home worker: the end that was asked for.
pub(crate) fn end_asked(home: &Worker, index: u32) {
    let doomed = |process: &&Process| process.alive.get() && process.is_doomed();
    if let Some(process) = record::place(index).filter(doomed) {
        home.end(process, Cause::Killed.into());
    }
}

/// On the home worker, when the last thread has stopped: everything else of the process goes.
pub(crate) fn bury(process: &'static Process, exit: Exit) {
    let owner = process.owner();
    owners::tear_down(owner);
    hooks::process_ended(owner);
    decide::end(owner);
    process.heap.close();
    process.close();
    let mut tree = tree::lock();
    let index = owner.index();
    for child in tree.children(index) {
        orphan(&mut tree, child);
    }
    let node = tree.node(index);
    let looking = node.looking.take();
    let waiting = std::mem::take(&mut node.waiting);
    if node.detached {
        tree.remove(index);
    } else {
        node.exit = Some(exit);
    }
    drop(tree);
    looking.into_iter().chain(waiting).for_each(wait::unpark);
}

/// A child whose parent has ended: it ends too, and nobody asks how.
fn orphan(tree: &mut tree::Tree, index: u32) {
    let node = tree.node(index);
    if node.exit.is_some() {
        return tree.remove(index);
    }
    node.detached = true;
    tree.adopt(index);
    end(index);
}

fn home_of(process: &Process) -> Option<&'static Worker> {
    worker::all().get(usize::from(process.home()))
}

/// Has a living process ended. The caller holds the tree.
pub(super) fn end(index: u32) {
    let Some(process) = record::place(index) else {
        return;
    };
    process.doom();
    if let Some(home) = home_of(process) {
        home.ask(Request::End(index));
        if here::worker().is_none_or(|here| here.index() != home.index()) {
            home.interrupt();
        }
    }
}

/// Ends the calling process with a status. Nothing of it runs again, and nothing is dropped.
///
/// # Panics
/// In no process.
pub(crate) fn exit(status: u8) -> ! {
    demand_process();
    here::die(Cause::Exited(status))
}

/// Ends the calling process as something that it stands for has ended.
///
/// # Panics
/// In no process.
pub(crate) fn end_as(exit: Exit) -> ! {
    demand_process();
    if let Some(worker) = here::worker() {
        worker.set_message(exit.message);
    }
    here::die(exit.cause)
}

/// An end that was asked for in no process is a mistake of one thread, and not the program's end.
fn demand_process() {
    assert!(
        here::running().is_some(),
        "the caller is in no process, which alone could end"
    );
}

/// A process's child. Dropping it lets the child live on, with nobody to ask how it ended.
#[derive(Debug)]
#[must_use]
pub struct Child {
    owner: Owner,
}

impl Child {
    /// The process.
    pub fn owner(&self) -> Owner {
        self.owner
    }

    /// Ends it. It may run on for a moment, until its worker has got the message.
    pub fn kill(&self) {
        let _host = as_host();
        let mut tree = tree::lock();
        if tree.of(self.owner).is_some_and(|node| node.exit.is_none()) {
            end(self.owner.index());
        }
    }

    /// How it ended, if it has.
    pub fn try_wait(&self) -> Option<Exit> {
        self.look(None)
    }

    /// Waits for its end. Any number of threads may.
    pub fn wait(&self) -> Exit {
        loop {
            match self.ended(true) {
                Some(exit) => return exit,
                None => wait::park(),
            }
        }
    }

    /// [`Child::wait`], but not beyond `deadline`.
    pub fn wait_until(&self, deadline: Instant) -> Option<Exit> {
        loop {
            let waits = Instant::now() < deadline;
            match self.ended(waits) {
                None if waits => wait::park_until(deadline),
                found => return found,
            }
        }
    }

    /// How it ended, if it has; else whether the calling thread waits for it from now on.
    fn ended(&self, waits: bool) -> Option<Exit> {
        let me = wait::current();
        let _host = as_host();
        let mut tree = tree::lock();
        let node = tree.of(self.owner)?;
        if node.exit.is_none() {
            node.waiting.retain(|waiter| *waiter != me);
            node.waiting.extend(waits.then_some(me));
        }
        node.exit
    }

    /// How it ended, if it has; else `waiter` is woken when it does, in the place of who was to be before.
    pub fn look(&self, waiter: Option<Waiter>) -> Option<Exit> {
        let _host = as_host();
        let mut tree = tree::lock();
        let node = tree.of(self.owner)?;
        if node.exit.is_none() && waiter.is_some() {
            node.looking = waiter;
        }
        node.exit
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _host = as_host();
        let mut tree = tree::lock();
        if let Some(node) = tree.of(self.owner) {
            node.detached = true;
            node.looking = None;
            node.waiting.clear();
            if node.exit.is_some() {
                tree.remove(self.owner.index());
            }
        }
    }
}
