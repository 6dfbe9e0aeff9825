//! Who is asked before a process comes to have memory.
//!
//! ```text
//!   spawn            begin(process)   refused: SpawnError::Refused, and there is no process
//!   heap, a run      give(process, span)   refused: no memory, as beyond the limit; the run stays in the pool
//!   heap, a run      take_back(process, span)   before anybody else may have it
//!   end              end(process)     before its runs go back
//! ```
//! The host registers a [`Decider`] before it starts workers; without one nobody is asked. `mullion-sip` has one
//! that asks a supervisor. The grain is the span: blocks within a run, and blocks of the exchange heap, change hands
//! without a question (`docs/supervisor.md` says why).

use std::fmt;
use std::sync::OnceLock;

use thiserror::Error;

use crate::critical::as_host;
use crate::owners::Owner;

/// A span of a process's heap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// Its first address.
    pub start: usize,
    /// Its bytes: a power of two, at least [`UNIT`](crate::heap::UNIT).
    pub bytes: usize,
}

/// The decider says no. Nothing has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("whoever decides about this host's processes refuses")]
pub struct Refused;

/// Is asked before anything changes. It is called on any OS thread, within a critical piece: it uses less than
/// 16 KiB of stack, does not park, does not panic, and calls nothing that waits for a process.
pub trait Decider: Send + Sync + fmt::Debug {
    /// A process is to be. If it is, it may hold blocks of the exchange heap.
    ///
    /// # Errors
    /// There is none then.
    fn begin(&self, process: Owner) -> Result<(), Refused>;

    /// A span that nobody has is to be the process's alone.
    ///
    /// # Errors
    /// It does not get it.
    fn give(&self, process: Owner, span: Span) -> Result<(), Refused>;

    /// A span of a process's is nobody's from now on.
    fn take_back(&self, process: Owner, span: Span);

    /// A process has ended. Its spans are nobody's from now on.
    fn end(&self, process: Owner);
}

/// Why a host has no decider of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum DecideError {
    /// Processes may have got something that it was not asked about.
    #[error("workers run: say who decides before Host::start")]
    Started,
    /// There is one.
    #[error("the host has said who decides")]
    Decided,
}

/// Who is asked.
pub(crate) struct State(OnceLock<Box<dyn Decider>>);

impl State {
    pub(crate) const fn new() -> State {
        State(OnceLock::new())
    }
}

__state!(State = State::new());

/// Has `decider` asked from now on. No worker runs, nor is one being started.
#[cfg(not(feature = "separate"))]
pub(crate) fn set(decider: Box<dyn Decider>) -> Result<(), DecideError> {
    state().0.set(decider).map_err(|_| DecideError::Decided)
}

#[inline]
fn decider() -> Option<&'static dyn Decider> {
    state().0.get().map(|decider| &**decider)
}

pub(crate) fn begin(process: Owner) -> Result<(), Refused> {
    let Some(decider) = decider() else {
        return Ok(());
    };
    let _host = as_host();
    decider.begin(process)
}

#[inline]
pub(crate) fn give(process: Owner, start: usize, bytes: usize) -> Result<(), Refused> {
    let Some(decider) = decider() else {
        return Ok(());
    };
    let _host = as_host();
    decider.give(process, Span { start, bytes })
}

#[inline]
pub(crate) fn take_back(process: Owner, start: usize, bytes: usize) {
    if let Some(decider) = decider() {
        let _host = as_host();
        decider.take_back(process, Span { start, bytes });
    }
}

pub(crate) fn end(process: Owner) {
    if let Some(decider) = decider() {
        let _host = as_host();
        decider.end(process);
    }
}
