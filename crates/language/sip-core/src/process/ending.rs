//! The ways to the end of a process, and what is done then.

use super::exit::{Cause, Exit};
use super::record::{self, Process};
use super::tree;
use crate::decide;
use crate::hooks;
use crate::owners;
use crate::thread::here;
use crate::thread::worker::{Request, SharedWorker, Worker};
use crate::thread::workers;
use crate::wait;

/// On the home worker: the end that was asked for.
pub(crate) fn end_asked(home: &Worker, index: u32) {
    let doomed = |process: &&Process| process.alive.get() && process.is_doomed();
    if let Some(process) = record::place(index).filter(doomed) {
        end_now(home, process, Cause::Killed.into());
    }
}

/// On the home worker: a process ends, with all that is its own.
pub(crate) fn end_now(home: &Worker, process: &'static Process, exit: Exit) {
    home.end_threads(process);
    bury(process, exit);
}

/// On the home worker, when the last thread has stopped: everything else of the process goes.
pub(super) fn bury(process: &'static Process, exit: Exit) {
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

fn home_of(process: &Process) -> Option<&'static SharedWorker> {
    workers::all().get(usize::from(process.home()))
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
