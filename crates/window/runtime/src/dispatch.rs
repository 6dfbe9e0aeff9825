//! From a gate call to what stands behind it, and back.

use crate::assembly::{Outcome, ended};
use crate::deadline;
use crate::frame::GateFrame;
use crate::host_function::{Ending, GateCall};
use crate::inner::Inner;
use crate::tcb::{GateLimit, Tcb};
use mullion_abi::GATE_FIRST_IMPORT;
use mullion_report::error::Error;
use mullion_report::fault::Cause;
use mullion_report::meter::Tally;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// From the gate: the domain's `%rax`, and how to go on (`ended`).
///
/// # Safety
/// The trampoline calls it on the host's stack with the frame that it has just
/// built, and the domain and thread that the frame belongs to.
pub(crate) unsafe extern "C" fn dispatch(
    frame: *const GateFrame,
    domain: *const Inner,
    slot: u32,
    tcb: *const Tcb,
) -> Outcome {
    // SAFETY: the frame stays until we return, and only this thread uses it; what
    // changes in it is in cells.
    let frame = unsafe { &*frame };
    // SAFETY: the block and the domain outlive the invocation; only shared
    // references to them exist.
    let (tcb, domain) = unsafe { (&*tcb, &*domain) };
    frame.begin();
    let ran = run(tcb, frame, domain, slot);
    if tcb.control.get() != frame.control {
        return jumped_to(tcb, frame);
    }
    match ran {
        Ok(value) if !tcb.is_stopped() => Outcome {
            value,
            ended: u64::from(if frame.has_more() {
                ended::RETURNED_MORE
            } else {
                ended::RETURNED
            }),
        },
        Ok(_) => stop(tcb, frame, Ending::Fault(tcb.limit().cause())),
        Err(ending) => stop(tcb, frame, ending),
    }
}

#[inline]
fn run(tcb: &Tcb, frame: &GateFrame, domain: &Inner, slot: u32) -> Result<u64, Ending> {
    let import = slot.wrapping_sub(GATE_FIRST_IMPORT as u32) as usize;
    let import = domain.imports().get(import).ok_or_else(unknown)?;
    tcb.count(domain, Tally::host_call);
    let limit = tcb.gates.get();
    if std::ptr::eq(limit.domain, domain) {
        let granted = limit.granted;
        let left = limit.left.checked_sub(1);
        let left = left.ok_or(Ending::Fault(Cause::GateLimit { granted }))?;
        tcb.gates.set(GateLimit { left, ..limit });
    }
    let mut caller = GateCall { frame };
    // Looked at in its place: to move a whole `CallEnd`, of which the parts have been
    // written one by one, takes as long as the rest of the call.
    let call = || match import.get() {
        Ok(function) => function(&mut caller).map_err(|end| boxed(end.into())),
        Err(link) => {
            frame.set_linked();
            link.call(tcb, domain, frame).map_err(boxed)
        }
    };
    // No panic may unwind through the trampoline. What it left half done is the
    // host function's affair, as with any panic that somebody catches.
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => result.map_err(|ending| *ending),
        Err(payload) => Err(Ending::Panic(payload)),
    }
}

#[cold]
#[inline(never)]
fn boxed(ending: Ending) -> Box<Ending> {
    Box::new(ending)
}

#[cold]
fn unknown() -> Ending {
    Ending::Fault(Cause::UnknownGate)
}

/// A host function that the domain has called was left by a jump to this one, which has returned. What
/// lies between them has not ended: its limits do here.
#[cold]
fn jumped_to(tcb: &Tcb, frame: &GateFrame) -> Outcome {
    tcb.control.set(frame.control);
    tcb.forget_limits();
    stop(tcb, frame, Ending::Refused(Box::new(Error::Abandoned)))
}

#[cold]
fn stop(tcb: &Tcb, frame: &GateFrame, ending: Ending) -> Outcome {
    tcb.record_gate(frame.control, frame.outer_control);
    tcb.end.set(Some(Box::new(ending)));
    Outcome {
        value: 0,
        ended: u64::from(ended::BY_HOST),
    }
}

impl Tcb {
    /// For a thread on which an invocation was left by a jump.
    fn forget_limits(&self) {
        self.gates.set(GateLimit::NONE);
        self.most_nested.set(u32::MAX);
        deadline::forget(self);
    }
}
