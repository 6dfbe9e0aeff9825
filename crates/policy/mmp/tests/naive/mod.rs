//! A second implementation of "is it allowed?": no tables, no buffers, no caches. The supervisor writes to
//! a recorder, and every word of every access is looked up there.

use mullion_mmp::event::{
    MAX_GATE_WORDS, MAX_STACK_BYTES, TraceEvent, TraceRequest, TraceSpan, TraceTarget,
};
use mullion_recorder::Recorder;
use mullion_supervisor::{
    CallStack, DomainId, Error, Family, GroupId, Order, Permission, Range, Subject, Supervisor,
    Thread,
};
use std::collections::BTreeMap;

/// The checker.
pub(crate) struct Naive {
    supervisor: Supervisor<Recorder>,
    threads: BTreeMap<u32, Thread>,
    running: Option<u32>,
    domains: BTreeMap<u32, DomainId>,
    groups: BTreeMap<u32, GroupId>,
    pub(crate) refused_accesses: u64,
    pub(crate) refused_calls: u64,
}

/// Why a request failed: the supervisor said so, or the trace's own numbers do not fit.
enum Why {
    Supervisor,
    Trace,
}

impl From<Error> for Why {
    fn from(_: Error) -> Why {
        Why::Supervisor
    }
}

struct At(DomainId, Option<DomainId>);

impl CallStack for At {
    fn current(&self) -> DomainId {
        self.0
    }

    fn previous(&self) -> Option<DomainId> {
        self.1
    }
}

impl Naive {
    pub(crate) fn new(address_bits: u32) -> Self {
        let space = Range::words(0, 1 << (address_bits - 2)).unwrap();
        Naive {
            supervisor: Supervisor::with(space, Recorder::new(), Family, Order::Paper),
            threads: BTreeMap::new(),
            running: None,
            domains: BTreeMap::from([(0, DomainId::SUPERVISOR)]),
            groups: BTreeMap::from([(0, GroupId::GLOBAL)]),
            refused_accesses: 0,
            refused_calls: 0,
        }
    }

    pub(crate) fn domain(&self) -> DomainId {
        match self.running {
            Some(thread) => self.threads[&thread].current(),
            None => DomainId::SUPERVISOR,
        }
    }

    pub(crate) fn step(&mut self, event: &TraceEvent) {
        match *event {
            TraceEvent::Fetch { address, bytes, .. } => self.access(address, bytes, Kind::Fetch),
            TraceEvent::Load { address, bytes } => self.access(address, bytes, Kind::Load),
            TraceEvent::Store { address, bytes } => self.access(address, bytes, Kind::Store),
            TraceEvent::Call {
                target,
                return_address,
                stack,
            } => self.call(target, return_address, stack),
            TraceEvent::Return { at, target } => self.back(at, target),
            TraceEvent::Switch { thread } => {
                if self.threads.contains_key(&thread) {
                    self.running = Some(thread);
                } else {
                    self.refused_calls += 1;
                }
            }
            TraceEvent::Idle { .. } => {}
            TraceEvent::Supervisor(request) => {
                if self.ask(&request).is_err() {
                    self.refused_calls += 1;
                }
            }
        }
    }

    fn held(&self, word: u64) -> Permission {
        let domain = self.domain();
        self.supervisor.mechanism().permission(domain, word)
    }

    fn access(&mut self, address: u64, bytes: u32, kind: Kind) {
        let domain = self.domain();
        if domain == DomainId::SUPERVISOR {
            return;
        }
        let last = (address + u64::from(bytes) - 1) / 4;
        let allowed = (address / 4..=last).all(|word| self.allowed(domain, word, kind));
        self.refused_accesses += u64::from(!allowed);
    }

    fn allowed(&self, domain: DomainId, word: u64, kind: Kind) -> bool {
        let thread = self.running.map(|thread| &self.threads[&thread]);
        let on_stack = thread.filter(|thread| thread.stack().holds(word));
        let held = self.held(word);
        match (kind, on_stack) {
            (Kind::Fetch, _) => held.executes(domain),
            (Kind::Load, Some(thread)) => thread.may_read(word),
            (Kind::Store, Some(thread)) => thread.may_write(word),
            (Kind::Load, None) => held.reads(domain),
            (Kind::Store, None) => held.writes(),
        }
    }

    fn call(&mut self, target: u64, return_address: u64, stack: u64) {
        if !matches!(self.held(target / 4), Permission::SwitchGate { .. }) {
            return;
        }
        let Some(thread) = self
            .running
            .and_then(|thread| self.threads.get_mut(&thread))
        else {
            return;
        };
        let called = self
            .supervisor
            .thread_call(thread, target / 4, return_address, stack / 4);
        self.refused_calls += u64::from(called.is_err());
    }

