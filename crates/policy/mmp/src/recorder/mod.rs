//! What a real supervisor decided, as events of a trace.
//!
//! A supervisor keeps its decisions in an [audit log](mullion_supervisor::AuditLog). The recorder writes those that
//! were carried out, in their order, so that the machine comes to the same domains, groups, owners and permissions
//! ([`TraceRecorder::decision`]). Domains and groups keep their numbers.
//!
//! A trace says who calls by the thread that runs, and a log names the caller itself. So each domain that calls is
//! given a thread. It has the domain's number and a small stack of its own at the end of the address space. Each
//! change of the caller is a switch of threads. A log does not hold calls and returns, fetches, loads and stores.

use crate::event::{TraceEvent, TraceRequest, TraceSpan, TraceTarget};
use mullion_supervisor::{
    Call, Decision, DomainId, Level, Permission, Range, Reply, Subject, WORD_BYTES,
};
use std::collections::BTreeSet;
use thiserror::Error;

/// Bits of an address in recorded traces: what a process of Linux has, and one more, under which stacks lie.
pub const ADDRESS_BITS: u32 = 48;

/// The most domains: each has a stack.
const MAX_DOMAINS: u64 = 1 << 16;

/// Bytes of the stack of a domain that calls.
const STACK_BYTES: u64 = 64;

/// Where the stacks begin. No decision may be about memory from here on.
pub const STACKS: u64 = (1 << ADDRESS_BITS) - MAX_DOMAINS * STACK_BYTES;

/// Why a decision is not written. `E` is what the sink says.
#[derive(Debug, Error)]
pub enum TraceRecordError<E> {
    /// Beyond what recorded traces can hold.
    #[error("decision {number} is about {range}: a trace holds memory below {STACKS:#x}")]
    Beyond {
        /// The decision's number in the log.
        number: u64,
        /// The memory.
        range: Range,
    },
    /// The log does not say enough of a call of this kind: who had called the caller, or which stack is meant.
    #[error("decision {number}: a log does not say enough of this call to replay it: {call:?}")]
    Unknown {
        /// The decision's number in the log.
        number: u64,
        /// The call.
        call: Call,
    },
    /// More domains than there are stacks for.
    #[error("decision {number}: more than {MAX_DOMAINS} domains")]
    TooManyDomains {
        /// The decision's number in the log.
        number: u64,
    },
    /// The sink failed.
    #[error(transparent)]
    Sink(E),
}

/// Hands on the events of one decision after another.
#[derive(Debug)]
pub struct TraceRecorder<S> {
    sink: S,
    running: DomainId,
    /// Whether another thread runs, of none of them.
    is_away: bool,
    /// Domains that have a thread.
    threads: BTreeSet<DomainId>,
    refused: u64,
}

impl<E, S: FnMut(TraceEvent) -> Result<(), E>> TraceRecorder<S> {
    /// Begins with a supervisor that has made no domain.
    pub fn new(sink: S) -> Self {
        TraceRecorder {
            sink,
            running: DomainId::SUPERVISOR,
            is_away: false,
            threads: BTreeSet::new(),
            refused: 0,
        }
    }

    /// How many decisions were refusals. They changed nothing and are not written.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Writes one decision.
    pub fn decision(&mut self, decision: &Decision) -> Result<(), TraceRecordError<E>> {
        let Ok(reply) = decision.outcome else {
            self.refused += 1;
            return Ok(());
        };
        let number = decision.number;
        let request = request(decision, reply)?;
        if u64::from(decision.caller.get()) >= MAX_DOMAINS {
            return Err(TraceRecordError::TooManyDomains { number });
        }
        self.run(decision.caller).map_err(TraceRecordError::Sink)?;
        if let Call::PdFree { target } = decision.call {
            self.end(target).map_err(TraceRecordError::Sink)?;
        }
        self.ask(request).map_err(TraceRecordError::Sink)
    }

    /// Another thread than the domains' runs from here on: the next decision begins with a switch.
    pub fn leave(&mut self) {
        self.is_away = true;
    }

