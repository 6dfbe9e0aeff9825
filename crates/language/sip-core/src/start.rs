//! The beginning.

use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};

use thiserror::Error;

#[cfg(not(feature = "separate"))]
use crate::decide::{self, DecideError, Decider};
use crate::hooks::{self, Hooks};
use crate::thread::{schedule, signals, stacks, watch, workers};
use crate::{heap, process, system};

/// Why no worker runs.
#[derive(Debug, Error)]
pub enum StartError {
    /// The system refused address space or threads.
    #[error("the system refused what workers need")]
    System(#[from] io::Error),
}

/// Held by whoever starts workers, or decides who is asked before they start. In the host's copy alone.
fn starting() -> MutexGuard<'static, ()> {
    static STARTING: Mutex<()> = Mutex::new(());
    STARTING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has `decider` asked from now on, before any process comes to have memory.
#[cfg(not(feature = "separate"))]
pub(crate) fn decided_by(decider: Box<dyn Decider>) -> Result<(), DecideError> {
    let _no_start = starting();
    if !workers::all().is_empty() {
        return Err(DecideError::Started);
    }
    decide::set(decider)
}

/// Starts the workers, one for each core that the program may use unless `workers` says how many. Later calls find them
/// running and do nothing. `parts` are the hooks of the crates above; what they need they have reserved in `prepare`.
pub(crate) fn start(
    workers: Option<NonZeroUsize>,
    prepare: impl FnOnce() -> io::Result<()>,
    parts: &[Hooks],
) -> Result<(), StartError> {
    if !workers::all().is_empty() {
        return Ok(());
    }
    let _one = starting();
    if !workers::all().is_empty() {
        return Ok(());
    }
    if let Some(mappings) = system::most_mappings() {
        stacks::allow(mappings);
    }
    heap::reserve()?;
    process::reserve()?;
    prepare()?;
    signals::install();
    process::panic::install();
    hooks::register(parts);
    // The standard library makes the buffer of its output at the first use, which must not be a process's.
    io::stdout().flush()?;
    let count = workers.map_or(system::cores().len().max(1), NonZeroUsize::get);
    system::in_short_slices(|| schedule::start(count))?;
    watch::start()?;
    Ok(())
}
