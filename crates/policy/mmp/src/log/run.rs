//! A supervisor's log together with what the domains' code did between its decisions, as a trace's file.
//!
//! In the machine, domain 0 has no gates. So the trace has a domain of its own for the host, and one thread on which all of
//! the code runs. The thread's stack is the trace's own, too: each call takes 64 bytes of it. So are the gates that the trace
//! places where a call or return is seen first:
//!
//! | gate | where |
//! | --- | --- |
//! | into a domain, for the host or another domain | its function that is called, unless a decision has placed one there |
//! | into the host, for a domain | the function that the domain calls. The host's domain may execute there |
//! | back from a domain | the last instruction of a call |
//! | back from the host | a word above all memory, by which its functions return |
//!
//! A decision about the words of a gate takes its place: the gate is placed anew when it is used next.
//! The host's own instructions and accesses are not in it.

use super::LogTraceError;
use crate::event::{
    MAX_ACCESS_BYTES, MAX_FETCH_BYTES, TraceEvent, TraceRequest, TraceSpan, TraceTarget,
};
use crate::recorder::{ADDRESS_BITS, STACKS, TraceRecordError, TraceRecorder};
use crate::trace::{Header, TraceWriter};
use mullion_supervisor::{
    AuditLog, Call, Decision, DomainId, Level, Permission, Range, Subject, WORD_BYTES as WORD,
};
use std::collections::BTreeSet;
use std::io::{self, Write};

/// The thread on which the code runs. Domains have smaller numbers.
const THREAD: u32 = 1 << 20;
/// The host's domain in the trace.
const HOST_DOMAIN: DomainId = DomainId::new(1 << 20);
/// Its stack, below those of the domains' threads.
const STACK: TraceSpan = TraceSpan {
    address: STACKS - (1 << 20),
    bytes: 1 << 20,
};
/// Of each call.
const FRAME: u64 = 64;
/// Where the host calls from, and its functions return.
const HOST: u64 = STACK.address - 4096;

/// What code did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEvent {
    /// So many decisions of the log come before what follows.
    Decisions(u64),
    /// A domain is called, at this function, by the host or by the domain that runs.
    Call {
        /// Which.
        domain: DomainId,
        /// Its function.
        gate: u64,
    },
    /// That call is over.
    Return,
    /// A domain calls a function of the host.
    Leave {
        /// Which domain.
        domain: DomainId,
        /// The function.
        function: u64,
    },
    /// That function has returned.
    Back,
    /// An instruction, with its bytes.
    Instruction(u64, u32),
    /// A load, with its bytes.
    Load(u64, u32),
    /// A store, with its bytes.
    Store(u64, u32),
}

/// As [`write_trace`](super::write_trace), with what the code did.
pub fn write_run<W: Write>(
    log: &AuditLog,
    events: impl IntoIterator<Item = RunEvent>,
    note: &str,
    to: W,
) -> Result<W, LogTraceError> {
    let lost = log.iter().next().map_or(0, |first| first.number);
    if lost != 0 {
        return Err(LogTraceError::Cut(lost));
    }
    let header = Header {
        address_bits: ADDRESS_BITS,
        note: note.to_owned(),
    };
    let mut writer = TraceWriter::new(to, &header)?;
    let mut run = Run {
        recorder: TraceRecorder::new(|event| writer.write(&event)),
        decisions: log.iter(),
        made: 0,
        is_begun: false,
        is_running: false,
        line: (0, 0, 0),
        calls: Vec::new(),
        gates: BTreeSet::new(),
    };
    for event in events {
        run.event(event)?;
    }
    run.decide(u64::MAX)?;
    drop(run);
    Ok(writer.finish()?)
}

type Outcome = Result<(), TraceRecordError<io::Error>>;

struct Run<S, I> {
    recorder: TraceRecorder<S>,
    decisions: I,
    made: u64,
    is_begun: bool,
    /// Whether the code's thread runs.
    is_running: bool,
    /// Instructions in a straight line that are not written yet: where, bytes, how many.
    line: (u64, u32, u32),
    /// Calls that have not returned.
    calls: Vec<Entered>,
    /// Words with gates that are placed: for whom, and where. For the host's domain, also where it may execute.
    gates: BTreeSet<(DomainId, u64)>,
}

