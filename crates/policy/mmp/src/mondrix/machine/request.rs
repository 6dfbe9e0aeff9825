//! Calls to the supervisor, and what its bottom half does to the hardware.

use super::{MAX_DOMAINS, Machine, MachineError, RefusedAccess, RunningThread};
use crate::bottom::Stale;
use crate::event::{MAX_GATE_WORDS, MAX_STACK_BYTES, TraceRequest, TraceSpan, TraceTarget};
use crate::plb::STACK;
use mullion_supervisor::{
    CallStack, DomainId, Error as PolicyError, GroupId, Level, Permission, Range, Subject,
};
use std::fmt;

/// Why a request of a trace was refused.
enum Why {
    /// The supervisor's word.
    Policy(PolicyError),
    /// It names something that the trace has not made.
    Unknown(&'static str, u32),
    /// It makes something under a number that is in use.
    Taken(&'static str, u32),
    /// It asks for more than the model takes at once.
    TooLong(&'static str, u64),
    /// A thread runs, or is made for a domain that is not below the caller.
    NotYours(u32),
}

impl From<PolicyError> for Why {
    fn from(error: PolicyError) -> Why {
        Why::Policy(error)
    }
}

impl fmt::Display for Why {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::Policy(error) => error.fmt(out),
            Why::Unknown(what, number) => write!(out, "the trace has made no {what} {number}"),
            Why::Taken(what, number) => write!(out, "the trace has already made {what} {number}"),
            Why::TooLong(what, most) => write!(out, "{what}: at most {most} are modelled"),
            Why::NotYours(thread) => {
                write!(
                    out,
                    "thread {thread} runs now, or is made for a domain that is not the caller's or below it"
                )
            }
        }
    }
}

/// Who calls: the running thread's call stack, or the supervisor itself before there is a thread.
struct Caller {
    current: DomainId,
    previous: Option<DomainId>,
}

impl CallStack for Caller {
    fn current(&self) -> DomainId {
        self.current
    }

    fn previous(&self) -> Option<DomainId> {
        self.previous
    }
}

impl Machine {
    /// Makes a call on behalf of the running domain. A refused call is noted and costs the top half.
    pub(super) fn request(&mut self, request: &TraceRequest) -> Result<(), MachineError> {
        self.supervisor_calls += 1;
        self.cycles.top += self.config.supervisor.top_cycles_per_call;
        if let Err(why) = self.ask(request) {
            let reason = match why {
                Why::Policy(error) => self.numbers.traced_error(error).to_string(),
                other => other.to_string(),
            };
            self.note(RefusedAccess::Call {
                name: request.name(),
                reason,
            });
        }
        self.settle();
        let limit = self.config.tables.limit_bytes;
        if self.supervisor.mechanism().traffic().in_use * 4 > limit {
            return Err(MachineError::TableMemory {
                event: self.event,
                limit,
            });
        }
        let newest = self.numbers.domain_count() as u32;
        if newest >= MAX_DOMAINS {
            return Err(MachineError::TooManyDomains { event: self.event });
        }
        Ok(())
    }

    fn caller(&self) -> Caller {
        let thread = self.thread.and_then(|thread| self.threads.get(&thread));
        match thread {
            Some(thread) => Caller {
                current: thread.policy.current(),
                previous: thread.policy.previous(),
            },
            None => Caller {
                current: DomainId::new(self.domain),
                previous: None,
            },
        }
    }

