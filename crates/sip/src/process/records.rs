//! Processes and their pages as the supervisor's domains and regions, so that one picture and one audit show
//! them with every other kind of domain.
//!
//! The kernel's own tables decide, since they are what the heaps work with; the supervisor judges what they
//! say. It refuses a page that two processes claim, and a page that lies outside.

use std::collections::HashMap;

use mullion_supervisor::{DomainId, Error, Family, Order, Permission, Range, Recorder, Supervisor};

use super::statistics::{Statistics, statistics};
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
}

/// The records of this moment: the host calls it while no process is being made or ended.
///
/// # Errors
/// The tables contradict themselves: the same page belongs to two processes.
pub fn records() -> Result<Records, Error> {
    let _host = as_host();
    let mut supervisor =
        Supervisor::with(Range::everything(), Recorder::new(), Family, Order::Strict);
    let root = DomainId::SUPERVISOR;
    let mut of = HashMap::<Owner, DomainId>::new();
    for (owner, start, bytes) in heap::runs() {
        let range = Range::bytes(start as u64, bytes as u64).map_err(Error::from)?;
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
    })
}
