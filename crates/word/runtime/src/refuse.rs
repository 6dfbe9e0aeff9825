//! Functions of the host that refuse what a module asks for.

use crate::gates::here;
use crate::thread;
use std::sync::atomic::Ordering;

/// For a function of the host that a module has called, on the same thread: the module's call ends as soon as the function
/// returns, as if a policy had refused it, and the report says `what`. The function's result is seen by nobody.
///
/// Outside of such a function it ends the next call of the thread that comes back into a module.
pub fn refuse(what: impl Into<String>) {
    let Ok(thread) = thread::this() else {
        return;
    };
    thread.refusal = Some(what.into());
    // SAFETY: it is the thread's own.
    unsafe { (*here()).pending.store(1, Ordering::Relaxed) };
}
