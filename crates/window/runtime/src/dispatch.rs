//! Host functions: what a domain's gate call reaches.

use crate::call::{Arguments, CallError, Returned};
use crate::control::{GateLimit, Tcb};
use crate::domain::{DomainNumber, Entry, Inner};
use crate::error::Error;
use crate::fault::Cause;
use crate::limits::CallLimits;
use crate::memory::{BadAddress, Claimed, Memory};
use crate::meter::Tally;
use crate::trampoline::{GateFrame, Outcome, ended, frame_at};
use mullion_abi::GATE_FIRST_IMPORT;
use std::any::Any;
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
    /// It has handed out more bytes than it was granted.
    #[error("output limit of {granted} bytes exceeded")]
    OutputLimit {
        /// What it was granted.
        granted: u64,
    },
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
    frame: &'a GateFrame,
}

impl Caller<'_> {
    /// The integer and pointer arguments, in order. Nothing about them is checked.
    #[inline]
    #[must_use]
    pub fn integers(&self) -> [u64; 6] {
        self.frame.integers
    }

    /// The integer argument with this index, from 0, beyond those in registers
    /// too: from 6 on they are read from the domain's stack.
    ///
    /// # Errors
    /// [`BadAddress`]: there is no such stack.
    #[inline]
    pub fn argument(&self, index: u32) -> Result<u64, BadAddress> {
        match self.frame.integers.get(index as usize) {
            Some(value) => Ok(*value),
            None => {
                let place = (self.frame.r15 as u32).wrapping_add((index - 6).wrapping_mul(8));
                let memory = self.memory();
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
        self.frame.set_vector([value.to_bits(), 0]);
    }

    /// Sets the second half of a result of two registers. Without it the domain finds 0.
    #[inline]
    pub fn return_high(&mut self, value: u64) {
        self.frame.set_high(value);
    }

    /// The memory of the domain.
    #[inline]
    #[must_use]
    pub fn memory(&self) -> &Memory {
        self.frame.domain().memory()
    }

    /// The domain that has called the host function.
    #[must_use]
    pub fn domain(&self) -> DomainNumber {
        self.frame.domain().number
    }

    /// The domain that has called this one by a link, if it was not the host.
    #[must_use]
    pub fn called_by(&self) -> Option<DomainNumber> {
        // Then that one's gate call is the next, and it is a link's.
        let outer = self.frame.outer()?;
        outer.is_linked().then(|| outer.domain().number)
    }

    /// Where the domain may be entered: a function pointer that it passed.
    pub fn entry(&self, address: Claimed) -> Result<Entry, crate::Error> {
        self.frame.domain().entry(address)
    }

    /// Calls back into the domain, on this thread, on top of what it was doing.
    pub fn call(&self, entry: Entry, arguments: &Arguments) -> Result<Returned, CallError> {
        let called = self.frame.domain().call(entry, arguments);
        called.map_err(|error| *error)
    }

    /// As [`Caller::call`], with limits of its own.
    pub fn call_limited(
        &self,
        entry: Entry,
        arguments: &Arguments,
        limits: &CallLimits,
    ) -> Result<Returned, CallError> {
        self.frame
            .domain()
            .call_limited(entry, arguments, Some(limits))
            .map_err(|error| *error)
    }

    /// The domain is about to hand out so many bytes as output: counts them.
    ///
    /// # Errors
    /// [`End::OutputLimit`]: they are more than it may. To be returned by the host
    /// function, in the place of taking them.
    pub fn charge_output(&self, bytes: u64) -> Result<(), End> {
        self.frame.domain().charge_output(bytes)
    }

    /// Whether the domain has ended, by another call: what it would wait for may never come.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.frame.domain().life.has_ended()
    }

    /// Whether the time limit has passed, or the call was cancelled, so that the invocation ends when the
    /// host function returns. Its signal interrupts system calls that wait: a
    /// host function that would try again looks here first.
    #[must_use]
    pub fn is_out_of_time(&self) -> bool {
        self.frame.tcb().is_stopped()
    }
}

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
    let mut caller = Caller { frame };
    // Looked at in its place: to move a whole `End`, of which the parts have been
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

impl From<End> for Ending {
    fn from(end: End) -> Self {
        match end {
            End::Exit(status) => Self::Exit(status),
            End::Raised(signal) => Self::Fault(Cause::Raised { signal }),
            End::OutputLimit { granted } => Self::Fault(Cause::OutputLimit { granted }),
            End::Refused(error) => Self::Refused(error),
        }
    }
}

impl Tcb {
    /// How many invocations the next one is nested in.
    #[inline]
    pub(crate) fn depth(&self) -> u32 {
        frame_at(self.control.get()).map_or(0, GateFrame::depth)
    }

    /// The data stack at the gate call of `domain` on this thread that was made
    /// last, if it is in one.
    #[inline]
    pub(crate) fn innermost(&self, domain: &Inner) -> Option<u64> {
        let mut frames = self.frames();
        let frame = frames.find(|frame| std::ptr::eq(frame.domain(), domain));
        frame.map(|frame| frame.r15)
    }

    /// The gate calls that the thread is in, the innermost first.
    #[inline]
    pub(crate) fn frames(&self) -> impl Iterator<Item = &GateFrame> {
        std::iter::successors(frame_at(self.control.get()), |frame| frame.outer())
    }
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
