//! A barrier on every processor that runs the process.

/// One command of `membarrier`; whether the kernel did it.
pub(crate) fn membarrier(command: libc::c_int) -> bool {
    // SAFETY: the call has no memory operand.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}
