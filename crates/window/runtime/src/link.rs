//! Calls from one domain to another, with the host out of the way.

use crate::admission;
use crate::call::{MAX_ARGUMENTS, NotReturned, REGISTERS, Returned};
use crate::frame::GateFrame;
use crate::host_function::Ending;
use crate::import::Link;
use crate::inner::Inner;
use crate::invoke::Request;
use crate::memory::Claimed;
use crate::tcb::Tcb;
use mullion_report::error::Error;
use std::sync::atomic::Ordering;

impl Link<Inner> {
    /// Calls the other domain with the registers in the frame, and puts its
    /// result there.
    pub(crate) fn call(&self, tcb: &Tcb, caller: &Inner, frame: &GateFrame) -> Result<u64, Ending> {
        // A plain addition: the count is for people, and a locked one takes as
        // long as a part of the call.
        let calls = self.calls.load(Ordering::Relaxed);
        self.calls.store(calls + 1, Ordering::Relaxed);
        // A reference is counted before the state is looked at: see `life`. (Two locked
        // instructions; a note as `Used` takes it was measured to take longer here.)
        let callee = match self.callee.upgrade() {
            Some(callee) if callee.life.is_open() => Ok(callee),
            other => admission::guest(tcb, &self.callee, other),
        };
        let result = match callee {
            Err(error) => Err(self.not_made(error)),
            Ok(callee) => {
                let vectors = if self.options.doubles {
                    frame.vectors.as_ptr().cast()
                } else {
                    std::ptr::null()
                };
                let request = Request {
                    target: self.target,
                    integers: &frame.integers,
                    vectors,
                    stacked: &[],
                };
                let limits = self.options.limits.as_ref();
                if self.options.stacked == 0 {
                    callee.invoke(tcb, request, limits)
                } else {
                    let words = self.stacked(caller, frame.r15)?;
                    let stacked = words.as_slice();
                    callee.invoke(tcb, Request { stacked, ..request }, limits)
                }
            }
        };
        let returned = match result {
            Ok(returned) => returned,
            Err(error) => self.failed(error)?,
        };
        if returned.high != 0 {
            frame.set_high(returned.high);
        }
        if returned.double.to_bits() != 0 {
            frame.set_vector([returned.double.to_bits(), 0]);
        }
        Ok(returned.integer)
    }

    /// The words on the calling domain's stack.
    #[cold]
    fn stacked(&self, caller: &Inner, stack: u64) -> Result<Vec<u64>, Ending> {
        let memory = caller.memory();
        let count = self.options.stacked.min(MAX_ARGUMENTS - REGISTERS);
        let word = |index: usize| {
            let offset = (stack as u32).wrapping_add(8 * index as u32);
            memory.read_u64(Claimed(memory.base() + u64::from(offset)))
        };
        let words: Result<_, _> = (0..count).map(word).collect();
        words.map_err(|bad| Ending::Refused(Box::new(bad)))
    }

    /// Counted where the called domain's figures are, if it is still there.
    #[cold]
    fn not_made(&self, error: Error) -> NotReturned {
        match self.callee.upgrade() {
            Some(callee) => callee.not_made(error),
            None => error.into(),
        }
    }

    #[cold]
    fn failed(&self, error: NotReturned) -> Result<Returned, Ending> {
        match &self.options.failed {
            Some(failed) => failed(*error).map_err(Ending::Refused),
            None => Err(Ending::Refused(error)),
        }
    }
}
