//! What only a call to Linux can do: closing what was inherited, hearing signals, how long a slice is, and ending at once.

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

/// Has the calling thread, and those that it starts, run in the shortest slices that Linux grants: 100 µs. They have as much of
/// a processor as before. Where Linux refuses, or is older than 6.12, nothing changes.
pub(crate) fn run_in_short_slices() {
    const LEAST: u64 = 100_000;
    // SAFETY: the structure is plain data, for which zero is valid.
    let mut how: libc::sched_attr = unsafe { std::mem::zeroed() };
    let bytes = size_of::<libc::sched_attr>();
    // SAFETY: the structure is as long as the call is told, and outlives it.
    let got = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut how, bytes, 0) };
    if got == 0 && how.sched_policy == libc::SCHED_OTHER as u32 {
        how.sched_runtime = LEAST;
        // SAFETY: the structure says its own length, and outlives the call.
        unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const how, 0) };
    }
}

/// Ends this OS process, without waiting for anything or anybody in it.
pub(crate) fn end_now(status: i32) -> ! {
    // SAFETY: takes nothing, and does not return.
    unsafe { libc::_exit(status) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_for_short_slices_has_them_and_so_have_its_threads() {
        let slice = || {
            // SAFETY: the structure is plain data, for which zero is valid.
            let mut how: libc::sched_attr = unsafe { std::mem::zeroed() };
            let bytes = size_of::<libc::sched_attr>();
            // SAFETY: the structure is as long as the call is told, and outlives it.
            unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut how, bytes, 0) };
            how.sched_runtime
        };
        let started = std::thread::spawn(move || {
            let before = slice();
            run_in_short_slices();
            (before, std::thread::spawn(slice).join().expect("no panic"))
        });
        let (before, after) = started.join().expect("no panic");
        // Linux before 6.12 has no such thing, and says 0.
        assert!(after == 100_000 || before == 0, "{before} {after}");
    }
}
