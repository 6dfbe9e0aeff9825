//! Who is asked before a process comes to have memory, or an end of a channel.
//!
//! ```text
//!   spawn            begin(process)   refused: SpawnError::Refused, and there is no process
//!   heap, a run      give(process, span)   refused: no memory, as beyond the limit; the run stays in the pool
//!   thread, a stack  give(process, span)   refused: no thread, and no process without one; the stack stays in the pool
//!   run or stack     take_back(process, span)   before anybody else may have it
//!   a channel's end  may_have(process, end)   refused: no channel; a name's end is closed; a receiver does not go on
//!                    came(process, end), went(end)   it has it, or has it no more
//!   end              end(process)     before its runs go back
//! ```
//! The host registers a [`Decider`] before it starts workers; without one nobody is asked. `mullion-sip` has one
//! that asks a supervisor. The grain is the span, and the end of a channel. Blocks within a run, and blocks of the
//! exchange heap, change hands without a question (`docs/supervisor.md` says why).

use std::fmt;
use std::sync::OnceLock;

use thiserror::Error;

use crate::critical::as_host;
use crate::owners::Owner;
use crate::refused::Refused;

/// A span of a process's heap, or the stack of one of its threads without its guard page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// Its first address.
    pub start: usize,
    /// Its bytes. Of a heap's: a power of two, at least [`UNIT`](crate::heap::UNIT).
    pub bytes: usize,
}

/// An end of a channel between processes of this address space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChannelEnd {
    /// Where it is: of no other end as long as it is open.
    pub place: usize,
    /// The kernel's record of that place, apart from it.
    pub record: usize,
    /// The memory that both ends write. It is open as long as one of them is.
    pub queues: Span,
    /// The contract's digest.
    pub contract: [u8; 32],
}

/// Is asked before anything changes. It is called on any OS thread, within a critical piece. It uses less than 16 KiB
/// of stack, does not park, does not panic, and calls nothing that waits for a process.
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

    /// An end of a channel is to be the process's. This is a question alone: [`Decider::came`] says when it is. It is
    /// asked when the process makes a channel, or is to begin with the end. It is also asked when the process accepts
    /// the end at a name of its own, or is about to receive a message with it.
    ///
    /// # Errors
    /// There is no channel, or no process. At a name, the end is closed. A receiver's thread panics with [`Refused`]; the
    /// message stays unreceived, and goes with the process.
    fn may_have(&self, process: Owner, end: ChannelEnd) -> Result<(), Refused>;

    /// It is the process's now. Of an end that comes back, since nobody took it, nobody has asked again.
    fn came(&self, process: Owner, end: ChannelEnd);

    /// An end is its holder's no more: it is closed or was sent. It may never have come to a process, but to the host.
    fn went(&self, end: ChannelEnd);

    /// A process has ended. Its spans are nobody's from now on, nor are ends that it has left open.
    fn end(&self, process: Owner);
}

/// Why a host has no decider of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum DecideError {
    /// Processes may have got something that it was not asked about.
    #[error("workers run: give the host a decider before Host::start")]
    Started,
    /// There is one.
    #[error("this host has a decider already")]
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

/// Whether anybody is to be asked.
#[inline]
pub(crate) fn is_asked() -> bool {
    decider().is_some()
}

#[cold]
pub(crate) fn may_have(process: Owner, end: ChannelEnd) -> Result<(), Refused> {
    match decider() {
        Some(decider) if process != Owner::HOST => {
            let _host = as_host();
            decider.may_have(process, end)
        }
        _ => Ok(()),
    }
}

#[cold]
pub(crate) fn came(process: Owner, end: ChannelEnd) {
    if let Some(decider) = decider()
        && process != Owner::HOST
    {
        let _host = as_host();
        decider.came(process, end);
    }
}

#[cold]
pub(crate) fn went(end: ChannelEnd) {
    if let Some(decider) = decider() {
        let _host = as_host();
        decider.went(end);
    }
}

pub(crate) fn end(process: Owner) {
    if let Some(decider) = decider() {
        let _host = as_host();
        decider.end(process);
    }
}