/// A call that has not returned.
struct Entered {
    domain: DomainId,
    /// Where it goes back to.
    return_address: u64,
    /// Its last instruction so far, and where that ends.
    last: (u64, u64),
}

impl<'a, S, I> Run<S, I>
where
    S: FnMut(TraceEvent) -> io::Result<()>,
    I: Iterator<Item = &'a Decision>,
{
    fn event(&mut self, event: RunEvent) -> Outcome {
        match event {
            RunEvent::Decisions(before) => self.decide(before),
            RunEvent::Call { domain, gate } => self.call(domain, gate),
            RunEvent::Leave { domain, function } => self.leave(domain, function),
            RunEvent::Return | RunEvent::Back => self.back(),
            RunEvent::Instruction(address, bytes) => self.instruction(address, bytes),
            RunEvent::Load(address, bytes) => self.pieces(address, bytes, |address, bytes| {
                TraceEvent::Load { address, bytes }
            }),
            RunEvent::Store(address, bytes) => self.pieces(address, bytes, |address, bytes| {
                TraceEvent::Store { address, bytes }
            }),
        }
    }

    /// Writes the decisions up to this one.
    fn decide(&mut self, before: u64) -> Outcome {
        self.flush()?;
        while self.made < before
            && let Some(decision) = self.decisions.next()
        {
            self.made += 1;
            self.away();
            self.recorder.decision(decision)?;
            if decision.outcome.is_ok() {
                self.overwrite(decision);
            }
        }
        Ok(())
    }

    /// A decision about words with gates: they are what it says from now on.
    fn overwrite(&mut self, decision: &Decision) {
        let (whose, range) = match decision.call {
            Call::Mprot { range, .. } => (Some(decision.caller), range),
            Call::MprotExport { target, range, .. } => match target {
                Subject::Domain(domain) => (Some(domain), range),
                Subject::Group(_) => return,
            },
            Call::PermFree { range }
            | Call::Chown { range, .. }
            | Call::PdSubdivide { range, .. } => (None, range),
            _ => return,
        };
        let is_in = |range: Range, word: u64| (range.start()..range.end()).contains(&word);
        self.gates
            .retain(|(of, word)| whose.is_some_and(|whose| whose != *of) || !is_in(range, *word));
        if let Call::MprotExport {
            target, permission, ..
        } = decision.call
            && let (Subject::Domain(from), Permission::SwitchGate { .. }) = (target, permission)
            && range.end() - range.start() == 1
        {
            self.gates.insert((from, range.start()));
        }
    }

    /// The code's thread does not run.
    fn away(&mut self) {
        if self.is_running {
            self.is_running = false;
            self.recorder.leave();
        }
    }

    /// The code's thread runs. It is made when it does so first.
    fn run(&mut self) -> Outcome {
        if self.is_running {
            return Ok(());
        }
        self.is_running = true;
        if self.is_begun {
            return self.emit(TraceEvent::Switch { thread: THREAD });
        }
        self.is_begun = true;
        let begin = [
            TraceRequest::Subdivide {
                child: HOST_DOMAIN.get(),
                span: TraceSpan {
                    address: HOST,
                    bytes: STACKS - HOST,
                },
                permission: Permission::ReadWrite,
            },
            TraceRequest::CreateThread {
                thread: THREAD,
                domain: HOST_DOMAIN.get(),
                stack: STACK,
            },
        ];
        for request in begin {
            self.as_domain(DomainId::SUPERVISOR, request)?;
        }
        self.is_running = true;
        self.emit(TraceEvent::Switch { thread: THREAD })?;
        self.emit(TraceEvent::Supervisor(TraceRequest::Mprot {
            span: word(HOST),
            permission: Permission::ReturnGate,
        }))
    }

    /// A call to the supervisor that the trace makes for its own gates.
    fn as_domain(&mut self, domain: DomainId, request: TraceRequest) -> Outcome {
        self.away();
        self.recorder.run(domain).map_err(TraceRecordError::Sink)?;
        self.recorder.ask(request).map_err(TraceRecordError::Sink)
    }

    /// A gate of `owner` into `to`, for `from`, if it is not there.
    fn gate(&mut self, owner: DomainId, from: DomainId, to: DomainId, at: u64) -> Outcome {
        if !self.gates.insert((from, at / WORD)) {
            return Ok(());
        }
        // The host's domain must be there.
        self.run()?;
        self.as_domain(
            owner,
            TraceRequest::MprotExport {
                to: TraceTarget::Domain(from.get()),
                span: word(at),
                permission: Permission::SwitchGate { to },
                export: Level::None,
            },
        )
    }

    fn call(&mut self, domain: DomainId, gate: u64) -> Outcome {
        self.flush()?;
        self.gate(domain, self.running(), domain, gate)?;
        self.cross(domain, gate)
    }

    fn leave(&mut self, domain: DomainId, function: u64) -> Outcome {
        self.flush()?;
        self.gate(DomainId::SUPERVISOR, domain, HOST_DOMAIN, function)?;
        if self.gates.insert((HOST_DOMAIN, function / WORD)) {
            self.as_domain(
                DomainId::SUPERVISOR,
                TraceRequest::MprotExport {
                    to: TraceTarget::Domain(HOST_DOMAIN.get()),
                    span: word(function),
                    permission: Permission::ExecuteRead,
                    export: Level::None,
                },
            )?;
        }
        self.cross(HOST_DOMAIN, function)
    }

    fn running(&self) -> DomainId {
        self.calls
            .last()
            .map_or(HOST_DOMAIN, |running| running.domain)
    }

    fn cross(&mut self, to: DomainId, target: u64) -> Outcome {
        let return_address = match self.calls.last() {
            Some(caller) if caller.domain != HOST_DOMAIN => caller.last.1,
            _ => HOST,
        };
        self.run()?;
        self.calls.push(Entered {
            domain: to,
            return_address,
            // Behind the gate's own word, for a call that ends before its first instruction.
            last: (target + WORD, target + WORD),
        });
        let depth = self.calls.len() as u64;
        self.emit(TraceEvent::Call {
            target,
            return_address,
            stack: STACK.address + STACK.bytes - FRAME * depth.min(STACK.bytes / FRAME),
        })
    }

    fn back(&mut self) -> Outcome {
        self.flush()?;
        let Some(call) = self.calls.last() else {
            return Ok(());
        };
        let (running, target) = (call.domain, call.return_address);
        let at = match running {
            HOST_DOMAIN => HOST,
            _ => call.last.0,
        };
        if running != HOST_DOMAIN && self.gates.insert((running, at / WORD)) {
            self.as_domain(
                running,
                TraceRequest::Mprot {
                    span: word(at),
                    permission: Permission::ReturnGate,
                },
            )?;
        }
        self.run()?;
        self.calls.pop();
        self.emit(TraceEvent::Return { at, target })
    }

    fn instruction(&mut self, address: u64, bytes: u32) -> Outcome {
        let (start, length, _) = self.line;
        if length != 0 && (start + u64::from(length) != address || length + bytes > MAX_FETCH_BYTES)
        {
            self.flush()?;
        }
        if self.line.1 == 0 {
            self.line.0 = address;
        }
        self.line.1 += bytes;
        self.line.2 += 1;
        if let Some(call) = self.calls.last_mut() {
            call.last = (address, address + u64::from(bytes));
        }
        Ok(())
    }

    fn pieces(
        &mut self,
        address: u64,
        bytes: u32,
        event: impl Fn(u64, u32) -> TraceEvent,
    ) -> Outcome {
        self.flush()?;
        self.run()?;
        let mut done = 0;
        while done < bytes {
            let part = (bytes - done).min(MAX_ACCESS_BYTES);
            self.emit(event(address + u64::from(done), part))?;
            done += part;
        }
        Ok(())
    }

    fn flush(&mut self) -> Outcome {
        let (address, bytes, instructions) = std::mem::take(&mut self.line);
        if bytes == 0 {
            return Ok(());
        }
        self.run()?;
        self.emit(TraceEvent::Fetch {
            address,
            bytes,
            instructions,
        })
    }

    fn emit(&mut self, event: TraceEvent) -> Outcome {
        self.recorder.event(event).map_err(TraceRecordError::Sink)
    }
}

fn word(at: u64) -> TraceSpan {
    TraceSpan {
        address: at & !(WORD - 1),
        bytes: WORD,
    }
}
