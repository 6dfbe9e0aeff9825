//! What a fault means: from what the signal handler has taken down, and what may be asked about the domain.

use crate::fault::{Attempt, Cause, RawFault, Registers};
use mullion_abi::{
    Access, GATE_BASE, GATE_SLOT_SIZE, GATE_SLOTS, GUARD_SIZE, TRAP_ACCESS, TRAP_LABEL, TRAP_STEPS,
    WINDOW_SIZE,
};

/// Places in the order of [`REGISTER_NAMES`](crate::fault::REGISTER_NAMES).
const RAX: usize = 0;
const RCX: usize = 2;
const R10: usize = 10;
const R11: usize = 11;
const R14: usize = 14;
const RIP: usize = 16;

/// Bits of the error code of a page fault, and the number of another fault.
const PAGE_FAULT_WRITE: u64 = 1 << 1;
const PAGE_FAULT_FETCH: u64 = 1 << 4;
const TRAP_GENERAL_PROTECTION: u64 = 13;
/// Codes of SIGFPE (siginfo.h).
const FPE_INTDIV: libc::c_int = 1;
const FPE_INTOVF: libc::c_int = 2;

/// What a signal handler has taken down of a fault.
#[derive(Clone, Copy, Debug)]
pub struct Taken<'a> {
    /// The signal's number.
    pub signal: libc::c_int,
    /// Its code (siginfo.h).
    pub code: libc::c_int,
    /// The address that was accessed.
    pub address: u64,
    /// The processor's error code.
    pub error: u64,
    /// The number of the processor's exception.
    pub trap: u64,
    /// In the order of [`REGISTER_NAMES`](crate::fault::REGISTER_NAMES).
    pub registers: &'a [u64; 18],
    /// Return addresses, the innermost first.
    pub returns: &'a [u64],
    /// How many return addresses are left out.
    pub omitted: u64,
    /// The base of the domain's window.
    pub base: u64,
}

/// What may be asked about a domain in which a fault was. Offsets are bytes from the base of its window.
pub trait Scene {
    /// The limit that has ended the call, or its cancelling.
    fn limit(&self) -> Cause;
    /// Whether the thread's control stack is full.
    fn is_control_stack_full(&self) -> bool;
    /// The size in bytes of the data stack whose guard this offset lies in.
    fn overflowed_stack(&self, offset: u64) -> Option<u64>;
    /// What the domain may do at an offset.
    fn access(&self, offset: u64) -> Option<Access>;
    /// The code at an offset.
    fn code(&self, offset: u64) -> Option<[u8; 3]>;
    /// What a trap of the run time's own code at this address stands for.
    fn own_trap(&self, address: u64) -> Option<Cause>;
    /// The limit on steps in their number, and how many the domain's memory says are left.
    fn steps(&self) -> Option<(u64, u64)>;
}

impl Taken<'_> {
    /// The fault that was taken down.
    #[must_use]
    pub fn meaning(&self, scene: &impl Scene) -> RawFault {
        let instruction = self.registers[RIP];
        let cause = self.cause(scene, instruction);
        let access = matches!(
            cause,
            Cause::Access { .. }
                | Cause::DataStackOverflow { .. }
                | Cause::ControlStackOverflow
                | Cause::Bus
        );
        // A general protection fault (an address that is none) comes without one.
        let known = self.trap != TRAP_GENERAL_PROTECTION;
        let fault = RawFault {
            cause,
            base: self.base,
            address: (access && known).then_some(self.address),
            instruction,
            registers: Some(Registers {
                values: *self.registers,
            }),
            backtrace: self.returns.to_vec(),
            omitted: self.omitted,
        };
        match fault.offset(instruction) {
            Some(_) => fault,
            None => self.as_the_domain_sees(fault),
        }
    }

    /// A fault in code of the run time's on the domain's behalf (a built-in gate, or
    /// what hands it its arguments), by addresses of the domain's own.
    fn as_the_domain_sees(&self, mut fault: RawFault) -> RawFault {
        let mut values = *self.registers;
        values[R14] = fault.base;
        for changed in [RAX, RCX, R10, R11] {
            values[changed] = 0;
        }
        // Code that has not been called, but jumped to, has no caller: then the gate's slot, or
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

    /// As [`Taken::meaning`], for a domain that was in a host function.
    #[must_use]
    pub fn meaning_in_gate(&self, cause: Cause) -> RawFault {
        RawFault {
            cause,
            base: self.base,
            address: None,
            instruction: self.returns.first().copied().unwrap_or(0),
            registers: None,
            backtrace: self.returns.get(1..).unwrap_or_default().to_vec(),
            omitted: self.omitted,
        }
    }

    /// An address as an offset in the window, if it lies there.
    fn offset(&self, address: u64) -> Option<u64> {
        let offset = address.checked_sub(self.base)?;
        (offset < WINDOW_SIZE).then_some(offset)
    }

    fn cause(&self, scene: &impl Scene, instruction: u64) -> Cause {
        match self.signal {
            0 => scene.limit(),
            libc::SIGSEGV => self.access(scene),
            libc::SIGBUS => Cause::Bus,
            libc::SIGILL => self.illegal(scene, instruction),
            libc::SIGFPE if matches!(self.code, FPE_INTDIV | FPE_INTOVF) => Cause::Division,
            libc::SIGFPE => Cause::FloatingPoint,
            _ => Cause::Breakpoint,
        }
    }

    fn access(&self, scene: &impl Scene) -> Cause {
        if scene.is_control_stack_full() {
            return Cause::ControlStackOverflow;
        }
        let offset = self.offset(self.address);
        if let Some(size) = offset.and_then(|offset| scene.overflowed_stack(offset)) {
            return Cause::DataStackOverflow { size };
        }
        let attempt = match self.error {
            error if error & PAGE_FAULT_FETCH != 0 => Attempt::Execute,
            error if error & PAGE_FAULT_WRITE != 0 => Attempt::Write,
            _ => Attempt::Read,
        };
        let permitted = offset
            .filter(|offset| *offset >= GUARD_SIZE)
            .and_then(|offset| scene.access(offset));
        Cause::Access { attempt, permitted }
    }

    /// Which check it was that failed.
    fn illegal(&self, scene: &impl Scene, instruction: u64) -> Cause {
        if let Some(cause) = scene.own_trap(instruction) {
            return cause;
        }
        let code = self
            .offset(instruction)
            .and_then(|offset| scene.code(offset));
        match code {
            Some(TRAP_LABEL) => Cause::FailedLabel,
            Some(TRAP_ACCESS) => Cause::TrappedAccess,
            Some(TRAP_STEPS) => match scene.steps() {
                Some((granted, 0)) => Cause::StepLimit { granted },
                _ => Cause::Trap,
            },
            Some([0x0f, 0x0b, _]) => Cause::Trap,
            _ => Cause::IllegalInstruction,
        }
    }
}