    fn ask(&mut self, request: &TraceRequest) -> Result<(), Why> {
        let caller = self.caller();
        match *request {
            TraceRequest::Mprot { span, permission } => {
                let permission = self.permission(permission, span)?;
                self.supervisor.mprot(&caller, range(span)?, permission)?;
            }
            TraceRequest::MprotExport {
                to,
                span,
                permission,
                export,
            } => self.export(&caller, to, span, permission, export)?,
            TraceRequest::Subdivide {
                child,
                span,
                permission,
            } => {
                if self.numbers.domain(child).is_some() {
                    return Err(Why::Taken("domain", child));
                }
                let permission = self.permission(permission, span)?;
                let new = self
                    .supervisor
                    .pd_subdivide(&caller, range(span)?, permission)?;
                self.numbers.add_domain(child, new);
            }
            TraceRequest::FreeDomain { domain } => {
                let target = self.domain_of(domain)?;
                self.supervisor.pd_free(&caller, target)?;
            }
            TraceRequest::PermAlloc { span } => {
                self.supervisor.perm_alloc(&caller, range(span)?)?
            }
            TraceRequest::PermFree { span } => self.supervisor.perm_free(&caller, range(span)?)?,
            TraceRequest::Chown { to, span } => {
                let to = self.domain_of(to)?;
                self.supervisor.chown(&caller, range(span)?, to)?;
            }
            TraceRequest::CreateGroup { group } => {
                if self.numbers.group(group).is_some() {
                    return Err(Why::Taken("group", group));
                }
                let new = self.supervisor.group_create(&caller)?;
                self.numbers.add_group(group, new);
            }
            TraceRequest::FreeGroup { group } => {
                let group = self.group_of(group)?;
                self.supervisor.group_free(&caller, group)?;
            }
            TraceRequest::JoinGroup { group } => {
                let group = self.group_of(group)?;
                self.supervisor.group_join(&caller, group)?;
            }
            TraceRequest::LeaveGroup { group } => {
                let group = self.group_of(group)?;
                self.supervisor.group_leave(&caller, group)?;
            }
            TraceRequest::CreateThread {
                thread,
                domain,
                stack,
            } => self.create_thread(&caller, thread, domain, stack)?,
            TraceRequest::EndThread { thread } => self.end_thread(thread)?,
            TraceRequest::StackGrant { span, writable } => self.stack_grant(span, writable)?,
        }
        Ok(())
    }

    fn export(
        &mut self,
        caller: &Caller,
        to: TraceTarget,
        span: TraceSpan,
        permission: Permission,
        export: Level,
    ) -> Result<(), Why> {
        let target = match to {
            TraceTarget::Domain(domain) => Subject::Domain(self.domain_of(domain)?),
            TraceTarget::Group(group) => Subject::Group(self.group_of(group)?),
        };
        let permission = self.permission(permission, span)?;
        self.supervisor
            .mprot_export_up_to(caller, target, range(span)?, permission, export)?;
        Ok(())
    }

    fn create_thread(
        &mut self,
        caller: &Caller,
        thread: u32,
        domain: u32,
        stack: TraceSpan,
    ) -> Result<(), Why> {
        if self.threads.contains_key(&thread) {
            return Err(Why::Taken("thread", thread));
        }
        if stack.bytes > MAX_STACK_BYTES {
            return Err(Why::TooLong("bytes of stack", MAX_STACK_BYTES));
        }
        let domain = self.domain_of(domain)?;
        let mut above = Some(domain);
        while above.is_some_and(|above| above != caller.current) {
            above = self.supervisor.parent(above.unwrap_or(domain))?;
        }
        above.ok_or(Why::NotYours(thread))?;
        let policy = self.supervisor.thread_create(&domain, range(stack)?)?;
        let memory = self.supervisor.mechanism_mut();
        memory.create_stack(policy.id(), policy.stack());
        // The thread's user area, beyond the tables; a page and a line for each, so that threads' call
        // stacks do not all fall into the same sets.
        let area = u64::from(self.config.crossing.depth) * 32 + 4096 + 64;
        let call_stack = (1 << self.address_bits) + (1 << 36) + u64::from(policy.id().get()) * area;
        self.numbers.add_thread(thread, policy.id());
        let running = RunningThread { policy, call_stack };
        self.threads.insert(thread, running);
        Ok(())
    }

