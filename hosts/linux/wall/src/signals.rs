//! Signals: the kernel's interrupts are signals of its process, and its faults are, too.

use std::io;
use std::mem::MaybeUninit;

/// Runs `what`, which may give the thread another alternate stack, and puts the kernel's own back: its handlers find the
/// task that runs at the beginning of that very stack.
pub(crate) fn keeping_stack<T>(what: impl FnOnce() -> T) -> io::Result<T> {
    let mut stack = MaybeUninit::<libc::stack_t>::uninit();
    // SAFETY: the first call fills it in, the second one gives back what was in force.
    unsafe {
        if libc::sigaltstack(std::ptr::null(), stack.as_mut_ptr()) != 0 {
            return Err(io::Error::last_os_error());
        }
        let done = what();
        match libc::sigaltstack(stack.as_ptr(), std::ptr::null_mut()) {
            0 => Ok(done),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// The kernel's interrupts, which its own handlers of faults block.
const INTERRUPTS: [i32; 3] = [libc::SIGIO, libc::SIGWINCH, libc::SIGALRM];

/// The run time's handlers of faults pass on what is the kernel's. The kernel's handler then runs under the mask of the
/// run time's one: so it gets what the kernel has set for its own. A fault may come within one of SIGSEGV.
pub(crate) fn settle() -> io::Result<()> {
    for signal in [
        libc::SIGSEGV,
        libc::SIGBUS,
        libc::SIGILL,
        libc::SIGFPE,
        libc::SIGTRAP,
    ] {
        let mut action = MaybeUninit::<libc::sigaction>::uninit();
        // SAFETY: the first call fills it in, and what is changed in it is what the system defines.
        let done = unsafe {
            if libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) != 0 {
                return Err(io::Error::last_os_error());
            }
            let mut action = action.assume_init();
            for interrupt in INTERRUPTS {
                libc::sigaddset(&raw mut action.sa_mask, interrupt);
            }
            if signal == libc::SIGSEGV {
                action.sa_flags |= libc::SA_NODEFER;
            }
            libc::sigaction(signal, &raw const action, std::ptr::null_mut())
        };
        if done != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Runs `what` with all signals blocked. A thread that it makes begins so: the kernel's interrupts come to the kernel's own
/// thread alone.
pub(crate) fn blocked<T>(what: impl FnOnce() -> T) -> T {
    let (mut all, mut before) = (
        MaybeUninit::<libc::sigset_t>::uninit(),
        MaybeUninit::<libc::sigset_t>::uninit(),
    );
    // SAFETY: both are filled in before they are used.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), before.as_mut_ptr());
    }
    let done = what();
    // SAFETY: the first call has filled it in.
    unsafe {
        libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut());
    }
    done
}

/// Runs `what` on a thread of its own, with a stack larger than the kernel's, and waits.
pub(crate) fn aside<T: Send>(what: impl FnOnce() -> T + Send) -> io::Result<T> {
    blocked(|| {
        std::thread::scope(|scope| {
            let started = std::thread::Builder::new()
                .stack_size(16 << 20)
                .spawn_scoped(scope, what);
            let gone = |_| io::Error::other("the verifier's thread has failed");
            started.and_then(|thread| thread.join().map_err(gone))
        })
    })
}
