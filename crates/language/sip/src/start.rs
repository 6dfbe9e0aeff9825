//! The beginning.

use std::io::{self, Write};
use std::num::NonZeroUsize;

use thiserror::Error;

use crate::host::Host;
use crate::process;
use crate::shared::shared;
use crate::thread::{signals, watch, worker};
use crate::{exchange, heap, owner, system};

/// How the workers are to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Start {
    /// How many; by default one for each core that the program may use.
    pub workers: Option<NonZeroUsize>,
}

/// Why no worker runs.
#[derive(Debug, Error)]
pub enum StartError {
    /// The system refused address space or threads.
    #[error("the system refused what workers need")]
    System(#[from] io::Error),
}

impl Host {
    /// Starts the workers. Later calls find them running and do nothing.
    ///
    /// From here on the program handles SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT and SIGURG in front of
    /// its own handlers, and has a panic hook in front of its own. In the child of a `fork` no process runs.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn start(&self, how: Start) -> Result<(), StartError> {
        start(how)
    }
}

fn start(how: Start) -> Result<(), StartError> {
    if !worker::all().is_empty() {
        return Ok(());
    }
    let _one = shared()
        .starting
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    if !worker::all().is_empty() {
        return Ok(());
    }
    if let Some(mappings) = system::most_mappings() {
        shared().stacks.allow(mappings);
    }
    heap::reserve()?;
    process::reserve()?;
    signals::install();
    process::panic::install();
    owner::register(exchange::end_of);
    // The standard library makes the buffer of its output at the first use, which must not be a process's.
    io::stdout().flush()?;
    let count = how
        .workers
        .map_or(system::cores().len().max(1), NonZeroUsize::get);
    system::in_short_slices(|| worker::start(count))?;
    watch::start()?;
    Ok(())
}
