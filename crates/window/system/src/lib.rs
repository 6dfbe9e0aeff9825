//! The system interface that a program extension may be granted.
//!
//! A program in a domain asks for system calls through one import,
//! `__mullion_system`, with Linux' numbers and structures (docs/window.md). What
//! is answered stands in one table ([`table`]): each row names the call, the
//! grant that it needs, and why it may be granted. What has no row is answered
//! `ENOSYS`. By default a program has its three streams, memory in its own
//! window, random numbers and its own end; nothing else.
//!
//! Nothing here dereferences a pointer of the domain: each is a
//! [`Claimed`](mullion_runtime::Claimed) that the domain's memory checks, and data
//! is copied. The domain never sees a descriptor of its host: its descriptors
//! are numbers in a table of its own, and its paths lead into the directories
//! that were granted, resolved by the kernel so that they cannot lead out
//! (`openat2` with `RESOLVE_BENEATH`).
#![forbid(unsafe_code)]

mod answer;
mod call;
mod descriptor;
mod files;
mod grants;
mod memory;
mod mount;
mod names;
mod process;
mod stat;
mod state;
mod streams;
pub mod table;
mod time;

pub use grants::Grants;
pub use mount::{Mount, MountError};
pub use streams::{Receiver, Stream, Streams};

use answer::Stop;
use call::Call;
use mullion_runtime::{End, GateCall, HostFunction};
use rustix::io::Errno;
use state::State;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The system interface of one domain.
pub struct System {
    grants: Grants,
    state: Mutex<State>,
}

impl System {
    /// A system interface with these grants.
    #[must_use]
    pub fn new(grants: Grants) -> Self {
        Self {
            state: Mutex::new(State::new(&grants)),
            grants,
        }
    }

    /// The import `__mullion_system` of one domain.
    #[must_use]
    pub fn into_import(self) -> HostFunction {
        Arc::new(self).import()
    }

    /// As [`System::into_import`], for a host that keeps the interface.
    #[must_use]
    pub fn import(self: &Arc<Self>) -> HostFunction {
        let system = self.clone();
        Arc::new(move |caller| system.answer(caller))
    }

    /// The state at the beginning: what the program has opened is closed. For a
    /// domain that is restarted.
    pub fn reset(&self) {
        // The old state's descriptors are closed when the lock is free again.
        let _old = std::mem::replace(&mut *self.state(), State::new(&self.grants));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, caller: &mut GateCall<'_>) -> Result<u64, End> {
        let call = Call::new(&self.grants, &self.state, caller);
        let result = match table::row_of(call.number()) {
            None => Err(Stop::Error(Errno::NOSYS)),
            Some(row) if !row.grant.is_given(&self.grants) => Err(Stop::Error(Errno::PERM)),
            Some(row) => (row.function)(&call),
        };
        match result {
            Ok(value) => Ok(value),
            Err(Stop::Error(error)) => Ok((-i64::from(error.raw_os_error())) as u64),
            Err(Stop::End(end)) => Err(end),
        }
    }
}
