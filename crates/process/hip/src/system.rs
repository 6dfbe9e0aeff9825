//! What only a call to Linux can do: closing what was inherited, hearing signals, and ending at once.

use std::io;

/// Closes every descriptor from `first` on.
///
/// To be called before anything in this program holds one: at the very beginning.
pub(crate) fn close_from(first: u32) -> io::Result<()> {
    // SAFETY: nothing of this program holds a descriptor there yet, so nobody is left with one that names
    // another file later.
    match unsafe { libc::close_range(first, u32::MAX, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Has the signals that ask a program to end do so. Who ignores them (`nohup`, say) hands that on to what it starts.
///
/// To be called before anything in this program has handlers: at the very beginning.
pub(crate) fn hear_signals() {
    for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM] {
        // SAFETY: the action of the system, in the place of none.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Ends this OS process, without waiting for anything or anybody in it.
pub(crate) fn end_now(status: i32) -> ! {
    // SAFETY: takes nothing, and does not return.
    unsafe { libc::_exit(status) }
}
