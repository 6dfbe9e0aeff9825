//! Faults of domains, as typed data.

use crate::control::{CONTROL_LOW, RESERVE, Tcb};
use crate::domain::Inner;
use crate::memory::Claimed;
use crate::reserve;
use crate::trampoline::{self, RETURN_GATE_BELOW};
use crate::watchdog::Granted;
use crate::window::Access;
use mullion_abi::{
    GATE_BASE, GATE_SLOT_SIZE, GATE_SLOTS, GUARD_SIZE, TRAP_ACCESS, TRAP_LABEL, TRAP_STEPS,
};
use std::fmt;
use std::time::Duration;

/// What a domain did, or what was done about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It read, wrote or executed memory that it may not use so.
    Access {
        /// What it tried.
        attempt: Attempt,
        /// What it may do there; `None` if nothing is mapped.
        permitted: Option<Access>,
    },
    /// Its data stack is full: an access in the stack's guard.
    DataStackOverflow {
        /// The stack's size, in bytes.
        size: u64,
    },
    /// Its control stack is full: too many calls are nested.
    ControlStackOverflow,
    /// An indirect call or jump went to something without the label.
    FailedLabel,
    /// In `trap` protection: an access outside of the window.
    TrappedAccess,
    /// `ud2`: it ended itself, as `__builtin_trap` does.
    Trap,
    /// Another instruction that the processor does not have.
    IllegalInstruction,
    /// Division by zero, or a quotient too large.
    Division,
    /// A floating-point exception that it had unmasked.
    FloatingPoint,
    /// `int3`, or what lies behind the end of code.
    Breakpoint,
    /// The memory behind a mapping is gone.
    Bus,
    /// `longjmp` or an exception was to go outside of the present invocation.
    BadUnwind,
    /// `longjmp` or an exception was to go to something without the label.
    UnlabelledUnwind,
    /// A gate that the image does not import.
    UnknownGate,
    /// It raised a signal against itself, as `abort` does.
    Raised {
        /// The signal's number.
        signal: i32,
    },
    /// Its time, or that of a call that this one was nested in, was up.
    TimeLimit {
        /// What was granted.
        granted: Duration,
    },
    /// Its time for all calls was up.
    TotalTimeLimit {
        /// What was granted.
        granted: Duration,
    },
    /// Its time on a processor, or that of a call that this one was nested in, was up.
    ProcessorTimeLimit {
        /// What was granted.
        granted: Duration,
    },
    /// Its time on processors for all calls was up.
    TotalProcessorTimeLimit {
        /// What was granted.
        granted: Duration,
    },
    /// Its host has cancelled it, or a call that it was nested in
    /// ([`Canceller`](crate::Canceller)).
    Cancelled,
    /// It made more gate calls than it was granted.
    GateLimit {
        /// What was granted.
        granted: u64,
    },
    /// It made more steps than it was granted.
    StepLimit {
        /// What was granted.
        granted: u64,
    },
    /// It handed more bytes to its host than it was granted.
    OutputLimit {
        /// What was granted.
        granted: u64,
    },
}

/// The kind of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// A load.
    Read,
    /// A store.
    Write,
    /// An instruction fetch.
    Execute,
}

/// General registers when the fault happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    /// In the order of [`REGISTER_NAMES`].
    pub values: [u64; 18],
}

/// The registers of a report, in order.
pub const REGISTER_NAMES: [&str; 18] = [
    "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13",
    "r14", "r15", "rip", "eflags",
];

/// The same order, as the kernel numbers them.
pub(crate) const ORDER: [libc::c_int; 18] = [
    libc::REG_RAX,
    libc::REG_RBX,
    libc::REG_RCX,
    libc::REG_RDX,
    libc::REG_RSI,
    libc::REG_RDI,
    libc::REG_RBP,
    libc::REG_RSP,
    libc::REG_R8,
    libc::REG_R9,
    libc::REG_R10,
    libc::REG_R11,
    libc::REG_R12,
    libc::REG_R13,
    libc::REG_R14,
    libc::REG_R15,
    libc::REG_RIP,
    libc::REG_EFL,
];