    fn back(&mut self, at: u64, target: u64) {
        if self.held(at / 4) != Permission::ReturnGate {
            return;
        }
        let Some(thread) = self
            .running
            .and_then(|thread| self.threads.get_mut(&thread))
        else {
            return;
        };
        let returned = self.supervisor.thread_return(thread, at / 4, target);
        self.refused_calls += u64::from(returned.is_err());
    }

    fn ask(&mut self, request: &TraceRequest) -> Result<(), Why> {
        let previous = self
            .running
            .and_then(|thread| self.threads[&thread].previous());
        let caller = At(self.domain(), previous);
        let supervisor = &mut self.supervisor;
        match *request {
            TraceRequest::Mprot { span, permission } => {
                let permission = gate(&self.domains, permission, span)?;
                supervisor.mprot(&caller, range(span)?, permission)?;
            }
            TraceRequest::MprotExport {
                to,
                span,
                permission,
                export,
            } => {
                let to: Subject = match to {
                    TraceTarget::Domain(domain) => {
                        (*self.domains.get(&domain).ok_or(Why::Trace)?).into()
                    }
                    TraceTarget::Group(group) => {
                        (*self.groups.get(&group).ok_or(Why::Trace)?).into()
                    }
                };
                let permission = gate(&self.domains, permission, span)?;
                supervisor.mprot_export_up_to(&caller, to, range(span)?, permission, export)?;
            }
            TraceRequest::Subdivide {
                child,
                span,
                permission,
            } => {
                if self.domains.contains_key(&child) {
                    return Err(Why::Trace);
                }
                let permission = gate(&self.domains, permission, span)?;
                let new = supervisor.pd_subdivide(&caller, range(span)?, permission)?;
                self.domains.insert(child, new);
            }
            TraceRequest::FreeDomain { domain } => {
                let domain = *self.domains.get(&domain).ok_or(Why::Trace)?;
                supervisor.pd_free(&caller, domain)?;
            }
            TraceRequest::PermAlloc { span } => supervisor.perm_alloc(&caller, range(span)?)?,
            TraceRequest::PermFree { span } => supervisor.perm_free(&caller, range(span)?)?,
            TraceRequest::Chown { to, span } => {
                let to = *self.domains.get(&to).ok_or(Why::Trace)?;
                supervisor.chown(&caller, range(span)?, to)?;
            }
            TraceRequest::CreateGroup { group } => {
                if self.groups.contains_key(&group) {
                    return Err(Why::Trace);
                }
                self.groups.insert(group, supervisor.group_create(&caller)?);
            }
            TraceRequest::FreeGroup { group } => {
                let group = *self.groups.get(&group).ok_or(Why::Trace)?;
                supervisor.group_free(&caller, group)?;
            }
            TraceRequest::JoinGroup { group } => {
                let group = *self.groups.get(&group).ok_or(Why::Trace)?;
                supervisor.group_join(&caller, group)?;
            }
            TraceRequest::LeaveGroup { group } => {
                let group = *self.groups.get(&group).ok_or(Why::Trace)?;
                supervisor.group_leave(&caller, group)?;
            }
            TraceRequest::CreateThread {
                thread,
                domain,
                stack,
            } => {
                if self.threads.contains_key(&thread) || stack.bytes > MAX_STACK_BYTES {
                    return Err(Why::Trace);
                }
                let domain = *self.domains.get(&domain).ok_or(Why::Trace)?;
                let mut above = domain;
                while above != caller.0 {
                    above = supervisor.parent(above)?.ok_or(Why::Trace)?;
                }
                let new = supervisor.thread_create(&domain, range(stack)?)?;
                self.threads.insert(thread, new);
            }
            TraceRequest::EndThread { thread } => {
                if self.running == Some(thread) {
                    return Err(Why::Trace);
                }
                let ended = self.threads.remove(&thread).ok_or(Why::Trace)?;
                supervisor.thread_end(ended);
            }
            TraceRequest::StackGrant { span, writable } => {
                let running = self.running.ok_or(Why::Trace)?;
                let thread = self.threads.get_mut(&running).ok_or(Why::Trace)?;
                supervisor.stack_grant(thread, range(span)?, writable)?;
            }
        }
        Ok(())
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Fetch,
    Load,
    Store,
}

fn range(span: TraceSpan) -> Result<Range, Error> {
    Range::bytes(span.address, span.bytes).map_err(Error::Range)
}

fn gate(
    domains: &BTreeMap<u32, DomainId>,
    permission: Permission,
    span: TraceSpan,
) -> Result<Permission, Why> {
    let is_gate = matches!(
        permission,
        Permission::SwitchGate { .. } | Permission::ReturnGate
    );
    if is_gate && span.bytes / 4 > MAX_GATE_WORDS {
        return Err(Why::Trace);
    }
    Ok(match permission {
        Permission::SwitchGate { to } => Permission::SwitchGate {
            to: *domains.get(&to.get()).ok_or(Why::Trace)?,
        },
        other => other,
    })
}