    fn end_thread(&mut self, thread: u32) -> Result<(), Why> {
        if self.thread == Some(thread) {
            return Err(Why::NotYours(thread));
        }
        let ended = self.threads.remove(&thread);
        let ended = ended.ok_or(Why::Unknown("thread", thread))?;
        let id = ended.policy.id();
        self.supervisor.thread_end(ended.policy);
        self.supervisor.mechanism_mut().end_stack(id);
        Ok(())
    }

    fn stack_grant(&mut self, span: TraceSpan, writable: bool) -> Result<(), Why> {
        let thread = self.thread.and_then(|thread| self.threads.get_mut(&thread));
        let Some(thread) = thread else {
            return Err(Why::Unknown("running thread", 0));
        };
        let range = range(span)?;
        self.supervisor
            .stack_grant(&mut thread.policy, range, writable)?;
        Ok(())
    }

    fn domain_of(&self, number: u32) -> Result<DomainId, Why> {
        let found = self.numbers.domain(number);
        found.ok_or(Why::Unknown("domain", number))
    }

    fn group_of(&self, number: u32) -> Result<GroupId, Why> {
        let found = self.numbers.group(number);
        found.ok_or(Why::Unknown("group", number))
    }

    /// The permission with the trace's domain numbers replaced by the supervisor's.
    fn permission(&self, permission: Permission, span: TraceSpan) -> Result<Permission, Why> {
        let gate = matches!(
            permission,
            Permission::SwitchGate { .. } | Permission::ReturnGate
        );
        if gate && span.bytes / 4 > MAX_GATE_WORDS {
            return Err(Why::TooLong("words of gates in a call", MAX_GATE_WORDS));
        }
        Ok(match permission {
            Permission::SwitchGate { to } => Permission::SwitchGate {
                to: self.domain_of(to.get())?,
            },
            other => other,
        })
    }

    /// Lets the bottom half write what was decided, charges it, and flushes what became stale.
    pub(super) fn settle(&mut self) {
        let costs = &self.config.supervisor;
        let bottom = self.supervisor.mechanism_mut();
        let before = bottom.writes();
        let stale = bottom.commit();
        let writes = bottom.writes() - before;
        self.cycles.top += writes * costs.top_cycles_per_write;
        self.cycles.bottom += writes * costs.bottom_cycles_per_write;
        let line = self.caches.line_bytes();
        for touch in self.supervisor.mechanism().memory().log() {
            self.cycles.bottom += u64::from(touch.count) * costs.bottom_cycles_per_word;
            let first = (1 << self.address_bits) + 4 * u64::from(touch.word);
            let last = first + 4 * u64::from(touch.count) - 1;
            let mut at = first;
            while at <= last {
                self.cycles.bottom += self.caches.data(at);
                at = (at & !(line - 1)) + line;
            }
        }
        self.supervisor.mechanism_mut().clear_log();
        for stale in stale {
            self.flush(stale);
        }
    }

    fn flush(&mut self, stale: Stale) {
        let flushes = self.plb.counts().flushes;
        match stale {
            Stale::Domain(domain, bytes) => {
                self.glb.flush(domain, bytes.clone());
                self.plb.flush(domain, bytes);
            }
            Stale::StackWords(bytes) => {
                self.plb.flush(STACK, bytes);
            }
            Stale::Stack => self.plb.flush_all_of(STACK),
            Stale::Gates(bytes) => {
                let line = self.caches.line_bytes();
                let mut at = bytes.start & !(line - 1);
                while at < bytes.end {
                    self.caches.instruction.forget_gates(at);
                    at += line;
                }
            }
        }
        let operations = self.plb.counts().flushes - flushes;
        self.cycles.bottom += operations * self.config.plb.cycles_per_flush;
    }
}

fn range(span: TraceSpan) -> Result<Range, PolicyError> {
    Range::bytes(span.address, span.bytes).map_err(PolicyError::Range)
}
