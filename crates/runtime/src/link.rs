//! Imports: functions of the host, or of other domains.

use crate::call::CallError;
use crate::control::Tcb;
use crate::dispatch::{Ending, HostFunction};
use crate::domain::{DomainNumber, Inner};
use crate::error::Error;
use crate::invoke::Request;
use crate::trampoline::GateFrame;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{OnceLock, Weak};

/// What stands behind a gate.
pub(crate) struct Import {
    function: HostFunction,
    /// In the function's place, once it is set.
    link: OnceLock<Link>,
}

/// How a domain calls another one.
#[derive(Clone, Copy, Debug, Default)]
pub struct LinkOptions {
    /// Passes the eight vector registers on as well; without it the called domain
    /// finds 0 there.
    pub doubles: bool,
    /// What the import returns if the called domain takes no calls, faults or is
    /// out of time; `None`: that ends the invocation of the calling one.
    pub failed: Option<u64>,
}

/// An import that is another domain's function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Linked {
    /// The index of the import.
    pub import: usize,
    /// Who is called.
    pub callee: DomainNumber,
    /// The address of the function.
    pub address: u64,
    /// Calls so far; on several threads at once some may not be counted.
    pub calls: u64,
}

pub(crate) struct Link {
    callee: Weak<Inner>,
    number: DomainNumber,
    /// A labelled instruction of the callee's image, which keeps its place over restarts.
    target: u64,
    options: LinkOptions,
    calls: AtomicU64,
}

impl Import {
    pub(crate) fn new(function: HostFunction) -> Self {
        Self {
            function,
            link: OnceLock::new(),
        }
    }

    /// The host's function, unless another domain's has its place.
    #[inline]
    pub(crate) fn get(&self) -> Result<&HostFunction, &Link> {
        self.link.get().map_or(Ok(&self.function), Err)
    }

    pub(crate) fn link(&self, link: Link) -> Result<(), Error> {
        self.link.set(link).map_err(|_| Error::Linked)
    }

    pub(crate) fn linked(&self, import: usize) -> Option<Linked> {
        self.link.get().map(|link| Linked {
            import,
            callee: link.number,
            address: link.target,
            calls: link.calls.load(Ordering::Relaxed),
        })
    }
}

impl Link {
    pub(crate) fn new(callee: &std::sync::Arc<Inner>, target: u64, options: LinkOptions) -> Self {
        Self {
            callee: std::sync::Arc::downgrade(callee),
            number: callee.number,
            target,
            options,
            calls: AtomicU64::new(0),
        }
    }

    /// Calls the other domain with the registers in the frame, and puts its
    /// result there.
    pub(crate) fn call(&self, tcb: &Tcb, frame: &mut GateFrame) -> Result<u64, Ending> {
        // A plain addition: the count is for people, and a locked one takes as
        // long as a part of the call.
        let calls = self.calls.load(Ordering::Relaxed);
        self.calls.store(calls + 1, Ordering::Relaxed);
        let result = match self.callee.upgrade() {
            None => Err(Error::Ended.into()),
            // From here on `restart` finds the domain busy, or `invoke` finds it ended.
            Some(callee) => {
                let vectors = if self.options.doubles {
                    frame.vectors.as_ptr().cast()
                } else {
                    std::ptr::null()
                };
                let integers = frame.integers();
                let request = Request {
                    target: self.target,
                    integers: &integers,
                    vectors,
                    stacked: &[],
                };
                callee.invoke(tcb, request)
            }
        };
        match result {
            Ok(returned) => {
                frame.high = returned.high;
                frame.vector = [returned.double.to_bits(), 0];
                Ok(returned.integer)
            }
            Err(error) => self.failed(error),
        }
    }

    #[cold]
    fn failed(&self, error: CallError) -> Result<u64, Ending> {
        self.options
            .failed
            .ok_or_else(|| Ending::Refused(Box::new(error)))
    }
}