/// Places in this order.
const RAX: usize = 0;
const RCX: usize = 2;
const RSP: usize = 7;
const R10: usize = 10;
const R11: usize = 11;
const R14: usize = 14;
const RIP: usize = 16;

impl Registers {
    /// The register of this name, one of [`REGISTER_NAMES`].
    #[must_use]
    pub fn get(&self, name: &str) -> Option<u64> {
        let place = REGISTER_NAMES.iter().position(|known| *known == name)?;
        Some(self.values[place])
    }
}

/// An invocation was ended because of what the domain did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What happened.
    pub cause: Cause,
    /// The base of the domain's window: an address minus this is an offset in the image.
    pub base: u64,
    /// The address that was accessed, if an access is to blame.
    pub address: Option<u64>,
    /// The instruction, in the window; what follows the gate's call, if the domain was
    /// in a host function or a built-in gate.
    pub instruction: u64,
    /// The registers, unless the domain was in a host function. Those that a built-in
    /// gate has changed are 0.
    pub registers: Option<Registers>,
    /// Return addresses, the innermost first, read from the control stack.
    pub backtrace: Vec<u64>,
    /// How many return addresses are left out, before the last [`OUTERMOST`] ones.
    pub omitted: u64,
}

impl Fault {
    /// An address as an offset in the window, if it lies there.
    #[must_use]
    pub fn offset(&self, address: u64) -> Option<u64> {
        address
            .checked_sub(self.base)
            .filter(|offset| *offset < mullion_abi::WINDOW_SIZE)
    }
}

impl std::error::Error for Fault {}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.cause)?;
        if let Some(address) = self.address {
            write!(formatter, " at {}", self.place(address))?;
        }
        write!(
            formatter,
            ", by the instruction at {}",
            self.place(self.instruction)
        )
    }
}

impl Fault {
    fn place(&self, address: u64) -> String {
        match self.offset(address) {
            Some(offset) => format!("offset {offset:#x}"),
            None => format!("address {address:#x}"),
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Access { attempt, permitted } => {
                let verb = match attempt {
                    Attempt::Read => "read of",
                    Attempt::Write => "write to",
                    Attempt::Execute => "jump into",
                };
                let memory = match permitted {
                    None | Some(Access::None) => "memory that is not mapped",
                    Some(Access::Read) => "read-only memory",
                    Some(Access::ReadWrite) => "writable memory",
                    Some(Access::ReadExecute) => "code",
                };
                return write!(formatter, "{verb} {memory}");
            }
            Self::DataStackOverflow { size } => {
                return write!(formatter, "data stack overflow ({} KiB)", size >> 10);
            }
            Self::ControlStackOverflow => "control stack overflow: too many nested calls",
            Self::FailedLabel => "indirect call or jump to something that is no labelled target",
            Self::TrappedAccess => "access outside of the window, found by `trap` protection",
            Self::Trap => "trap instruction (ud2)",
            Self::IllegalInstruction => "illegal instruction",
            Self::Division => "division by zero or overflow",
            Self::FloatingPoint => "floating-point exception",
            Self::Breakpoint => "breakpoint (int3)",
            Self::Bus => "bus error",
            Self::BadUnwind => "longjmp or exception out of the invocation",
            Self::UnlabelledUnwind => {
                "longjmp or exception to something that is no labelled target"
            }
            Self::UnknownGate => "call of a gate that the image does not import",
            Self::Raised {
                signal: libc::SIGABRT,
            } => "aborted",
            Self::Raised { signal } => return write!(formatter, "raised signal {signal}"),
            Self::TimeLimit { granted } => {
                return write!(formatter, "time limit of {granted:?} exceeded");
            }
            Self::TotalTimeLimit { granted } => {
                return write!(
                    formatter,
                    "time limit of {granted:?} for all calls exceeded"
                );
            }
            Self::ProcessorTimeLimit { granted } => {
                return write!(formatter, "limit of {granted:?} on a processor exceeded");
            }
            Self::TotalProcessorTimeLimit { granted } => {
                return write!(
                    formatter,
                    "limit of {granted:?} on processors for all calls exceeded"
                );
            }
            Self::Cancelled => "cancelled by the host",
            Self::GateLimit { granted } => {
                return write!(formatter, "limit of {granted} gate calls exceeded");
            }
            Self::StepLimit { granted } => {
                return write!(formatter, "limit of {granted} steps exceeded");
            }
            Self::OutputLimit { granted } => {
                return write!(formatter, "output limit of {granted} bytes exceeded");
            }
        };
        formatter.write_str(text)
    }
}

