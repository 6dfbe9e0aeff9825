//! The signals by which calls end.

use crate::world::world;
use std::io;
use std::mem::MaybeUninit;

pub(crate) type Handler = extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);

/// Those of faults.
pub(crate) const SIGNALS: [i32; 5] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGILL,
    libc::SIGFPE,
    libc::SIGTRAP,
];

/// The one that late threads are sent.
pub(crate) fn late() -> i32 {
    libc::SIGRTMIN() + 8
}

/// What was installed before.
pub(crate) fn install(signal: i32, handler: Handler) -> io::Result<libc::sigaction> {
    let mut before = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: an all-zero action is one; it is filled in before it is used. The handlers do what handlers may.
    let done = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
        libc::sigaction(signal, &action, before.as_mut_ptr())
    };
    match done {
        // SAFETY: the system has filled it in.
        0 => Ok(unsafe { before.assume_init() }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Opens all of them for the calling thread, with the one of revocations. A fault whose signal is blocked would end the
/// process.
pub(crate) fn open() -> io::Result<()> {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the first call makes the set, the others use it; nobody asks for what was blocked before.
    let failed = unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in SIGNALS.into_iter().chain([late(), world().inside.signal()]) {
            libc::sigaddset(set.as_mut_ptr(), signal);
        }
        libc::pthread_sigmask(libc::SIG_UNBLOCK, set.as_ptr(), std::ptr::null_mut())
    };
    match failed {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// The general registers that a handler is given, by their numbers in machine code.
pub(crate) fn general(registers: &[i64; 23]) -> [u64; 16] {
    [
        libc::REG_RAX,
        libc::REG_RCX,
        libc::REG_RDX,
        libc::REG_RBX,
        libc::REG_RSP,
        libc::REG_RBP,
        libc::REG_RSI,
        libc::REG_RDI,
        libc::REG_R8,
        libc::REG_R9,
        libc::REG_R10,
        libc::REG_R11,
        libc::REG_R12,
        libc::REG_R13,
        libc::REG_R14,
        libc::REG_R15,
    ]
    .map(|register| registers[register as usize] as u64)
}
