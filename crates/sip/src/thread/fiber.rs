//! A coroutine in a place that does not move, and its ways to end.
//!
//! A coroutine of a process that is ended is never unwound: nothing on its stack is dropped, and the stack
//! goes back to the pool. This is sound for the stack's own frames because nothing outside refers to them:
//! scoped threads and borrowed statics do not exist between threads of a process, endpoints and blocks refer
//! to tables, and waiters are numbers. What the frames owned is returned by the end of the process.

use std::cell::{Cell, UnsafeCell};
use std::mem::MaybeUninit;

use corosensei::trap::{CoroutineTrapHandler, TrapHandlerRegs};
use corosensei::{Coroutine, CoroutineResult, Yielder};

use super::here;
use super::stacks::Stack;

type Body = Coroutine<(), (), (), Stack>;

/// A coroutine that has not run yet, so it may still go to another OS thread.
#[allow(missing_debug_implementations)]
pub(crate) struct NewFiber {
    body: Body,
    floor: usize,
}

// SAFETY: `new` asks for a closure that is Send, or its caller promises that it stays; nothing has run that
// could have cached an address of its OS thread.
unsafe impl Send for NewFiber {}

impl NewFiber {
    /// `body` runs at the first resume.
    ///
    /// # Safety
    /// `body` is `Send`, or the fiber is resumed on the calling OS thread.
    #[inline]
    pub(crate) unsafe fn new(stack: Stack, body: impl FnOnce() + 'static) -> NewFiber {
        let floor = stack.floor();
        let body = Coroutine::with_stack(stack, |yielder: &Yielder<(), ()>, ()| {
            here::started(yielder);
            body();
        });
        NewFiber { body, floor }
    }

    /// Never to run. What the closure holds is forgotten.
    pub(crate) fn into_stack(mut self) -> Stack {
        // SAFETY: nothing is dropped that lies on the stack; see the module's text.
        unsafe { self.body.force_reset() };
        self.body.into_stack()
    }
}

/// Why a resumed fiber came back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Resumed {
    /// It suspended itself.
    Suspended,
    /// Its body has returned, or was made to.
    Returned,
}

/// The place of a thread's coroutine. All zero is empty.
#[allow(missing_debug_implementations)]
pub(crate) struct Fiber {
    /// Below this stack address no critical piece begins; 0 while the place is empty.
    floor: Cell<usize>,
    yielder: Cell<*const Yielder<(), ()>>,
    body: UnsafeCell<MaybeUninit<Body>>,
    trap: Cell<MaybeUninit<CoroutineTrapHandler<()>>>,
}

impl Fiber {
    #[inline]
    pub(crate) fn floor(&self) -> usize {
        self.floor.get()
    }

    /// Puts a new coroutine into an empty place.
    #[inline]
    pub(crate) fn fill(&self, new: NewFiber) {
        debug_assert_eq!(self.floor.get(), 0);
        self.trap.set(MaybeUninit::new(new.body.trap_handler()));
        // SAFETY: the place is empty, so nobody uses what is in it.
        unsafe { (*self.body.get()).write(new.body) };
        self.floor.set(new.floor);
    }

    /// Runs the coroutine until it suspends or ends.
    ///
    /// # Safety
    /// The place is full, its coroutine is suspended, and this is the OS thread that it has run on before.
    #[inline]
    pub(crate) unsafe fn resume(&self) -> Resumed {
        // SAFETY: full by the caller's word. The reference is the only one: `fill` and `empty` are not called
        // on a running fiber, and the coroutine itself uses its yielder and trap handler, which are copies.
        match unsafe { (*self.body.get()).assume_init_mut() }.resume(()) {
            CoroutineResult::Yield(()) => Resumed::Suspended,
            CoroutineResult::Return(()) => Resumed::Returned,
        }
    }

    /// Called on the coroutine when it first runs.
    pub(crate) fn set_yielder(&self, yielder: &Yielder<(), ()>) {
        self.yielder.set(yielder);
    }

    /// Goes back to who resumed the coroutine.
    ///
    /// # Safety
    /// Called on this fiber's coroutine.
    #[inline]
    pub(crate) unsafe fn suspend(&self) {
        // SAFETY: the running coroutine's yielder, set at its start, lives at its stack's base.
        unsafe { (*self.yielder.get()).suspend(()) };
    }

    /// Runs something small on the stack of who resumed the coroutine.
    ///
    /// # Safety
    /// Called on this fiber's coroutine.
    pub(crate) unsafe fn on_scheduler_stack(&self, body: fn()) {
        // SAFETY: the running coroutine's yielder, set at its start, lives at its stack's base.
        unsafe { (*self.yielder.get()).on_parent_stack(body) };
    }

    /// Registers that make the coroutine return at once, or `None` if `stack_pointer` is not on its stack.
    ///
    /// # Safety
    /// Called in a signal handler on another stack, that interrupted this coroutine outside of any critical
    /// piece, and that returns to the registers given.
    pub(crate) unsafe fn abandon(&self, stack_pointer: usize) -> Option<TrapHandlerRegs> {
        // SAFETY: a full place, as the coroutine runs.
        let trap = unsafe { self.trap.get().assume_init() };
        if !trap.stack_ptr_in_bounds(stack_pointer) {
            return None;
        }
        // SAFETY: corosensei asks that the coroutine has written nothing outside itself that its end would
        // leave half done. What is outside a process is written in critical pieces only, and its own memory
        // is not looked at again.
        Some(unsafe { trap.setup_trap_handler(|| ()) })
    }

    /// Ends the coroutine where it is and takes its stack.
    ///
    /// # Safety
    /// The place is full and its coroutine does not run.
    #[inline]
    pub(crate) unsafe fn empty(&self) -> Stack {
        self.floor.set(0);
        // SAFETY: full by the caller's word; from here on the place counts as empty.
        let mut body = unsafe { (*self.body.get()).assume_init_read() };
        // SAFETY: nothing is dropped that lies on the stack; see the module's text.
        unsafe { body.force_reset() };
        body.into_stack()
    }
}
