//! Processes, their pages, stacks and blocks of the exchange heap as the supervisor's domains and regions. So one
//! picture and one audit show them with every other kind of domain.
//!
//! The kernel's own tables and lists decide, since they are what processes work with; the supervisor judges what they
//! say. It refuses a page that two processes claim, and a page that lies outside. Workers are asked one after another,
//! so a block that is sent meanwhile may be named by both: it is counted, and left out.

use std::collections::HashMap;
use std::hash::Hash;

use mullion_recorder::Recorder;
use mullion_supervisor::{
    DomainId, Error, Family, JoinPolicy, Mechanism, Order, Permission, Range, Supervisor,
};

use super::statistics::Statistics;
use super::survey::{self, Holding, Kind};
use crate::host::Host;
use crate::inner::CORE;
use mullion_sip_core::owner::Owner;

/// A supervisor that knows every process, with the domain of each.
#[derive(Debug)]
pub struct Records {
    /// The processes' domains own their pages, may read and write them, and nobody else may do anything. The root, which
    /// is the kernel, has the queues of channels and what waits in them.
    pub supervisor: Supervisor<Recorder>,
    /// Which domain is which process, by its number in the supervisor.
    pub domains: Vec<(DomainId, Statistics)>,
    /// What its regions are.
    pub memory: Memory,
}

/// What processes and the kernel hold for them.
#[derive(Debug, Default)]
pub struct Memory {
    /// In the order of their addresses.
    pub holdings: Vec<Holding>,
    /// Blocks that moved while they were looked at.
    pub moved: usize,
}

impl Host {
    /// The records of this moment, of the workers that answer within 200 ms: to be called while no process is being
    /// made or ended.
    ///
    /// # Errors
    /// The tables contradict themselves: the same page belongs to two processes.
    pub fn records(&self) -> Result<Records, Error> {
        let memory = memory();
        let mut supervisor =
            Supervisor::with(Range::everything(), Recorder::new(), Family, Order::Strict);
        let domains = memory.enter(self, &mut supervisor, DomainId::SUPERVISOR)?;
        Ok(Records {
            supervisor,
            domains,
            memory,
        })
    }

    /// Everything that processes hold in this moment, of the workers that answer within 200 ms.
    pub fn memory(&self) -> Memory {
        memory()
    }
}

fn memory() -> Memory {
    let surveyed = survey::holdings();
    let _host = CORE.as_host();
    let heaps = CORE
        .runs()
        .into_iter()
        .map(|(owner, start, bytes)| Holding {
            owner,
            start,
            bytes,
            kind: Kind::Heap,
        });
    let mut holdings: Vec<Holding> = surveyed.into_iter().chain(heaps).collect();
    holdings.sort_by_key(|holding| (holding.start, holding.kind));
    // Both ends name the queues.
    holdings.dedup_by_key(|holding| (holding.start, holding.kind, holding.owner));
    let (before, mut end) = (holdings.len(), 0);
    holdings.retain(|holding| {
        let free = holding.start >= end || matches!(holding.kind, Kind::Heap | Kind::Stack);
        end = end.max(holding.start + holding.bytes);
        free
    });
    Memory {
        moved: before - holdings.len(),
        holdings,
    }
}

impl Memory {
    /// Enters it all in the records of a supervisor, where `kernel` owns this address space: which domain is which process.
    ///
    /// # Errors
    /// As [`Host::records`].
    pub fn enter<M: Mechanism, P: JoinPolicy>(
        &self,
        host: &Host,
        supervisor: &mut Supervisor<M, P>,
        kernel: DomainId,
    ) -> Result<Vec<(DomainId, Statistics)>, Error> {
        let _host = CORE.as_host();
        let mut writer = RecordsWriter::new(supervisor, kernel);
        for holding in &self.holdings {
            let holder = (holding.owner != Owner::HOST).then_some(holding.owner);
            let range = Range::bytes(holding.start as u64, holding.bytes as u64)?;
            writer.enter(holder, range)?;
        }
        let known = |process: Statistics| Some((writer.domain(&process.owner)?, process));
        Ok(host.statistics().into_iter().filter_map(known).collect())
    }
}

/// Writes the records of a supervisor, to enter memory of an address space that a kernel owns.
#[derive(Debug)]
pub struct RecordsWriter<'a, K, M, P = Family> {
    supervisor: &'a mut Supervisor<M, P>,
    kernel: DomainId,
    domains: HashMap<K, DomainId>,
}

impl<'a, K: Eq + Hash, M: Mechanism, P: JoinPolicy> RecordsWriter<'a, K, M, P> {
    /// None of its processes is in them.
    pub fn new(
        supervisor: &'a mut Supervisor<M, P>,
        kernel: DomainId,
    ) -> RecordsWriter<'a, K, M, P> {
        RecordsWriter {
            supervisor,
            kernel,
            domains: HashMap::new(),
        }
    }

    /// A piece of memory that one process has, and may read and write, and nobody else; without a process, the kernel.
    ///
    /// # Errors
    /// It is somebody's already, or not the kernel's to give.
    pub fn enter(&mut self, holder: Option<K>, range: Range) -> Result<(), Error> {
        let all = Permission::ReadWrite;
        let Some(holder) = holder else {
            return self.supervisor.mprot(&self.kernel, range, all);
        };
        match self.domains.get(&holder) {
            None => {
                let domain = self.supervisor.pd_subdivide(&self.kernel, range, all)?;
                self.domains.insert(holder, domain);
            }
            Some(domain) => {
                self.supervisor.chown(&self.kernel, range, *domain)?;
                self.supervisor.mprot(domain, range, all)?;
            }
        }
        Ok(())
    }

    /// The domain of a process, once something of it has been entered.
    pub fn domain(&self, holder: &K) -> Option<DomainId> {
        self.domains.get(holder).copied()
    }
}
