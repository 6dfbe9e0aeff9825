//! Imports: functions of the host, or of other domains.

use crate::admission;
use crate::call::{CallError, MAX_ARGUMENTS, NotReturned, REGISTERS, Returned};
use crate::control::Tcb;
use crate::dispatch::{Ending, HostFunction};
use crate::domain::{DomainNumber, Inner};
use crate::error::Error;
use crate::invoke::Request;
use crate::limits::CallLimits;
use crate::memory::Claimed;
use crate::records::Decided;
use crate::trampoline::GateFrame;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

/// What stands behind a gate.
pub(crate) struct Import {
    function: HostFunction,
    /// In the function's place, once it is set.
    link: OnceLock<Link>,
}

/// How a domain calls another one.
#[derive(Clone, Default)]
pub struct LinkOptions {
    /// Passes the eight vector registers on as well; without it the called domain
    /// finds 0 there.
    pub doubles: bool,
    /// Integers beyond those in registers that are passed on, from the calling
    /// domain's stack to the called one's: so many of them, at most
    /// [`MAX_ARGUMENTS`] with those in registers.
    pub stacked: usize,
    /// Limits of each call, beside those of the called domain.
    pub limits: Option<CallLimits>,
    /// What becomes of a call that fails.
    pub failed: Option<Failed>,
}

/// Asked when the called domain takes no calls, faults or is out of time: what the
/// import returns then, or why the invocation of the calling one ends. Without it,
/// that ends with the [`CallError`]. It runs on the thread of the call, in the
/// place of a host function.
pub type Failed = Arc<
    dyn Fn(CallError) -> Result<Returned, Box<dyn std::error::Error + Send + Sync>> + Send + Sync,
>;

impl fmt::Debug for LinkOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut all = formatter.debug_struct("LinkOptions");
        all.field("doubles", &self.doubles)
            .field("stacked", &self.stacked)
            .finish_non_exhaustive()
    }
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

    /// Puts a link in force that the supervisor has allowed.
    pub(crate) fn link(&self, link: Link, decided: &Decided<'_>) -> Result<(), Error> {
        if !decided.allows_entry(link.target) {
            return Err(Error::Undecided {
                start: link.target,
                end: link.target + 1,
            });
        }
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
