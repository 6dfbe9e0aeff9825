//! The machine: runs a trace, checks every access, counts every cycle.
//!
//! ```text
//!   event --> caches --> stack registers --> PLB --miss--> permission table      allowed / refused
//!         \-> line's gate bit --> GLB --miss--> gate table --> cross-domain call stack
//!         \-> supervisor (the real one) --> bottom half --> tables, flushes
//! ```
//!
//! Beside the protected machine a second set of caches can run the same program without protection: the
//! "Linux" that Table 5 compares with.

mod check;
mod crossing;
mod numbers;
mod refusal;
mod request;

use crate::access::MachineAccess;
use crate::bottom::Bottom;
use crate::cache::Hierarchy;
use crate::config::{Config, ConfigError};
use crate::event::TraceEvent;
use crate::gates::Glb;
use crate::measurement::{Crossings, Cycles, Measurement};
use crate::plb::Plb;
use crate::table::Walk;
use mullion_supervisor::{DomainId, Family, Order, Range, Supervisor, Thread};
use numbers::Numbers;
use std::collections::HashMap;
use thiserror::Error;

pub use refusal::{MachineRefusal, RefusedAccess};

/// The most domains: a gate names its destination with 16 bits (Mondrix, Figure 3).
const MAX_DOMAINS: u32 = 1 << 16;

/// Why a run is given up.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MachineError {
    /// The machine cannot be built.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The trace's addresses do not fit the machine.
    #[error("tables.address-bits is {configured}, but the trace has addresses of {trace} bits")]
    AddressBits {
        /// What the configuration says.
        configured: u32,
        /// What the trace says.
        trace: u32,
    },
    /// Tables have outgrown their limit.
    #[error(
        "event {event}: the tables take more than {limit} bytes: raise tables.limit-bytes, or take a coarser granularity"
    )]
    TableMemory {
        /// The event after which they did.
        event: u64,
        /// The limit.
        limit: u64,
    },
    /// The trace makes more domains than a gate can name.
    #[error("event {event}: more than 65535 domains, which the gate table's 16 bits cannot name")]
    TooManyDomains {
        /// The event that made one too many.
        event: u64,
    },
}

/// A thread, by the trace's number.
#[derive(Debug)]
struct RunningThread {
    policy: Thread,
    /// Where its cross-domain call stack lies, for the caches.
    call_stack: u64,
}

/// The machine.
#[derive(Debug)]
pub struct Machine {
    config: Config,
    address_bits: u32,
    supervisor: Supervisor<Bottom>,
    caches: Hierarchy,
    /// The same program on a machine without protection.
    plain: Option<Hierarchy>,
    plb: Plb,
    glb: Glb,
    /// The domain number register, which holds the supervisor's number.
    domain: u32,
    /// `sl`, `fb`, `sb` as byte addresses; all zero while no thread runs.
    stack: StackWindow,
    thread: Option<u32>,
    threads: HashMap<u32, RunningThread>,
    numbers: Numbers,
    walk: Walk,
    event: u64,
    /// The byte of the file at which the event begins.
    byte: Option<u64>,
    cycles: Cycles,
    plain_stalls: u64,
    crossings: Crossings,
    refused_accesses: u64,
    refused_calls: u64,
    supervisor_calls: u64,
    refusals: Vec<MachineRefusal>,
}

/// The stack registers as byte addresses.
#[derive(Clone, Copy, Debug, Default)]
struct StackWindow {
    limit: u64,
    frame: u64,
    base: u64,
}

impl Machine {
    /// A machine for traces with addresses of this many bits. It begins in domain 0, the supervisor, with
    /// no thread.
    pub fn new(config: &Config, trace_address_bits: u32) -> Result<Self, MachineError> {
        config.check()?;
        let address_bits = config.tables.address_bits.unwrap_or(trace_address_bits);
        if address_bits < trace_address_bits {
            return Err(MachineError::AddressBits {
                configured: address_bits,
                trace: trace_address_bits,
            });
        }
        let bottom = Bottom::new(config, address_bits)?;
        // A space of at least 2^20 bytes is a range of at least one word.
        let space = Range::words(0, 1 << (address_bits - 2)).unwrap_or(Range::everything());
        Ok(Machine {
            address_bits,
            supervisor: Supervisor::with(space, bottom, Family, Order::Paper),
            caches: Hierarchy::new(&config.caches)?,
            plain: match config.report.baseline {
                true => Some(Hierarchy::new(&config.caches)?),
                false => None,
            },
            plb: Plb::new(config.plb.entries),
            glb: Glb::new(config.glb.entries, config.caches.line_bytes),
            domain: DomainId::SUPERVISOR.get(),
            stack: StackWindow::default(),
            thread: None,
            threads: HashMap::new(),
            numbers: Numbers::new(),
            walk: Walk::default(),
            event: 0,
            byte: None,
            cycles: Cycles::default(),
            plain_stalls: 0,
            crossings: Crossings::default(),
            refused_accesses: 0,
            refused_calls: 0,
            supervisor_calls: 0,
            refusals: Vec::new(),
            config: config.clone(),
        })
    }

