//! What a record of a fault means: the [`RawFault`] that the host is shown.

use crate::assembly;
use crate::control_stack::CONTROL_LOW;
use crate::fault_record::Record;
use crate::inner::Inner;
use crate::memory::Claimed;
use crate::tcb::Tcb;
use crate::{reserve, steps};
use mullion_abi::{
    GATE_BASE, GATE_SLOT_SIZE, GATE_SLOTS, GUARD_SIZE, TRAP_ACCESS, TRAP_LABEL, TRAP_STEPS,
};
use mullion_report::fault::{Attempt, Cause, RawFault, Registers};

/// Places in this order.
const RAX: usize = 0;
const RCX: usize = 2;
const RSP: usize = 7;
const R10: usize = 10;
const R11: usize = 11;
const R14: usize = 14;
const RIP: usize = 16;

impl Record {
    /// The fault that the record describes.
    pub(crate) fn explain(&self, tcb: &Tcb, domain: &Inner) -> RawFault {
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
        let (returns, omitted) = self.returns();
        let fault = RawFault {
            cause,
            base: domain.memory().base(),
            address: (access && known).then_some(self.address),
            instruction,
            registers: Some(Registers {
                values: self.registers,
            }),
            backtrace: returns.to_vec(),
            omitted,
        };
        match fault.offset(instruction) {
            Some(_) => fault,
            None => self.as_the_domain_sees(fault),
        }
    }

    /// A fault in code of the run time's on the domain's behalf (a built-in gate, or
    /// what hands it its arguments), by addresses of the domain's own.
    fn as_the_domain_sees(&self, mut fault: RawFault) -> RawFault {
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
    pub(crate) fn explain_in_gate(&self, cause: Cause, domain: &Inner) -> RawFault {
        let (returns, omitted) = self.returns();
        RawFault {
            cause,
            base: domain.memory().base(),
            address: None,
            instruction: returns.first().copied().unwrap_or(0),
            registers: None,
            backtrace: returns.get(1..).unwrap_or_default().to_vec(),
            omitted,
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
    if instruction == assembly::mullion_trap_gate as *const () as u64 {
        return Cause::UnknownGate;
    }
    if instruction == assembly::mullion_trap_control as *const () as u64 {
        return Cause::BadUnwind;
    }
    if instruction == assembly::mullion_trap_target as *const () as u64 {
        return Cause::UnlabelledUnwind;
    }
    match domain.memory().read::<3>(Claimed(instruction)) {
        Ok(TRAP_LABEL) => Cause::FailedLabel,
        Ok(TRAP_ACCESS) => Cause::TrappedAccess,
        Ok(TRAP_STEPS) => steps::trap(domain.limits(), domain.image(), domain.memory()),
        Ok([0x0f, 0x0b, _]) => Cause::Trap,
        _ => Cause::IllegalInstruction,
    }
}
