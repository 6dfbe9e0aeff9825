//! Room for what may recurse: a thread's stack may be nearly used up.

use std::cell::Cell;

use super::here;

thread_local! {
    /// What [`run`] is to run; none while it runs.
    static BODY: Cell<Option<*mut dyn FnMut()>> = const { Cell::new(None) };
    /// Whether the scheduler's stack is in use.
    static USED: Cell<bool> = const { Cell::new(false) };
}

/// Runs something that does not park on a stack with at least 1 MiB of room: the scheduler's, if a process's thread
/// calls. The caller is in a critical piece.
#[inline]
pub(crate) fn on_large_stack<R>(body: impl FnOnce() -> R) -> R {
    let (mut body, mut result) = (Some(body), None);
    run_there(&mut || result = body.take().map(|body| body()));
    result.unwrap_or_else(|| unreachable!("it has run"))
}

/// Calls it once. A function of this crate's own, since its thread-locals are slow to find from another.
#[inline(never)]
fn run_there(whole: &mut dyn FnMut()) {
    let worker = match here::running() {
        Some((worker, _)) if !USED.get() => worker,
        // An OS thread's own, or the scheduler's already.
        _ => return whole(),
    };
    let erased: *mut (dyn FnMut() + '_) = whole;
    // SAFETY: only the lifetime is another; `run` takes it out before this function returns.
    let erased =
        unsafe { std::mem::transmute::<*mut (dyn FnMut() + '_), *mut dyn FnMut()>(erased) };
    BODY.set(Some(erased));
    USED.set(true);
    // There the floor of the process's stack means nothing.
    let floor = here::replace_floor(0);
    // SAFETY: a thread of this worker runs, and this is it; nobody uses that stack meanwhile.
    unsafe { worker.on_scheduler_stack(run) };
    here::replace_floor(floor);
    USED.set(false);
}

extern "sysv64" fn run() {
    if let Some(body) = BODY.take() {
        // SAFETY: `on_large_stack` has put it there just now, and waits.
        unsafe { (*body)() }
    }
}
