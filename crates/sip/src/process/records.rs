//! Processes, their pages, stacks and blocks of the exchange heap as the supervisor's domains and regions, so that
//! one picture and one audit show them with every other kind of domain.
//!
//! The kernel's own tables and lists decide, since they are what processes work with; the supervisor judges what they
//! say. It refuses a page that two processes claim, and a page that lies outside. Workers are asked one after another,
//! so a block that is sent meanwhile may be named by both: it is counted, and left out.

use std::collections::HashMap;

use mullion_supervisor::{DomainId, Error, Family, Order, Permission, Range, Recorder, Supervisor};

use super::statistics::{Statistics, statistics};
use super::survey::{self, Holding, Kind};
use crate::critical::as_host;
use crate::heap;
use crate::owner::Owner;

/// A supervisor that knows every process, with the domain of each.
#[derive(Debug)]
pub struct Records {
    /// The processes' domains own their pages, may read and write them, and nobody else may do anything.
    pub supervisor: Supervisor<Recorder>,
    /// Which domain is which process, by its number in the supervisor.
    pub domains: Vec<(DomainId, Statistics)>,
    /// What its regions are, in the order of their addresses.
    pub holdings: Vec<Holding>,
    /// Blocks that moved while they were looked at.
    pub moved: usize,
}

/// The records of this moment, of the workers that answer within 200 ms: the host calls it while no process is being
/// made or ended. What is shared by nature is in nobody's domain: the queues between two ends of a channel, and blocks
/// that are on their way.
///
/// # Errors
/// The tables contradict themselves: the same page belongs to two processes.
pub fn records() -> Result<Records, Error> {
    let (holdings, moved) = holdings();
    let _host = as_host();
    let mut supervisor =
        Supervisor::with(Range::everything(), Recorder::new(), Family, Order::Strict);
    let root = DomainId::SUPERVISOR;
    let mut of = HashMap::<Owner, DomainId>::new();
    for Holding {
        owner,
        start,
        bytes,
        ..
    } in &holdings
    {
        let (owner, range) = (*owner, Range::bytes(*start as u64, *bytes as u64)?);
        match of.get(&owner) {
            None => {
                of.insert(
                    owner,
                    supervisor.pd_subdivide(&root, range, Permission::ReadWrite)?,
                );
            }
            Some(domain) => {
                supervisor.chown(&root, range, *domain)?;
                supervisor.mprot(domain, range, Permission::ReadWrite)?;
            }
        }
    }
    let known = |process: Statistics| Some((*of.get(&process.owner)?, process));
    let domains = statistics().into_iter().filter_map(known).collect();
    Ok(Records {
        supervisor,
        domains,
        holdings,
        moved,
    })
}

/// Everything that processes hold, and how many blocks were left out.
fn holdings() -> (Vec<Holding>, usize) {
    let heaps = heap::runs()
        .into_iter()
        .map(|(owner, start, bytes)| Holding {
            owner,
            start,
            bytes,
            kind: Kind::Heap,
        });
    let mut all: Vec<Holding> = survey::holdings().into_iter().chain(heaps).collect();
    all.sort_by_key(|holding| (holding.start, holding.kind));
    let (before, mut end) = (all.len(), 0);
    all.retain(|holding| {
        let free = holding.start >= end || holding.kind != Kind::Exchange;
        end = end.max(holding.start + holding.bytes);
        free
    });
    let moved = before - all.len();
    (all, moved)
}
