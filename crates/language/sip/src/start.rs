//! The beginning.

use std::num::NonZeroUsize;

use mullion_sip_core::Hooks;
pub use mullion_sip_core::StartError;

use crate::host::Host;
use crate::inner::{CORE, EXCHANGE};
use crate::kernel;
use crate::process::{names, survey};

/// What the parts of this crate do when workers and processes begin and end, in this order.
const PARTS: [Hooks; 4] = [EXCHANGE.hooks(), names::HOOKS, kernel::HOOKS, survey::HOOKS];

/// How the workers are to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Start {
    /// How many; by default one for each core that the program may use.
    pub workers: Option<NonZeroUsize>,
}

impl Host {
    /// Starts the workers. Later calls find them running and do nothing.
    ///
    /// From here on the program handles SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT and SIGURG in front of
    /// its own handlers. It has a panic hook in front of its own. In the child of a `fork` no process runs.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn start(&self, how: Start) -> Result<(), StartError> {
        CORE.on_end(EXCHANGE.teardown());
        let prepare = || kernel::reserve().and_then(|()| names::counts::reserve());
        CORE.start(how.workers, prepare, &PARTS)
    }
}
