//! Host functions: what a domain's gate call reaches.

use crate::control::Tcb;
use crate::domain::{Arguments, CallError, Entry, Inner, Returned};
use crate::fault::Cause;
use crate::memory::{Claimed, Memory};
use crate::trampoline::{GateFrame, ended};
use mullion_abi::GATE_FIRST_IMPORT;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Bytes below the data stack pointer that a function may use without moving it.
const RED_ZONE: u32 = 128;

/// A function of the host that a domain may call. What it returns is the
/// domain's `%rax`; an [`End`] ends the invocation that called it.
pub type HostFunction = Arc<dyn Fn(&mut Caller<'_>) -> Result<u64, End> + Send + Sync>;

/// Why a host function ends the invocation that called it.
#[derive(Debug, thiserror::Error)]
pub enum End {
    /// The domain asked to end, as `exit` does; no fault.
    #[error("exited with status {0}")]
    Exit(i32),
    /// The domain raised a signal against itself.
    #[error("raised signal {0}")]
    Raised(i32),
    /// The host will not go on.
    #[error(transparent)]
    Refused(#[from] Box<dyn std::error::Error + Send + Sync>),
}

/// What `dispatch` leaves for the invocation's caller.
pub(crate) enum Ending {
    Exit(i32),
    Fault(Cause),
    Refused(Box<dyn std::error::Error + Send + Sync>),
    Panic(Box<dyn Any + Send>),
}

/// A domain that has called a host function, during the call.
pub struct Caller<'a> {
    tcb: &'a Tcb,
    frame: &'a mut GateFrame,
    domain: &'a Inner,
}

impl Caller<'_> {
    /// The integer and pointer arguments, in order. Nothing about them is checked.
    #[inline]
    #[must_use]
    pub fn integers(&self) -> [u64; 6] {
        let frame = &self.frame;
        [
            frame.rdi, frame.rsi, frame.rdx, frame.rcx, frame.r8, frame.r9,
        ]
    }

    /// An argument that is a pointer, 0 to 5.
    ///
    /// # Panics
    /// If there is no such argument.
    #[inline]
    #[must_use]
    pub fn pointer(&self, index: usize) -> Claimed {
        Claimed(self.integers()[index])
    }

    /// A floating-point argument, 0 to 7.
    ///
    /// # Panics
    /// If there is no such argument.
    #[inline]
    #[must_use]
    pub fn double(&self, index: usize) -> f64 {
        f64::from_bits(self.frame.vectors[index][0])
    }

    /// `%rax` at the call: the system interface's number.
    #[inline]
    #[must_use]
    pub fn number(&self) -> u64 {
        self.frame.rax
    }

    /// Sets the floating-point result. Without it the domain finds 0.
    #[inline]
    pub fn return_double(&mut self, value: f64) {
        self.frame.vector = [value.to_bits(), 0];
    }

    /// Sets the second half of a result of two registers. Without it the domain finds 0.
    #[inline]
    pub fn return_high(&mut self, value: u64) {
        self.frame.high = value;
    }

    /// The memory of the domain.
    #[inline]
    #[must_use]
    pub fn memory(&self) -> &Memory {
        self.domain.memory()
    }

    /// Where the domain may be entered: a function pointer that it passed.
    pub fn entry(&self, address: Claimed) -> Result<Entry, crate::Error> {
        self.domain.entry(address)
    }

    /// Calls back into the domain, on this thread, on top of what it was doing.
    pub fn call(&self, entry: Entry, arguments: &Arguments) -> Result<Returned, CallError> {
        self.domain.call(entry, arguments)
    }

    /// Whether the time limit has passed, so that the invocation ends when the
    /// host function returns. Its signal interrupts system calls that wait: a
    /// host function that would try again looks here first.
    #[must_use]
    pub fn is_out_of_time(&self) -> bool {
        self.tcb.is_stopped()
    }
}

/// From the gate. Returns 0 to go on with the results in the frame.
///
/// # Safety
/// The trampoline calls it on the host's stack of the thread whose block `tcb`
/// is, with the frame that it has just built.
pub(crate) unsafe extern "C" fn dispatch(tcb: *const Tcb, frame: *mut GateFrame, slot: u32) -> u32 {
    // SAFETY: the block outlives the invocation; only shared references to it exist.
    let tcb = unsafe { &*tcb };
    // SAFETY: the frame is on this thread's stack, and nobody else's until we return.
    let frame = unsafe { &mut *frame };
    // SAFETY: set by `enter` from a reference that lives until the invocation ends.
    let domain = unsafe { &*tcb.domain.get().cast::<Inner>() };
    match run(tcb, frame, domain, slot) {
        Ok(value) => {
            frame.rax = value;
            ended::RETURNED
        }
        Err(ending) => stop(tcb, frame, ending),
    }
}

#[inline]
fn run(tcb: &Tcb, frame: &mut GateFrame, domain: &Inner, slot: u32) -> Result<u64, Ending> {
    let import = slot.wrapping_sub(GATE_FIRST_IMPORT as u32) as usize;
    let function = domain
        .imports()
        .get(import)
        .ok_or(Ending::Fault(Cause::UnknownGate))?;
    frame.high = 0;
    frame.vector = [0; 2];
    // A nested invocation of the same domain begins below what this one uses,
    // its red zone included. Modulo the window, as the domain's own steps are.
    let stack = (frame.r15 as u32).wrapping_sub(RED_ZONE) & !15;
    let outer = tcb.replace_top(domain, domain.memory().base() + u64::from(stack));
    let mut caller = Caller { tcb, frame, domain };
    // No panic may unwind through the trampoline. What it left half done is the
    // host function's affair, as with any panic that somebody catches.
    let result = catch_unwind(AssertUnwindSafe(|| function(&mut caller)));
    tcb.replace_top(domain, outer);
    match result {
        Ok(Ok(_)) if tcb.is_stopped() => Err(Ending::Fault(Cause::TimeLimit {
            granted: domain.limits().time.unwrap_or_default(),
        })),
        Ok(Ok(value)) => Ok(value),
        Ok(Err(End::Exit(status))) => Err(Ending::Exit(status)),
        Ok(Err(End::Raised(signal))) => Err(Ending::Fault(Cause::Raised { signal })),
        Ok(Err(End::Refused(error))) => Err(Ending::Refused(error)),
        Err(payload) => Err(Ending::Panic(payload)),
    }
}

#[cold]
fn stop(tcb: &Tcb, frame: &GateFrame, ending: Ending) -> u32 {
    tcb.record_gate(frame.control);
    tcb.end.set(Some(Box::new(ending)));
    ended::BY_HOST
}
