//! Host functions: what a domain's gate call reaches.

use crate::call::{Arguments, CallError, Returned};
use crate::control::Tcb;
use crate::domain::{DomainNumber, Entry, Inner};
use crate::fault::Cause;
use crate::memory::{BadAddress, Claimed, Memory};
use crate::trampoline::{GateFrame, ended};
use mullion_abi::GATE_FIRST_IMPORT;
use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

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
        self.frame.integers()
    }

    /// The integer argument with this index, from 0, beyond those in registers
    /// too: from 6 on they are read from the domain's stack.
    ///
    /// # Errors
    /// [`BadAddress`]: there is no such stack.
    #[inline]
    pub fn argument(&self, index: u32) -> Result<u64, BadAddress> {
        match self.frame.integers().get(index as usize) {
            Some(value) => Ok(*value),
            None => {
                let place = (self.frame.r15 as u32).wrapping_add((index - 6).wrapping_mul(8));
                let memory = self.domain.memory();
                memory.read_u64(Claimed(memory.base() + u64::from(place)))
            }
        }
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

    /// The domain that has called the host function.
    #[must_use]
    pub fn domain(&self) -> DomainNumber {
        self.domain.number
    }

    /// The domain that has called this one by a link, if it was not the host.
    #[must_use]
    pub fn called_by(&self) -> Option<DomainNumber> {
        self.tcb.caller()
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

/// A gate call that a thread is in.
pub(crate) struct Active {
    /// The gate call that this one is nested in, or null.
    outer: *const Active,
    /// The domain that made it, which lives as long as it is called.
    domain: *const Inner,
    /// Offset of its data stack pointer.
    pub(crate) stack: u32,
    /// Whether another domain is being called, and not the host.
    linked: Cell<bool>,
    /// How many gate calls the thread is in, this one included.
    depth: u32,
}

/// From the gate. Returns 0 to go on with the results in the frame.
///
/// # Safety
/// The trampoline calls it on the host's stack of the thread whose block `tcb`
/// is, with the frame that it has just built.
pub(crate) unsafe extern "C" fn dispatch(
    tcb: *const Tcb,
    frame: *mut GateFrame,
    slot: u32,
    domain: *const Inner,
) -> u32 {
    // SAFETY: the block outlives the invocation; only shared references to it exist.
    let tcb = unsafe { &*tcb };
    // SAFETY: the frame is on this thread's stack, and nobody else's until we return.
    let frame = unsafe { &mut *frame };
    frame.high = 0;
    frame.vector = [0; 2];
    let active = Active {
        outer: tcb.gates.get(),
        domain,
        stack: frame.r15 as u32,
        linked: Cell::new(false),
        depth: tcb.depth() + 1,
    };
    tcb.gates.set(&active);
    let outcome = run(tcb, frame, &active, slot);
    tcb.gates.set(active.outer);
    match outcome {
        Ok(value) => {
            frame.rax = value;
            ended::RETURNED
        }
        Err(ending) => stop(tcb, frame, ending),
    }
}

#[inline]
fn run(tcb: &Tcb, frame: &mut GateFrame, active: &Active, slot: u32) -> Result<u64, Ending> {
    // SAFETY: the trampoline's, of an invocation that lasts until we return.
    let domain = unsafe { &*active.domain };
    let import = slot.wrapping_sub(GATE_FIRST_IMPORT as u32) as usize;
    let import = domain.imports().get(import);
    let import = import.ok_or_else(unknown)?;
    if let Some(granted) = domain.limits().gate_calls {
        let left = tcb.gates_left.get().checked_sub(1);
        tcb.gates_left
            .set(left.ok_or(Ending::Fault(Cause::GateLimit { granted }))?);
    }
    let function = match import.get() {
        Ok(function) => function,
        Err(link) => {
            active.linked.set(true);
            // The panic of a host function that the called domain has called.
            let called = catch_unwind(AssertUnwindSafe(|| link.call(tcb, domain, frame)));
            return in_time(tcb, called.map_err(Ending::Panic)??);
        }
    };
    let mut caller = Caller { tcb, frame, domain };
    // No panic may unwind through the trampoline. What it left half done is the
    // host function's affair, as with any panic that somebody catches.
    match catch_unwind(AssertUnwindSafe(|| function(&mut caller))) {
        Ok(Ok(value)) => in_time(tcb, value),
        Ok(Err(end)) => Err(end.into()),
        Err(payload) => Err(Ending::Panic(payload)),
    }
}

/// The result, unless the invocation's time has passed meanwhile.
#[inline]
fn in_time(tcb: &Tcb, value: u64) -> Result<u64, Ending> {
    if tcb.is_stopped() {
        return Err(Ending::Fault(tcb.granted.get().cause()));
    }
    Ok(value)
}

#[cold]
fn unknown() -> Ending {
    Ending::Fault(Cause::UnknownGate)
}

impl From<End> for Ending {
    fn from(end: End) -> Self {
        match end {
            End::Exit(status) => Self::Exit(status),
            End::Raised(signal) => Self::Fault(Cause::Raised { signal }),
            End::Refused(error) => Self::Refused(error),
        }
    }
}

impl Tcb {
    /// How many invocations the next one is nested in.
    #[inline]
    pub(crate) fn depth(&self) -> u32 {
        // SAFETY: as in `innermost`.
        unsafe { self.gates.get().as_ref() }.map_or(0, |active| active.depth)
    }

    /// The gate call of `domain` on this thread that was made last, if it is in one.
    #[inline]
    pub(crate) fn innermost(&self, domain: &Inner) -> Option<&Active> {
        let mut next = self.gates.get();
        // SAFETY: the list holds the gate calls that this thread is in: `dispatch`
        // puts each there and takes it out before it returns.
        while let Some(active) = unsafe { next.as_ref() } {
            if std::ptr::eq(active.domain, domain) {
                return Some(active);
            }
            next = active.outer;
        }
        None
    }

    /// Who called the domain whose gate call is the innermost one, if it was a
    /// domain: then that one's gate call is the next, and it is a link's.
    fn caller(&self) -> Option<DomainNumber> {
        // SAFETY: as in `Tcb::innermost`: frames of gate calls that this thread is
        // in, and domains that live as long as calls are in them.
        unsafe {
            let outer = self.gates.get().as_ref()?.outer.as_ref()?;
            outer.linked.get().then(|| (*outer.domain).number)
        }
    }
}

#[cold]
fn stop(tcb: &Tcb, frame: &GateFrame, ending: Ending) -> u32 {
    tcb.record_gate(frame.control, frame.outer_control);
    tcb.end.set(Some(Box::new(ending)));
    ended::BY_HOST
}
