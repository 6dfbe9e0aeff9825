//! What there is, for people who look.

use super::exit::Exit;
use super::record;
use super::tree::{self, Node};
use crate::critical::as_host;
use crate::exchange::{self, Share};
use crate::host::Host;
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
    /// Its children, those included that have ended and that nobody has asked after.
    pub children: u32,
    /// Names that it has bound.
    pub names: u32,
    /// Bytes of its heap, and the most that it may have.
    pub memory: (usize, usize),
    /// Bytes of the exchange heap that it holds or has sent without an answer, and the most that it may.
    pub exchange: Share,
    /// Messages that it has sent from ends of channels that it has closed since; `survey` has the
    /// others.
    pub sent: u64,
    /// How it ended, if its parent has not asked yet.
    pub exit: Option<Exit>,
}

impl Host {
    /// All processes, the dead included that nobody has asked after.
    pub fn statistics(&self) -> Vec<Statistics> {
        let _host = as_host();
        tree::lock().all().filter_map(of).collect()
    }
}

/// One process, if it is `asker` or a child of it.
pub(crate) fn statistics_of(which: Owner, asker: Owner) -> Option<Statistics> {
    let _host = as_host();
    let mut tree = tree::lock();
    let node = tree.of(which)?;
    (which == asker || node.parent == Some(asker))
        .then(|| of(node))
        .flatten()
}

fn of(node: &Node) -> Option<Statistics> {
    let owner = node.owner?;
    let process = record::place(owner.index())?;
    Some(Statistics {
        owner,
        parent: node.parent?,
        name: node.name,
        worker: process.home()?.index(),
        threads: process.thread_count(),
        children: node.children,
        names: node.names as u32,
        memory: (process.heap.bytes(), node.limits.memory),
        // The ledger has the limit only from when the process begins to when it ends.
        exchange: Share {
            limit: node.limits.exchange,
            ..exchange::share_of(owner)
        },
        sent: exchange::sent(owner),
        exit: node.exit,
    })
}
