//! The decider that asks a supervisor. Only a host has it.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use mullion_supervisor::{
    Change, DomainId, Error, GroupId, Level, Mechanism, Order, Permission, Range, Snapshot,
    Supervisor,
};

use crate::inner::{CORE, EXCHANGE};
use mullion_sip_core::owner::Owner;
use mullion_sip_core::{ChannelEnd, Decider, Refused, Span};

/// A decider that asks a supervisor, which is the only holder of truth on who has which span.
///
/// The root is the kernel. It owns all memory and keeps the last say on it. A process is a domain that owns one word,
/// its place in the kernel's table, which it may not touch. A span of its heap, or a stack, is exported to it. A group has
/// the blocks of the exchange heap, and every process is a member. The kernel's record of an end of a channel stands for the
/// end: the process that has the end may read the record.
pub struct Supervised(Mutex<Inner>);

struct Inner {
    supervisor: Supervisor<Tables>,
    domains: HashMap<Owner, DomainId>,
    /// Which process has an end of a channel, by the end's place. The host's ends are not here.
    ends: HashMap<usize, DomainId>,
    exchange: Option<GroupId>,
}

/// What the allocators' tables enforce: they write after the answer.
#[derive(Clone, Copy, Debug)]
struct Tables;

impl Mechanism for Tables {
    fn write(&mut self, _: DomainId, _: Range, _: Permission) {}
    fn flush(&mut self, _: DomainId, _: Range) {}
}

const KERNEL: DomainId = DomainId::SUPERVISOR;
/// Bytes of a record that stand for it.
const WORD: u64 = 4;
/// What a process that has an end may do with the end's record.
const HAS: Permission = Permission::Read;

/// What the supervisor says to a question.
enum Judged {
    Allowed,
    Refused(Error),
}

impl From<Error> for Judged {
    fn from(error: Error) -> Judged {
        Judged::Refused(error)
    }
}

impl fmt::Debug for Supervised {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Supervised")
    }
}

impl Default for Supervised {
    fn default() -> Supervised {
        Supervised::new()
    }
}

impl Supervised {
    /// Of a supervisor of its own, with [`Order::Strict`].
    pub fn new() -> Supervised {
        let supervisor = Supervisor::with(
            Range::everything(),
            Tables,
            mullion_supervisor::Family,
            Order::Strict,
        );
        Supervised(Mutex::new(Inner {
            supervisor,
            domains: HashMap::new(),
            ends: HashMap::new(),
            exchange: None,
        }))
    }

    /// What the supervisor knows, and which domain is which process.
    pub fn snapshot(&self) -> (Snapshot, Vec<(DomainId, Owner)>) {
        let _host = CORE.as_host();
        let inner = self.inner();
        let domains = inner
            .domains
            .iter()
            .map(|(owner, domain)| (*domain, *owner));
        (inner.supervisor.snapshot(), domains.collect())
    }
}

impl Supervised {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// The group that has the exchange heap.
    fn exchange(&mut self) -> Result<GroupId, Error> {
        if let Some(group) = self.exchange {
            return Ok(group);
        }
        let (start, bytes) = EXCHANGE.blocks();
        let range = Range::bytes(start as u64, bytes as u64)?;
        let group = self.supervisor.group_create(&KERNEL)?;
        let all = Permission::ReadWrite;
        self.supervisor
            .mprot_export_up_to(&KERNEL, group, range, all, Level::None)?;
        self.exchange = Some(group);
        Ok(group)
    }

    /// The word that stands for a process.
    fn word(process: Owner) -> Result<Range, Error> {
        let place = CORE.place(process).ok_or(Error::Exhausted)?;
        Ok(Range::bytes(place as u64, 4)?)
    }

    fn domain(&self, process: Owner) -> Result<DomainId, Error> {
        let domain = self.domains.get(&process);
        domain.copied().ok_or(Error::Exhausted)
    }

    fn begin(&mut self, process: Owner) -> Result<(), Error> {
        let group = self.exchange()?;
        let place = Self::word(process)?;
        let domain = self
            .supervisor
            .pd_subdivide(&KERNEL, place, Permission::None)?;
        if let Err(refused) = self.supervisor.group_join(&domain, group) {
            self.supervisor.pd_free(&KERNEL, domain)?;
            return Err(refused);
        }
        self.domains.insert(process, domain);
        Ok(())
    }

    fn give(&mut self, process: Owner, span: Span) -> Result<(), Error> {
        let domain = self.domain(process)?;
        let range = Range::bytes(span.start as u64, span.bytes as u64)?;
        let all = Permission::ReadWrite;
        self.supervisor
            .mprot_export_up_to(&KERNEL, domain, range, all, Level::None)
    }

    /// Has the supervisor judge whether the end's record may be exported to the process, and changes nothing.
    fn may_have(&mut self, process: Owner, end: ChannelEnd) -> Result<(), Error> {
        let export = Change::Export {
            target: self.domain(process)?.into(),
            range: Range::bytes(end.record as u64, WORD)?,
            permission: HAS,
            export: Level::None,
        };
        let stop = || Err::<(), _>(Judged::Allowed);
        match self.supervisor.change_after(&[(KERNEL, export)], stop) {
            Err(Judged::Refused(error)) => Err(error),
            _ => Ok(()),
        }
    }

    fn came(&mut self, process: Owner, end: ChannelEnd) -> Result<(), Error> {
        let domain = self.domain(process)?;
        self.export(domain, end, HAS)?;
        self.ends.insert(end.place, domain);
        Ok(())
    }

    fn export(
        &mut self,
        domain: DomainId,
        end: ChannelEnd,
        permission: Permission,
    ) -> Result<(), Error> {
        let range = Range::bytes(end.record as u64, WORD)?;
        self.supervisor
            .mprot_export_up_to(&KERNEL, domain, range, permission, Level::None)
    }

    fn went(&mut self, end: ChannelEnd) -> Result<(), Error> {
        let Some(domain) = self.ends.remove(&end.place) else {
            return Ok(());
        };
        self.export(domain, end, Permission::None)
    }

    fn take_back(&mut self, span: Span) -> Result<(), Error> {
        let range = Range::bytes(span.start as u64, span.bytes as u64)?;
        self.supervisor.perm_free(&KERNEL, range)
    }
}

impl Decider for Supervised {
    fn begin(&self, process: Owner) -> Result<(), Refused> {
        self.inner().begin(process).map_err(|_| Refused)
    }

    fn give(&self, process: Owner, span: Span) -> Result<(), Refused> {
        self.inner().give(process, span).map_err(|_| Refused)
    }

    fn take_back(&self, _: Owner, span: Span) {
        let taken = self.inner().take_back(span);
        debug_assert_eq!(taken, Ok(()), "the kernel owns it");
    }

    fn may_have(&self, process: Owner, end: ChannelEnd) -> Result<(), Refused> {
        self.inner().may_have(process, end).map_err(|_| Refused)
    }

    fn came(&self, process: Owner, end: ChannelEnd) {
        let came = self.inner().came(process, end);
        debug_assert_eq!(came, Ok(()), "it was allowed, and the process lives");
    }

    fn went(&self, end: ChannelEnd) {
        let gone = self.inner().went(end);
        debug_assert_eq!(gone, Ok(()), "the kernel owns it");
    }

    fn end(&self, process: Owner) {
        let mut inner = self.inner();
        if let Some(domain) = inner.domains.remove(&process) {
            let ended = inner.supervisor.pd_free(&KERNEL, domain);
            debug_assert_eq!(ended, Ok(()), "it lives, and the kernel is its parent");
        }
    }
}
