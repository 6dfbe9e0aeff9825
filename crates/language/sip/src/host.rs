//! What a host may do and no process may, and the value without which nobody does it.
//!
//! ```text
//!   Host::begin()    once in a program           -> Host, of this OS thread
//!   host.deputy()    -> Deputy, to another OS thread; deputy.enter() -> Host, of that one
//!   host.start(), host.statistics(), host.on_end() ...   methods, beside the modules that they are about
//! ```
//! **Why no process has one.** [`Host::begin`] gives one, once, and no process runs before [`Host::start`], which
//! takes one. The value is neither `Clone`, `Send` nor `Sync`: no message, no argument of a program and no static
//! holds it. A [`Deputy`] gives another one, but never on a worker, where processes run. A separately built SIP
//! cannot name any of this: its copy of this crate (feature `separate`) has no public `Host`.
//!
//! **Who calls.** Some functions are for processes and hosts: spawn, bind, open. They work for the process whose
//! thread runs, or for the host if the OS thread has a `Host`. An OS thread that has neither is refused
//! (`owner::caller`).

use std::fmt;
use std::marker::PhantomData;

use thiserror::Error;

use mullion_sip_core::owner::Teardown;
use mullion_sip_core::{AsHost, Critical};
#[cfg(not(feature = "separate"))]
use mullion_sip_core::{DecideError, Decider};

use crate::inner::CORE;

/// The power of the host, on one OS thread. Processes are started, looked at and served through it.
pub struct Host {
    /// It counts on the OS thread that it was made on.
    _thread: PhantomData<*mut ()>,
}

/// What gives other OS threads of the host their [`Host`]. Keep it where no code of a process finds it.
#[derive(Debug)]
pub struct Deputy(());

/// Why there is no [`Host`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum HostError {
    /// Somebody has it.
    #[error("the program has a host already: have it give a Deputy")]
    Begun,
    /// The OS thread is a worker's.
    #[error("a worker runs processes, and is no thread of the host")]
    Worker,
}

impl Host {
    /// The first, for the OS thread that calls.
    ///
    /// # Errors
    /// There has been one in this program.
    pub fn begin() -> Result<Host, HostError> {
        if CORE.has_begun() {
            return Err(HostError::Begun);
        }
        Host::enter()
    }

    /// The one of the OS thread that calls, if it has one.
    pub fn here() -> Option<Host> {
        CORE.is_hosts().then(Host::enter)?.ok()
    }

    /// What gives another OS thread its own.
    pub fn deputy(&self) -> Deputy {
        Deputy(())
    }

    fn enter() -> Result<Host, HostError> {
        if CORE.worker().is_some() {
            return Err(HostError::Worker);
        }
        CORE.count_host(1);
        Ok(Host {
            _thread: PhantomData,
        })
    }
}

impl Host {
    /// Has `hook` called at the end of every process from now on. The same function is registered once.
    pub fn on_end(&self, hook: Teardown) {
        CORE.on_end(hook);
    }

    /// From here on a process that keeps its worker asleep is ended. Not by itself, since processes that are linked into
    /// their host may wait for what the host does.
    pub fn end_sleepers(&self) {
        CORE.end_sleepers();
    }

    /// Has `decider` asked from now on, before any process comes to have memory.
    ///
    /// # Errors
    /// Workers run, or there is a decider.
    #[cfg(not(feature = "separate"))]
    pub fn decided_by(&self, decider: Box<dyn Decider>) -> Result<(), DecideError> {
        CORE.decided_by(decider)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        CORE.count_host(-1);
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Host")
    }
}

impl Deputy {
    /// The power of the host, for the OS thread that calls.
    ///
    /// # Errors
    /// It is a worker's.
    pub fn enter(&self) -> Result<Host, HostError> {
        Host::enter()
    }
}

/// Enters a critical piece: the thread that runs is not ended while the value lives. A kill that arrives meanwhile
/// lands when the last piece is closed.
///
/// # Safety
/// The caller is code that the host trusts as it trusts the kernel. Until the value is dropped it does not park, does
/// not panic. It runs no code of a process, takes less than 16 KiB of stack, and ends soon. Nothing else ends it.
#[inline]
pub unsafe fn enter_kernel() -> Critical {
    CORE.critical()
}

/// [`enter_kernel`], with allocations that are the host's and outlive the process.
///
/// # Safety
/// As for [`enter_kernel`]. What is allocated inside is found again if the process ends without dropping it.
#[inline]
pub unsafe fn enter_kernel_as_host() -> AsHost {
    CORE.as_host()
}
