//! Imports: functions of the host, or of other domains.

use crate::call::Returned;
use crate::host_function::HostFunction;
use crate::limits::CallLimits;
use crate::number::DomainNumber;
use crate::records::Decided;
use mullion_report::error::Error;
use mullion_report::refused::CallError;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

/// What stands behind a gate: a function of the host, or of a domain of type `D`.
pub(crate) struct Import<D> {
    function: HostFunction,
    /// In the function's place, once it is set.
    link: OnceLock<Link<D>>,
}

/// How a domain calls another one.
#[derive(Clone, Default)]
pub struct LinkOptions {
    /// Passes the eight vector registers on as well; without it the called domain
    /// finds 0 there.
    pub doubles: bool,
    /// Integers beyond those in registers that are passed on, from the calling
    /// domain's stack to the called one's. It is so many of them, at most
    /// [`MAX_ARGUMENTS`](crate::MAX_ARGUMENTS) with those in registers.
    pub stacked: usize,
    /// Limits of each call, beside those of the called domain.
    pub limits: Option<CallLimits>,
    /// What becomes of a call that fails.
    pub failed: Option<Failed>,
}

/// Asked when the called domain takes no calls, faults or is out of time. It says
/// what the import returns then, or why the invocation of the calling one ends. Without it,
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

/// A call of another domain, of type `D` here.
pub(crate) struct Link<D> {
    pub(crate) callee: Weak<D>,
    number: DomainNumber,
    /// A labelled instruction of the callee's image, which keeps its place over restarts.
    pub(crate) target: u64,
    pub(crate) options: LinkOptions,
    pub(crate) calls: AtomicU64,
}

impl<D> Import<D> {
    pub(crate) fn new(function: HostFunction) -> Self {
        Self {
            function,
            link: OnceLock::new(),
        }
    }

    /// The host's function, unless another domain's has its place.
    #[inline]
    pub(crate) fn get(&self) -> Result<&HostFunction, &Link<D>> {
        self.link.get().map_or(Ok(&self.function), Err)
    }

    /// Puts a link in force that the supervisor has allowed.
    pub(crate) fn link(&self, link: Link<D>, decided: &Decided<'_>) -> Result<(), Error> {
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

impl<D> Link<D> {
    pub(crate) fn new(
        callee: Weak<D>,
        number: DomainNumber,
        target: u64,
        options: LinkOptions,
    ) -> Self {
        Self {
            callee,
            number,
            target,
            options,
            calls: AtomicU64::new(0),
        }
    }
}
