//! What the core knows of each process, for people who look.

use super::exit::Exit;
use super::limits::Limits;
use super::record;
use super::tree::{self, Node};
use crate::critical::as_host;
use crate::owners::Owner;
use crate::thread::worker::Worker;

/// One process, at the moment of asking.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Life {
    /// Which process.
    pub owner: Owner,
    /// Whose child it is.
    pub parent: Owner,
    /// Its program's name.
    pub name: &'static str,
    /// The worker that it lives on.
    pub worker: u16,
    /// Its threads.
    pub threads: u32,
    /// Its children, those included that have ended and that nobody has asked after.
    pub children: u32,
    /// Bytes of its heap.
    pub memory: usize,
    /// What it may use.
    pub limits: Limits,
    /// How it ended, if its parent has not asked yet.
    pub exit: Option<Exit>,
}

/// All processes, the dead included that nobody has asked after. The caller is in a critical piece, as the host.
pub(crate) fn lives() -> Vec<Life> {
    tree::lock().all().filter_map(of).collect()
}

/// Shows one process, if it is `asker` or a child of it. In a critical piece, as the host, and with the family tree locked.
#[inline]
pub(crate) fn life<R>(which: Owner, asker: Owner, look: impl FnOnce(Life) -> R) -> Option<R> {
    let _host = as_host();
    let mut tree = tree::lock();
    let node = tree.of(which)?;
    let may_ask = which == asker || node.parent == Some(asker);
    may_ask.then(|| of(node)).flatten().map(look)
}

#[inline]
fn of(node: &Node) -> Option<Life> {
    let owner = node.owner?;
    let process = record::place(owner.index())?;
    Some(Life {
        owner,
        parent: node.parent?,
        name: node.name,
        worker: process.home(),
        threads: process.thread_count(),
        children: node.children,
        memory: process.heap.bytes(),
        limits: node.limits,
        exit: node.exit,
    })
}

/// The processes that live on the calling worker. The caller is in a critical piece, as the host.
pub(crate) fn living(home: &Worker) -> Vec<Owner> {
    let tree = tree::lock();
    let owners = tree
        .all()
        .filter(|node| node.exit.is_none())
        .filter_map(|node| node.owner);
    let here = |owner: &Owner| {
        record::place(owner.index())
            .is_some_and(|process| process.home() == home.index() && process.alive.get())
    };
    owners.filter(here).collect()
}
