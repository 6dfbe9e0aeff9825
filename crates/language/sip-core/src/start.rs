//! The beginning.

use std::io::{self, Write};
use std::num::NonZeroUsize;

use thiserror::Error;

use crate::hooks::{self, Hooks};
use crate::state::state;
use crate::thread::{signals, watch, worker};
use crate::{heap, process, system};

/// Why no worker runs.
#[derive(Debug, Error)]
pub enum StartError {
    /// The system refused address space or threads.
    #[error("the system refused what workers need")]
    System(#[from] io::Error),
}

/// Starts the workers, one for each core that the program may use unless `workers` says how many. Later calls find them
/// running and do nothing. `parts` are the hooks of the crates above; what they need they have reserved in `prepare`.
pub(crate) fn start(
    workers: Option<NonZeroUsize>,
    prepare: impl FnOnce() -> io::Result<()>,
    parts: &[Hooks],
) -> Result<(), StartError> {
    if !worker::all().is_empty() {
        return Ok(());
    }
    let _one = state()
        .starting
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    if !worker::all().is_empty() {
        return Ok(());
    }
    if let Some(mappings) = system::most_mappings() {
        state().stacks.allow(mappings);
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
    system::in_short_slices(|| worker::start(count))?;
    watch::start()?;
    Ok(())
}
