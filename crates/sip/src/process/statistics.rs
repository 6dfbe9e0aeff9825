//! What there is, for people who look.

use std::collections::HashMap;

use super::exit::Exit;
use super::record;
use super::tree;
use crate::critical::as_host;
use crate::exchange::{self, Share};
use crate::heap;
use crate::owner::Owner;

/// One process, at the moment of asking.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Statistics {
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
    /// Bytes of its heap, and the most that it may have.
    pub memory: (usize, usize),
    /// Bytes of the exchange heap that it holds or has sent without an answer, and the most that it may.
    pub exchange: Share,
    /// Messages that it has sent from ends of channels that it has closed since; [`survey`](super::survey) has the
    /// others.
    pub sent: u64,
    /// How it ended, if its parent has not asked yet.
    pub exit: Option<Exit>,
}

/// All processes, the dead included that nobody has asked after. For the host.
pub fn statistics() -> Vec<Statistics> {
    let _host = as_host();
    let mut memory = HashMap::<Owner, usize>::new();
    for (owner, _, bytes) in heap::runs() {
        *memory.entry(owner).or_default() += bytes;
    }
    let tree = tree::lock();
    let all = tree.all().filter_map(|node| {
        let owner = node.owner?;
        let process = record::place(owner.index())?;
        Some(Statistics {
            owner,
            parent: node.parent?,
            name: node.name,
            worker: process.home()?.index(),
            threads: process.thread_count(),
            memory: (memory.get(&owner).copied().unwrap_or(0), node.limits.memory),
            exchange: exchange::share(owner),
            sent: exchange::sent(owner),
            exit: node.exit,
        })
    });
    all.collect()
}
