//! Faults of domains, as typed data.

use mullion_abi::Access;
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
    /// (`Canceller`).
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
pub struct RawFault {
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

impl RawFault {
    /// An address as an offset in the window, if it lies there.
    #[must_use]
    pub fn offset(&self, address: u64) -> Option<u64> {
        address
            .checked_sub(self.base)
            .filter(|offset| *offset < mullion_abi::WINDOW_SIZE)
    }
}

impl std::error::Error for RawFault {}

impl fmt::Display for RawFault {
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

impl RawFault {
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
