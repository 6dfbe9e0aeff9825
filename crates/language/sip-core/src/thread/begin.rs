//! The beginning of a coroutine.

use super::fiber::NewFiber;
use super::stacks::Stack;
use super::{here, switch};

impl NewFiber {
    /// `body` runs when the stack is gone on with.
    ///
    /// # Safety
    /// `body` is `Send`, or the fiber is resumed on the calling OS thread.
    #[inline]
    pub(crate) unsafe fn new(stack: Stack, body: impl FnOnce() + 'static) -> NewFiber {
        let body = move || {
            body();
            here::finish();
        };
        // SAFETY: nobody else has the stack, and it has room.
        let top = unsafe { switch::prepare(stack.base(), body) };
        NewFiber { stack, top }
    }
}
