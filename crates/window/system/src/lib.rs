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

mod call;
mod descriptor;
mod files;
mod memory;
mod mount;
mod names;
mod process;
mod stat;
mod streams;
pub mod table;
mod time;

pub use mount::{Mount, MountError};
pub use streams::{Receiver, Stream, Streams};

use call::Call;
use descriptor::Descriptors;
use mullion_runtime::{End, GateCall, HostFunction};
use rustix::io::Errno;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a program may use beyond the default.
#[derive(Clone, Default)]
pub struct Grants {
    /// Directories of the host, each under a path of the program's.
    pub mounts: Vec<Arc<Mount>>,
    /// The clocks: reading them, and sleeping.
    pub clock: bool,
    /// Where its standard input, output and error lead.
    pub streams: Streams,
}

impl Grants {
    /// Looks for a directory that is granted for reading only and can be written all the same.
    ///
    /// # Errors
    /// One that lies in another one, which is granted for writing.
    pub fn check(&self) -> Result<(), MountError> {
        let protected = self.mounts.iter().filter(|mount| mount.is_read_only());
        for inner in protected {
            for outer in self.mounts.iter().filter(|mount| !mount.is_read_only()) {
                inner.check_apart_from(outer)?;
            }
        }
        Ok(())
    }
}

/// The system interface of one domain.
pub struct System {
    grants: Grants,
    state: Mutex<State>,
}

/// What changes while the program runs.
pub(crate) struct State {
    pub(crate) descriptors: Descriptors,
    /// The working directory, a path of the program's.
    pub(crate) directory: String,
    /// Bits that new files and directories do not get.
    pub(crate) umask: u32,
    /// Signals that the program ignores: bit `n` for signal `n`.
    pub(crate) ignored: u128,
}

impl State {
    fn new(grants: &Grants) -> Self {
        Self {
            descriptors: Descriptors::new(&grants.streams),
            directory: "/".to_owned(),
            umask: 0o022,
            ignored: 0,
        }
    }
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

    pub(crate) fn grants(&self) -> &Grants {
        &self.grants
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, caller: &mut GateCall<'_>) -> Result<u64, End> {
        let call = Call::new(self, caller);
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

/// Why a call has no ordinary result.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The program is told so.
    Error(Errno),
    /// The program ends.
    End(End),
}

impl From<Errno> for Stop {
    fn from(error: Errno) -> Self {
        Self::Error(error)
    }
}

impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Self {
        Self::Error(Errno::from_io_error(&error).unwrap_or(Errno::IO))
    }
}

impl From<mullion_runtime::BadAddress> for Stop {
    fn from(_: mullion_runtime::BadAddress) -> Self {
        Self::Error(Errno::FAULT)
    }
}

impl From<mullion_runtime::MappingError> for Stop {
    fn from(error: mullion_runtime::MappingError) -> Self {
        use mullion_runtime::MappingError;
        Self::Error(match error {
            MappingError::Range => Errno::INVAL,
            MappingError::NoMemory | MappingError::Mappings { .. } | MappingError::NotMapped => {
                Errno::NOMEM
            }
            MappingError::Image => Errno::ACCESS,
        })
    }
}

/// What a call returns: `%rax`, or why there is none.
pub(crate) type Answer = Result<u64, Stop>;
