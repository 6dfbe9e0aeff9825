//! The system interface that a program extension may be granted.
//!
//! ```text
//!   the program -- __mullion_system --> System  -- what was called --> crates/window/calls: numbers of calls, names,
//!                                          ^                               |  descriptors, structures; not trusted
//!                                          |    one operation at a time    |
//!                     memory, streams,  Caller <---------------------------'
//!         directories, clocks, threads     checks each against what was granted
//! ```
//!
//! `crates/window/calls` says what each call of a program means. It is built from nothing, without the standard
//! library, so all it reaches is what a [`mullion_calls::Program`] does for it. Here that is done, and whatever comes
//! from there is checked. Each name is resolved by the kernel so that it cannot lead out of its directory (`openat2`
//! with `RESOLVE_BENEATH`). What is for reading only is not changed, what is neither file nor directory is not
//! opened, and clocks are a grant. So are threads, which the host starts ([`Threads`]).
//!
//! Nothing here dereferences a pointer of the domain: each is a
//! [`Claimed`](mullion_runtime::Claimed) that the domain's memory checks, and data
//! is copied. The domain never sees a descriptor of its host.
#![forbid(unsafe_code)]

mod caller;
mod clock;
mod directories;
mod files;
mod grants;
mod locks;
mod memory;
mod mount;
mod open;
mod stat;
mod stop;
mod streams;
mod threads;

pub use caller::System;
pub use grants::Grants;
pub use mount::{Mount, MountError};
pub use mullion_calls::{Stream, table};
pub use streams::{Receiver, Streams};
pub use threads::{Threads, Waited};

use caller::Caller;
use mullion_calls::{CallStop, ProgramState};
use mullion_runtime::{CallEnd, Error, GateCall, HostFunction};
use std::cell::Cell;
use std::sync::{Arc, Mutex};

impl System {
    /// A system interface with these grants.
    #[must_use]
    pub fn new(grants: Grants) -> Self {
        Self {
            state: Mutex::new(first_state(&grants)),
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
        let _old = std::mem::replace(&mut *self.state(), first_state(&self.grants));
    }

    fn answer(&self, caller: &mut GateCall<'_>) -> Result<u64, CallEnd> {
        let caller = Caller {
            system: self,
            caller,
            end: Cell::new(None),
        };
        match mullion_calls::answer(&caller) {
            Ok(value) => Ok(value),
            Err(CallStop::Error(error)) => Ok((-i64::from(error.0)) as u64),
            Err(CallStop::Exit(status)) => Err(CallEnd::Exit(status)),
            Err(CallStop::Raised(signal)) => Err(CallEnd::Raised(signal)),
            Err(CallStop::Ended) => Err(caller
                .end
                .take()
                .unwrap_or_else(|| CallEnd::Refused(Box::new(Error::Ended)))),
        }
    }
}

/// What a program with these begins with.
fn first_state(grants: &Grants) -> ProgramState {
    let directories = grants.mounts.iter().map(|mount| mount.guest());
    let working = grants.working.as_deref().unwrap_or("/");
    ProgramState::new(open::streams(&grants.streams), directories).in_directory(working)
}