/// Return addresses kept from the innermost frame on.
pub const INNERMOST: usize = 56;
/// Return addresses kept of the outermost frames, if there are too many.
pub const OUTERMOST: usize = 8;

/// What the signal handler takes down; of a fixed size, in the thread control block.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Record {
    /// 0 if a limit of time ended the invocation, or its host did.
    pub(crate) signal: libc::c_int,
    /// The limit that was in force.
    pub(crate) granted: Granted,
    pub(crate) code: libc::c_int,
    pub(crate) address: u64,
    pub(crate) error: u64,
    pub(crate) trap: u64,
    pub(crate) registers: [u64; 18],
    returns: [u64; INNERMOST + OUTERMOST],
    count: usize,
    omitted: u64,
}

impl Default for Record {
    fn default() -> Self {
        Self {
            signal: 0,
            granted: Granted::default(),
            code: 0,
            address: 0,
            error: 0,
            trap: 0,
            registers: [0; 18],
            returns: [0; INNERMOST + OUTERMOST],
            count: 0,
            omitted: 0,
        }
    }
}

impl Record {
    /// Reads the return addresses of the running invocation, from `stack` up to
    /// its return gate, which lies below its CONTROL.
    pub(crate) fn walk(&mut self, tcb: &Tcb, stack: u64, control: u64) {
        let gate = control - RETURN_GATE_BELOW;
        let inside = (tcb.foot() + RESERVE.start..=gate).contains(&stack);
        let total = if inside { (gate - stack) / 8 } else { 0 };
        let first = total.min(INNERMOST as u64);
        let last = (total - first).min(OUTERMOST as u64);
        self.omitted = total - first - last;
        self.count = (first + last) as usize;
        for (index, place) in (0..first)
            .chain(total - last..total)
            .zip(self.returns.iter_mut())
        {
            let slot: *const u64 = std::ptr::with_exposed_provenance((stack + 8 * index) as usize);
            // SAFETY: between the stack pointer and the return gate the control
            // stack of this thread is mapped, and only this thread writes it.
            *place = unsafe { slot.read() };
        }
    }

    /// The fault that the record describes.
    pub(crate) fn explain(&self, tcb: &Tcb, domain: &Inner) -> Fault {
        let instruction = self.registers[RIP];
        let cause = self.cause(tcb, domain, instruction);
        let access = matches!(
            cause,
            Cause::Access { .. }
                | Cause::DataStackOverflow { .. }
                | Cause::ControlStackOverflow
                | Cause::Bus
        );
        // A general protection fault (an address that is none) comes without one.
        let known = self.trap != TRAP_GENERAL_PROTECTION;
        let fault = Fault {
            cause,
            base: domain.memory().base(),
            address: (access && known).then_some(self.address),
            instruction,
            registers: Some(Registers {
                values: self.registers,
            }),
            backtrace: self.returns[..self.count].to_vec(),
            omitted: self.omitted,
        };
        match fault.offset(instruction) {
            Some(_) => fault,
            None => self.as_the_domain_sees(fault),
        }
    }

