//! What domains do when a thread of the host ends. Each that the thread has called, and whose image
//! has a function for that, is called once more. It is called by that thread, in what is left of its time.
//!
//! It is an ordinary invocation, limited in time, before anything of the thread is given back. A
//! domain that has been restarted meanwhile is another life, of which the thread has nothing. One
//! that has ended takes no calls. One that is gone, or that `restart` is at work on, is left alone
//! (the handshake of `WindowDomain::restart`).

use crate::inner::Inner;
use crate::invoke::Request;
use crate::limits::CallLimits;
use crate::tcb::Tcb;
use mullion_report::error::Error;
use mullion_report::refused::CallError;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::time::{Duration, Instant};

/// Greatest time that a domain has for what it does at a thread's end.
pub const THREAD_END: Duration = Duration::from_millis(100);
/// Greatest time that all domains of a thread have together. What comes later is not done.
pub const THREAD_ENDS: Duration = Duration::from_secs(1);

/// The thread ends.
pub(crate) fn run(tcb: &Tcb) {
    // SAFETY: gettid cannot fail and touches no memory.
    let thread = unsafe { libc::gettid() };
    // A process may end within a call, and a child of `fork` must enter no domain.
    if !tcb.is_outside() || thread != tcb.thread {
        return;
    }
    // Whoever gave the thread its alternate stack may have taken it back by now, and
    // with it ours out of force: the Rust standard library does. A thread that ends in
    // a signal's handler enters no domain.
    if tcb.prepare().is_err() {
        return;
    }
    let begun = Instant::now();
    // Domains that are called for the first time from one of these calls come, too.
    while let Some((domain, serial)) = tcb.next_to_end() {
        let Some(left) = THREAD_ENDS.checked_sub(begun.elapsed()) else {
            return;
        };
        // From here on `restart` finds the domain busy, or we find it ended or another life.
        if let Some(domain) = domain.upgrade() {
            domain.end_thread(tcb, serial, left.min(THREAD_END));
        }
    }
}

impl Inner {
    fn end_thread(&self, tcb: &Tcb, serial: u64, time: Duration) {
        let Some(target) = self.thread_end() else {
            return;
        };
        if !self.admits_guest() || self.serial() != serial {
            return;
        }
        let limits = CallLimits {
            time: Some(time),
            ..CallLimits::default()
        };
        let mut call = || {
            let request = Request {
                target,
                integers: &[0; 6],
                vectors: ptr::null(),
                stacked: &[],
            };
            let called = catch_unwind(AssertUnwindSafe(|| {
                self.invoke(tcb, request, Some(&limits))
            }));
            match called {
                Ok(Ok(_)) => Ok(()),
                Ok(Err(error)) => match *error {
                    CallError::NotMade(Error::Ended) => Ok(()),
                    other => Err(other),
                },
                Err(_) => Err(CallError::Refused("a host function panicked".into())),
            }
        };
        // A panic here would end the process. Whoever panics has said so.
        let _said = catch_unwind(AssertUnwindSafe(|| match self.around_thread_end() {
            Some(around) => around(&mut call),
            None => drop(call()),
        }));
    }
}
