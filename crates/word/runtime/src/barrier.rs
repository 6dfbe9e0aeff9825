//! The barrier that one thread makes for all.

/// Every thread of the process passes a full barrier. It cannot fail behind `Inside::new`, which registers the process.
pub(crate) fn barrier() -> bool {
    let command = libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED;
    // SAFETY: it has no effect but order.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}
