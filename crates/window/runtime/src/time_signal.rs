//! The signal by which threads are interrupted: at a limit of time, and where a handler has needed the reserve.

use std::sync::atomic::{AtomicI32, Ordering};

/// 0 before it is chosen.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

/// Its number. For signal handlers too.
pub(crate) fn get() -> libc::c_int {
    SIGNAL.load(Ordering::Relaxed)
}

/// It is chosen, and has a handler.
pub(crate) fn choose(signal: libc::c_int) {
    SIGNAL.store(signal, Ordering::Relaxed);
}

/// Sends it to a thread of this process. For signal handlers too.
pub(crate) fn send(thread: libc::pid_t) {
    // SAFETY: the call has no memory operand.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, get()) };
}
