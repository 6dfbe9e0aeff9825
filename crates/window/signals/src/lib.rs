//! Signals that the calling thread does not take while something is done.
//!
//! [`without`] is for threads of ours, which are never to take a signal of the host's.
//!
//! [`open_in_handlers`] is the reverse: a signal that the host's handlers must take.
//!
//! [`quietly`] is for writing on behalf of a domain, without the signals that some writes bring.
//! A write past the size that a process may give its files (`ulimit -f`) answers
//! `EFBIG`, and one to a pipe or socket without a reader `EPIPE`. Both also send the
//! writing thread a signal, which by default ends the process. What a domain
//! has written must not end its host, and what the host does about these
//! signals is its own affair. So the thread blocks them while it writes, and takes
//! what came before it opens them again.

use std::io;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr;

/// The signals of writes.
const SIGNALS: [libc::c_int; 2] = [libc::SIGXFSZ, libc::SIGPIPE];

/// Runs `write`, whose SIGXFSZ and SIGPIPE have no effect: its error alone tells. `Ok`
/// is for a `write` that has done all it was to do.
///
/// It takes two system calls more than `write` does, and a third one after an error.
///
/// # Errors
/// Those of `write`.
pub fn quietly<T>(write: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    quietly_in_part(write, |_| true)
}

/// Does something while the calling thread takes no signals. A thread that is started meanwhile never takes one: the host's
/// signals are for its own threads.
pub fn without<R>(act: impl FnOnce() -> R) -> R {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the first call makes the set that the second one uses, which fills in the other.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
    }
    let result = act();
    // SAFETY: it was filled in above, since blocking signals cannot fail.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut()) };
    result
}

/// Opens a signal in the host's handlers without SA_ONSTACK, which may run on a control stack. Where one does not fit, the
/// handler of this signal makes room.
pub fn open_in_handlers(opened: libc::c_int) {
    for signal in 1..=libc::SIGRTMAX() {
        // SAFETY: plain structures, for which zero is a valid value, and sets that the kernel has filled. What is installed
        // is the handler that was there, with all else as it was.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(signal, ptr::null(), &mut action) != 0 {
                continue;
            }
            let is_function = !matches!(action.sa_sigaction, libc::SIG_DFL | libc::SIG_IGN);
            let blocks = libc::sigismember(&action.sa_mask, opened) == 1;
            if is_function && blocks && action.sa_flags & libc::SA_ONSTACK == 0 {
                libc::sigdelset(&mut action.sa_mask, opened);
                libc::sigaction(signal, &action, ptr::null_mut());
            }
        }
    }
}

/// As [`quietly`], for a `write` that may do a part: `all` says whether it has done all.
/// A part may come with a signal: that of a pipe whose reader goes meanwhile does.
///
/// # Errors
/// Those of `write`.
pub fn quietly_in_part<T>(
    write: impl FnOnce() -> io::Result<T>,
    all: impl FnOnce(&T) -> bool,
) -> io::Result<T> {
    let mut quiet = Quiet::begin();
    let result = write();
    quiet.is_clean = result.as_ref().is_ok_and(all);
    result
}

/// Blocks the signals of writes for the current thread until it is dropped.
struct Quiet {
    before: libc::sigset_t,
    /// Those that writes may have brought.
    ours: libc::sigset_t,
    /// Whether they have brought none.
    is_clean: bool,
    /// The mask is the thread's: the value stays on it.
    _thread: PhantomData<*const ()>,
}

impl Quiet {
    fn begin() -> Self {
        let ours = set(SIGNALS);
        // SAFETY: plain structures, which the calls read or write.
        unsafe {
            let mut before = std::mem::zeroed();
            libc::pthread_sigmask(libc::SIG_BLOCK, &ours, &mut before);
            // A signal that the host has blocked itself may wait already: that one is the host's.
            let blocked = |signal: &libc::c_int| libc::sigismember(&before, *signal) == 1;
            let ours = if SIGNALS.iter().any(blocked) {
                let mut waiting = std::mem::zeroed();
                libc::sigpending(&mut waiting);
                set(SIGNALS
                    .into_iter()
                    .filter(|signal| libc::sigismember(&waiting, *signal) == 0))
            } else {
                ours
            };
            Self {
                before,
                ours,
                is_clean: false,
                _thread: PhantomData,
            }
        }
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        let at_once = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: plain structures, which the calls read; nobody asks for the signal's description.
        unsafe {
            while !self.is_clean && libc::sigtimedwait(&self.ours, ptr::null_mut(), &at_once) > 0 {}
            libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, ptr::null_mut());
        }
    }
}

fn set(signals: impl IntoIterator<Item = libc::c_int>) -> libc::sigset_t {
    // SAFETY: an empty set is a valid one, and the calls only write to it.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in signals {
            libc::sigaddset(&mut set, signal);
        }
        set
    }
}
