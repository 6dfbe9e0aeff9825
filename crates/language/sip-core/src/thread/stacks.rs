//! Stacks from a pool, each with a guard page at its low end.
//!
//! ```text
//!   | guard | usable ........................ base | .. |   STACK bytes, memory only where touched
//! ```

use std::cell::RefCell;
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

use thiserror::Error;

use crate::refused::Refused;
use crate::system;

/// Why there is no new thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum ThreadError {
    /// Only processes have such threads; the host has the standard library's.
    #[error("the caller is in no process")]
    NoProcess,
    /// As many as the process may have, or the worker can.
    #[error("the process may have no more threads")]
    TooMany,
    /// No memory for a stack.
    #[error("no memory for a stack")]
    NoStack,
    /// Whoever decides about the host's processes refuses the stack.
    #[error(transparent)]
    Refused(#[from] Refused),
}

/// Bytes of a thread's stack in address space, the guard page included.
pub const STACK: usize = 256 << 10;
/// What critical pieces may count on; see [`crate::critical`].
pub(crate) const RESERVE: usize = 16 << 10;
/// So many stacks are mapped together.
const BATCH: usize = 64;
/// A pool longer than this gives back the memory of stacks that come in, but for their upper ends.
const WARM: usize = 1024;
const UPPER_END: usize = 8 << 10;

/// How many stacks the program may have: each takes two of the mappings that the system allows it, and an eighth of
/// these is left for everything else, which would fail in worse places than where a thread is made.
#[derive(Debug)]
pub(crate) struct Room {
    most: AtomicUsize,
    mapped: AtomicUsize,
}

impl Room {
    pub(crate) const fn new() -> Room {
        Room {
            most: AtomicUsize::new(Room::beside(65_530)),
            mapped: AtomicUsize::new(0),
        }
    }

    fn allow(&self, mappings: usize) {
        self.most.store(Room::beside(mappings), Ordering::Relaxed);
    }

    const fn beside(mappings: usize) -> usize {
        (mappings - mappings / 8) / 2
    }

    /// Whether there is room for `count` more, which are counted then.
    fn take(&self, count: usize) -> bool {
        let most = self.most.load(Ordering::Relaxed);
        let more = |mapped: usize| Some(mapped + count).filter(|mapped| *mapped <= most);
        let taken = self
            .mapped
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        taken.is_ok()
    }
}

/// Stacks begin at different offsets from their ends, in steps of two cache lines: their first lines, which every
/// switch needs, would share one set of the cache otherwise.
const COLOURS: usize = 8;
const COLOUR: usize = 128;

/// A stack that nobody else uses. It lives as long as the program: it goes to a pool or is lost.
#[derive(Debug)]
pub(crate) struct Stack {
    base: NonNull<u8>,
}

// SAFETY: `map` makes stacks of STACK bytes that nobody else has, with an inaccessible page at the low end.
unsafe impl Send for Stack {}

impl Stack {
    /// Where it begins, which is above all that is on it.
    #[inline]
    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// What may be used: the first address above the guard page, and its bytes.
    pub(crate) fn range(&self) -> (usize, usize) {
        (self.limit() + system::PAGE, STACK - system::PAGE)
    }

    /// The low end.
    #[inline]
    fn limit(&self) -> usize {
        self.base.addr().get() & !(STACK - 1)
    }

    /// Below this address no critical piece may begin.
    #[inline]
    pub(crate) fn floor(&self) -> usize {
        self.limit() + system::PAGE + RESERVE
    }
}

/// Free stacks of one worker, last in, first out.
#[derive(Debug, Default)]
pub(crate) struct Stacks(RefCell<Vec<Stack>>);

impl Stacks {
    #[inline]
    pub(crate) fn take(&self) -> io::Result<Stack> {
        let mut free = self.0.borrow_mut();
        if free.is_empty() {
            map(&mut free)?;
        }
        free.pop().ok_or_else(|| io::ErrorKind::OutOfMemory.into())
    }

    #[inline]
    pub(crate) fn give(&self, stack: Stack) {
        let mut free = self.0.borrow_mut();
        if free.len() >= WARM {
            let start = stack.limit() + system::PAGE;
            let bytes = STACK - system::PAGE - UPPER_END;
            // SAFETY: within the stack, which nobody uses.
            unsafe { system::discard(stack.base.as_ptr().with_addr(start), bytes) };
        }
        free.push(stack);
    }
}

__state!(Room = Room::new());

/// The system allows so many mappings (`vm.max_map_count`).
pub(crate) fn allow(mappings: usize) {
    state().allow(mappings);
}

#[cold]
fn map(free: &mut Vec<Stack>) -> io::Result<()> {
    if !state().take(BATCH) {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    let start = system::reserve(BATCH * STACK, STACK)?;
    for index in (0..BATCH).rev() {
        let limit = start.wrapping_add(index * STACK);
        // SAFETY: a page of the reservation just made.
        unsafe { system::forbid(limit)? };
        let colour = COLOUR * (1 + index % COLOURS);
        free.extend(NonNull::new(limit.wrapping_add(STACK - colour)).map(|base| Stack { base }));
    }
    Ok(())
}
