//! Stacks from a pool, each with a guard page at its low end.
//!
//! ```text
//!   | guard | usable ............................. base |   STACK bytes, memory only where touched
//! ```

use std::cell::RefCell;
use std::io;

use corosensei::stack::{Stack as CoroutineStack, StackPointer};

use crate::system;

/// Bytes of a thread's stack in address space, the guard page included.
pub const STACK: usize = 256 << 10;
/// What critical pieces may count on; see [`crate::critical`].
pub(crate) const RESERVE: usize = 16 << 10;
/// So many stacks are mapped together.
const BATCH: usize = 64;
/// A pool longer than this gives back the memory of stacks that come in, but for their upper ends.
const WARM: usize = 1024;
const UPPER_END: usize = 8 << 10;

/// A stack that nobody else uses. It lives as long as the program: it goes to a pool or is lost.
#[derive(Debug)]
pub(crate) struct Stack {
    base: StackPointer,
}

// SAFETY: `map` makes stacks of STACK bytes that nobody else has, with an inaccessible page at the low end.
unsafe impl CoroutineStack for Stack {
    #[inline]
    fn base(&self) -> StackPointer {
        self.base
    }

    #[inline]
    fn limit(&self) -> StackPointer {
        let limit = self.base.get() - STACK;
        StackPointer::new(limit).unwrap_or(StackPointer::MIN)
    }
}

impl Stack {
    /// Below this address no critical piece may begin.
    #[inline]
    pub(crate) fn floor(&self) -> usize {
        self.limit().get() + system::PAGE + RESERVE
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
            let start = stack.limit().get() + system::PAGE;
            let bytes = STACK - system::PAGE - UPPER_END;
            // SAFETY: within the stack, which nobody uses.
            unsafe { system::discard(std::ptr::with_exposed_provenance_mut(start), bytes) };
        }
        free.push(stack);
    }
}

#[cold]
fn map(free: &mut Vec<Stack>) -> io::Result<()> {
    let start = system::reserve(BATCH * STACK, STACK)?;
    for index in (0..BATCH).rev() {
        let limit = start.wrapping_add(index * STACK);
        // SAFETY: a page of the reservation just made.
        unsafe { system::forbid(limit)? };
        let base = StackPointer::new(limit.expose_provenance() + STACK);
        free.extend(base.map(|base| Stack { base }));
    }
    Ok(())
}
