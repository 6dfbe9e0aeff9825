//! A coroutine in a place that does not move, and its ways to end.
//!
//! A coroutine of a process that is ended is never unwound: nothing on its stack is dropped, and the stack
//! goes back to the pool. This is sound for the stack's own frames because nothing outside refers to them.
//! Scoped threads and borrowed statics do not exist between threads of a process; endpoints and blocks refer
//! to tables, and waiters are numbers. What the frames owned is returned by the end of the process.

use std::cell::Cell;

use super::stacks::{STACK, Stack};
use crate::system::PAGE;

/// A coroutine that has not run yet, so it may still go to another OS thread.
#[allow(missing_debug_implementations)]
pub(crate) struct NewFiber {
    pub(super) stack: Stack,
    pub(super) top: usize,
}

impl NewFiber {
    /// Never to run. What the closure holds is forgotten.
    pub(crate) fn into_stack(self) -> Stack {
        self.stack
    }
}

/// The place of a thread's coroutine. All zero is empty.
#[allow(missing_debug_implementations)]
pub(crate) struct Fiber {
    /// Of the stack while the coroutine does not run.
    top: Cell<usize>,
    /// Below this stack address no critical piece begins; 0 while the place is empty.
    floor: Cell<usize>,
    stack: Cell<Option<Stack>>,
}

impl Fiber {
    #[inline]
    pub(crate) fn floor(&self) -> usize {
        self.floor.get()
    }

    /// Where to go on with the coroutine.
    #[inline]
    pub(super) fn top(&self) -> usize {
        self.top.get()
    }

    /// Where its top is kept when it is suspended.
    #[inline]
    pub(super) fn suspended(&self) -> &Cell<usize> {
        &self.top
    }

    /// Puts a new coroutine into an empty place.
    #[inline]
    pub(crate) fn fill(&self, new: NewFiber) {
        debug_assert_eq!(self.floor.get(), 0);
        self.top.set(new.top);
        self.floor.set(new.stack.floor());
        self.stack.set(Some(new.stack));
    }

    /// Whether a stack pointer is on the coroutine's stack or in its guard page.
    pub(crate) fn contains(&self, stack_pointer: usize) -> bool {
        let floor = self.floor.get();
        floor != 0 && stack_pointer & !(STACK - 1) == floor & !(STACK - 1)
    }

    /// Where the stack is: its first address above the guard page, and its bytes.
    pub(crate) fn range(&self) -> Option<(usize, usize)> {
        let floor = self.floor.get();
        (floor != 0).then_some(((floor & !(STACK - 1)) + PAGE, STACK - PAGE))
    }

    /// Takes the stack of a coroutine that does not run and never will again, if there is one.
    #[inline]
    pub(crate) fn empty(&self) -> Option<Stack> {
        self.floor.set(0);
        self.stack.take()
    }
}