    /// A fault in code of the run time's on the domain's behalf (a built-in gate, or
    /// what hands it its arguments), by addresses of the domain's own.
    fn as_the_domain_sees(&self, mut fault: Fault) -> Fault {
        let mut values = self.registers;
        values[R14] = fault.base;
        for changed in [RAX, RCX, R10, R11] {
            values[changed] = 0;
        }
        // Who has not been called, but jumped to, has no caller: then the gate's slot, or
        // the function that was to begin.
        fault.instruction = if fault.backtrace.is_empty() {
            let (target, area) = (self.registers[R11], fault.base + GATE_BASE);
            match target {
                _ if fault.offset(target).is_some() => target,
                ..GATE_SLOTS => area + target * GATE_SLOT_SIZE,
                _ => area,
            }
        } else {
            fault.backtrace.remove(0)
        };
        values[RIP] = fault.instruction;
        fault.registers = Some(Registers { values });
        fault
    }

    /// As [`Record::explain`], for a domain that was in a host function.
    pub(crate) fn explain_in_gate(&self, cause: Cause, domain: &Inner) -> Fault {
        Fault {
            cause,
            base: domain.memory().base(),
            address: None,
            instruction: self.returns[..self.count].first().copied().unwrap_or(0),
            registers: None,
            backtrace: self.returns[..self.count]
                .get(1..)
                .unwrap_or_default()
                .to_vec(),
            omitted: self.omitted,
        }
    }

    fn cause(&self, tcb: &Tcb, domain: &Inner, instruction: u64) -> Cause {
        match self.signal {
            0 => self.granted.cause(),
            libc::SIGSEGV => self.access(tcb, domain),
            libc::SIGBUS => Cause::Bus,
            libc::SIGILL => illegal(domain, instruction),
            libc::SIGFPE if matches!(self.code, FPE_INTDIV | FPE_INTOVF) => Cause::Division,
            libc::SIGFPE => Cause::FloatingPoint,
            _ => Cause::Breakpoint,
        }
    }

    fn access(&self, tcb: &Tcb, domain: &Inner) -> Cause {
        let guard = tcb.foot()..tcb.foot() + CONTROL_LOW;
        let undelivered =
            self.code == reserve::BY_KERNEL && tcb.is_short_of_room(self.registers[RSP]);
        if undelivered || guard.contains(&self.address) {
            return Cause::ControlStackOverflow;
        }
        let offset = domain.memory().offset(Claimed(self.address));
        if let Some(stack) = offset.and_then(|offset| domain.stacks().overflowed(offset)) {
            return Cause::DataStackOverflow {
                size: stack.end - stack.start,
            };
        }
        let attempt = match self.error {
            error if error & PAGE_FAULT_FETCH != 0 => Attempt::Execute,
            error if error & PAGE_FAULT_WRITE != 0 => Attempt::Write,
            _ => Attempt::Read,
        };
        let permitted = offset
            .filter(|offset| *offset >= GUARD_SIZE)
            .and_then(|_| domain.memory().access(Claimed(self.address)));
        Cause::Access { attempt, permitted }
    }
}

/// Bits of the error code of a page fault, and the number of another fault.
const PAGE_FAULT_WRITE: u64 = 1 << 1;
const PAGE_FAULT_FETCH: u64 = 1 << 4;
const TRAP_GENERAL_PROTECTION: u64 = 13;
/// Codes of SIGFPE (siginfo.h).
const FPE_INTDIV: libc::c_int = 1;
const FPE_INTOVF: libc::c_int = 2;

/// Which check it was that failed.
fn illegal(domain: &Inner, instruction: u64) -> Cause {
    if instruction == trampoline::mullion_trap_gate as *const () as u64 {
        return Cause::UnknownGate;
    }
    if instruction == trampoline::mullion_trap_control as *const () as u64 {
        return Cause::BadUnwind;
    }
    if instruction == trampoline::mullion_trap_target as *const () as u64 {
        return Cause::UnlabelledUnwind;
    }
    match domain.memory().read::<3>(Claimed(instruction)) {
        Ok(TRAP_LABEL) => Cause::FailedLabel,
        Ok(TRAP_ACCESS) => Cause::TrappedAccess,
        Ok(TRAP_STEPS) => domain.no_step(),
        Ok([0x0f, 0x0b, _]) => Cause::Trap,
        _ => Cause::IllegalInstruction,
    }
}
