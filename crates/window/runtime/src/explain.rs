//! What the run time knows of a fault, for [`mullion_report::meaning`], which says what it means.

use crate::assembly;
use crate::control_stack::CONTROL_LOW;
use crate::fault_record::Record;
use crate::inner::Inner;
use crate::memory::Claimed;
use crate::tcb::Tcb;
use crate::{reserve, steps};
use mullion_abi::Access;
use mullion_report::fault::{Cause, RawFault};
use mullion_report::meaning::{Scene, Taken};

const RSP: usize = 7;

/// A fault, its thread and its domain.
struct Here<'a>(&'a Record, &'a Tcb, &'a Inner);

impl Scene for Here<'_> {
    fn limit(&self) -> Cause {
        self.0.granted.cause()
    }

    fn is_control_stack_full(&self) -> bool {
        let Self(record, tcb, _) = self;
        let guard = tcb.foot()..tcb.foot() + CONTROL_LOW;
        let undelivered =
            record.code == reserve::BY_KERNEL && tcb.is_short_of_room(record.registers[RSP]);
        undelivered || guard.contains(&record.address)
    }

    fn overflowed_stack(&self, offset: u64) -> Option<u64> {
        let stack = self.2.stacks().overflowed(offset)?;
        Some(stack.end - stack.start)
    }

    fn access(&self, offset: u64) -> Option<Access> {
        let memory = self.2.memory();
        memory.access(Claimed(memory.base() + offset))
    }

    fn code(&self, offset: u64) -> Option<[u8; 3]> {
        let memory = self.2.memory();
        memory.read(Claimed(memory.base() + offset)).ok()
    }

    fn own_trap(&self, address: u64) -> Option<Cause> {
        [
            (assembly::mullion_trap_gate as *const (), Cause::UnknownGate),
            (
                assembly::mullion_trap_control as *const (),
                Cause::BadUnwind,
            ),
            (
                assembly::mullion_trap_target as *const (),
                Cause::UnlabelledUnwind,
            ),
        ]
        .into_iter()
        .find_map(|(trap, cause)| (trap as u64 == address).then_some(cause))
    }

    fn steps(&self) -> Option<(u64, u64)> {
        let (limits, domain) = (self.2.limits(), self.2);
        let left = steps::left(limits, domain.image(), domain.memory())?;
        Some((limits.steps?, left))
    }
}

impl Record {
    fn taken(&self, domain: &Inner) -> Taken<'_> {
        let (returns, omitted) = self.returns();
        Taken {
            signal: self.signal,
            code: self.code,
            address: self.address,
            error: self.error,
            trap: self.trap,
            registers: &self.registers,
            returns,
            omitted,
            base: domain.memory().base(),
        }
    }

    /// The fault that the record describes.
    pub(crate) fn explain(&self, tcb: &Tcb, domain: &Inner) -> RawFault {
        self.taken(domain).meaning(&Here(self, tcb, domain))
    }

    /// As [`Record::explain`], for a domain that was in a host function.
    pub(crate) fn explain_in_gate(&self, cause: Cause, domain: &Inner) -> RawFault {
        self.taken(domain).meaning_in_gate(cause)
    }
}