    /// Runs one event of a file, which begins at this byte: a refusal says so.
    #[inline]
    pub fn step_at(&mut self, byte: u64, event: &TraceEvent) -> Result<(), MachineError> {
        self.byte = Some(byte);
        self.step(event)
    }

    /// Runs one event.
    #[inline]
    pub fn step(&mut self, event: &TraceEvent) -> Result<(), MachineError> {
        match *event {
            TraceEvent::Fetch {
                address,
                bytes,
                instructions,
            } => self.fetch(address, bytes, instructions),
            TraceEvent::Load { address, bytes } => self.data(address, bytes, MachineAccess::Read),
            TraceEvent::Store { address, bytes } => self.data(address, bytes, MachineAccess::Write),
            _ => self.step_rare(event)?,
        }
        self.event += 1;
        Ok(())
    }

    #[inline(never)]
    fn step_rare(&mut self, event: &TraceEvent) -> Result<(), MachineError> {
        match *event {
            TraceEvent::Call {
                target,
                return_address,
                stack,
            } => self.call(target, return_address, stack),
            TraceEvent::Return { at, target } => self.back(at, target),
            TraceEvent::Switch { thread } => self.switch(thread),
            TraceEvent::Idle { cycles } => {
                self.cycles.idle = self.cycles.idle.saturating_add(cycles)
            }
            TraceEvent::Supervisor(request) => self.request(&request)?,
            TraceEvent::Fetch { .. } | TraceEvent::Load { .. } | TraceEvent::Store { .. } => {}
        }
        Ok(())
    }

    #[inline]
    fn fetch(&mut self, address: u64, bytes: u32, instructions: u32) {
        self.cycles.instructions +=
            u64::from(instructions) * self.config.processor.cycles_per_instruction;
        let end = address + u64::from(bytes);
        let line = !(self.caches.line_bytes() - 1);
        let mut at = address;
        while at < end {
            self.cycles.stalls += self.caches.fetch(at);
            if let Some(plain) = &mut self.plain {
                self.plain_stalls += plain.fetch(at);
            }
            if self.domain != 0 && !self.caches.instruction.known_without_gates(at, self.domain) {
                self.find_gates(at);
            }
            at = (at & line) + self.caches.line_bytes();
        }
        if self.domain != 0 {
            self.check_fetch(address, end, u64::from(instructions));
        }
    }

    #[inline]
    fn data(&mut self, address: u64, bytes: u32, access: MachineAccess) {
        let bytes = u64::from(bytes);
        self.cycles.stalls += self.caches.data_bytes(address, bytes);
        if let Some(plain) = &mut self.plain {
            self.plain_stalls += plain.data_bytes(address, bytes);
        }
        if self.domain != 0 {
            self.check_data(address, address + bytes, access);
        }
    }

    /// Where a word of the table memory lies for the caches: beyond every address of a trace.
    fn table_address(&self, word: u32) -> u64 {
        (1 << self.address_bits) + 4 * u64::from(word)
    }

    fn note(&mut self, what: RefusedAccess) {
        match what {
            RefusedAccess::Access { .. } => self.refused_accesses += 1,
            RefusedAccess::Crossing { .. } | RefusedAccess::Call { .. } => self.refused_calls += 1,
        }
        if self.refusals.len() < self.config.report.refusals as usize {
            self.refusals.push(MachineRefusal {
                event: self.event,
                byte: self.byte,
                domain: self.numbers.traced_domain(DomainId::new(self.domain)),
                thread: self.thread,
                what,
            });
        }
    }

    /// Events so far.
    pub fn events(&self) -> u64 {
        self.event
    }

    /// Accesses refused so far.
    pub fn refused_accesses(&self) -> u64 {
        self.refused_accesses
    }

    /// Calls, to the supervisor or across domains, refused so far.
    pub fn refused_calls(&self) -> u64 {
        self.refused_calls
    }

    /// The domain that runs, by the supervisor's number.
    pub fn domain(&self) -> u32 {
        self.domain
    }

    /// The supervisor, to look at.
    pub fn supervisor(&self) -> &Supervisor<Bottom> {
        &self.supervisor
    }

    /// What was measured so far.
    pub fn report(&self) -> Measurement {
        let bottom = self.supervisor.mechanism();
        let lines = |cache: &crate::cache::Cache| [cache.accesses(), cache.misses()];
        Measurement {
            events: self.event,
            cycles: self.cycles,
            plain_cycles: self.plain.as_ref().map(|_| {
                self.cycles
                    .instructions
                    .saturating_add(self.plain_stalls)
                    .saturating_add(self.cycles.idle)
            }),
            crossings: self.crossings,
            plb: self.plb.counts(),
            glb: self.glb.counts(),
            instruction_cache: lines(&self.caches.instruction),
            data_cache: lines(&self.caches.data),
            unified_cache: lines(&self.caches.unified),
            supervisor_calls: self.supervisor_calls,
            table_writes: bottom.writes(),
            tables: bottom.traffic(),
            exposed_words: bottom.exposed_words(),
            regions: self.supervisor.region_count() as u64,
            refused_accesses: self.refused_accesses,
            refused_calls: self.refused_calls,
            refusals: self.refusals.clone(),
            config: self.config.clone(),
        }
    }
}