    /// Makes a domain the one that runs, by its thread.
    pub fn run(&mut self, domain: DomainId) -> Result<(), E> {
        if self.running == domain && !self.is_away {
            return Ok(());
        }
        // Before the first thread the supervisor's own domain runs, and makes itself one to come back to.
        if self.threads.insert(DomainId::SUPERVISOR) {
            self.ask(TraceRequest::Mprot {
                span: stack(DomainId::SUPERVISOR),
                permission: Permission::ReadWrite,
            })?;
            self.thread(DomainId::SUPERVISOR)?;
        }
        if self.threads.insert(domain) {
            // The root is above every domain, so it may make a thread for it.
            self.switch(DomainId::SUPERVISOR)?;
            self.ask(TraceRequest::MprotExport {
                to: TraceTarget::Domain(domain.get()),
                span: stack(domain),
                permission: Permission::ReadWrite,
                export: Level::None,
            })?;
            self.thread(domain)?;
        }
        self.switch(domain)
    }

    /// Ends the thread of a domain that is about to be deleted, unless it runs.
    fn end(&mut self, domain: DomainId) -> Result<(), E> {
        if domain == self.running || !self.threads.remove(&domain) {
            return Ok(());
        }
        self.ask(TraceRequest::EndThread {
            thread: domain.get(),
        })
    }

    fn switch(&mut self, domain: DomainId) -> Result<(), E> {
        if self.running == domain && !std::mem::take(&mut self.is_away) {
            return Ok(());
        }
        self.running = domain;
        (self.sink)(TraceEvent::Switch {
            thread: domain.get(),
        })
    }

    /// Hands another event on.
    pub fn event(&mut self, event: TraceEvent) -> Result<(), E> {
        (self.sink)(event)
    }

    fn thread(&mut self, domain: DomainId) -> Result<(), E> {
        self.ask(TraceRequest::CreateThread {
            thread: domain.get(),
            domain: domain.get(),
            stack: stack(domain),
        })
    }

    /// Writes a call to the supervisor by the domain that runs.
    pub fn ask(&mut self, request: TraceRequest) -> Result<(), E> {
        (self.sink)(TraceEvent::Supervisor(request))
    }
}

/// The call as the trace has it.
fn request<E>(decision: &Decision, reply: Reply) -> Result<TraceRequest, TraceRecordError<E>> {
    let number = decision.number;
    let span = |range| span(number, range);
    Ok(match (decision.call, reply) {
        (Call::Mprot { range, permission }, _) => TraceRequest::Mprot {
            span: span(range)?,
            permission,
        },
        (
            Call::MprotExport {
                target,
                range,
                permission,
                export,
            },
            _,
        ) => TraceRequest::MprotExport {
            to: match target {
                Subject::Domain(domain) => TraceTarget::Domain(domain.get()),
                Subject::Group(group) => TraceTarget::Group(group.get()),
            },
            span: span(range)?,
            permission,
            export,
        },
        (Call::PdSubdivide { range, permission }, Reply::Domain(child)) => {
            TraceRequest::Subdivide {
                child: child.get(),
                span: span(range)?,
                permission,
            }
        }
        (Call::PdFree { target }, _) => TraceRequest::FreeDomain {
            domain: target.get(),
        },
        (Call::PermFree { range }, _) => TraceRequest::PermFree { span: span(range)? },
        (Call::Chown { range, target }, _) => TraceRequest::Chown {
            to: target.get(),
            span: span(range)?,
        },
        (Call::GroupCreate, Reply::Group(group)) => {
            TraceRequest::CreateGroup { group: group.get() }
        }
        (Call::GroupFree { group }, _) => TraceRequest::FreeGroup { group: group.get() },
        (Call::GroupJoin { group }, _) => TraceRequest::JoinGroup { group: group.get() },
        (Call::GroupLeave { group }, _) => TraceRequest::LeaveGroup { group: group.get() },
        (call, _) => return Err(TraceRecordError::Unknown { number, call }),
    })
}

fn span<E>(number: u64, range: Range) -> Result<TraceSpan, TraceRecordError<E>> {
    match range.end() <= STACKS / WORD_BYTES {
        true => Ok(TraceSpan {
            address: range.start() * WORD_BYTES,
            bytes: (range.end() - range.start()) * WORD_BYTES,
        }),
        false => Err(TraceRecordError::Beyond { number, range }),
    }
}

/// The stack of a domain's thread.
fn stack(domain: DomainId) -> TraceSpan {
    TraceSpan {
        address: STACKS + u64::from(domain.get()) * STACK_BYTES,
        bytes: STACK_BYTES,
    }
}
