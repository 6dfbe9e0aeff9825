//! The barrier that revocations rest on.

use std::io::{self, Write};

/// Every thread of the process passes a full barrier before this returns. It is `membarrier`, for which
/// [`Inside::new`](crate::Inside::new) registers the process.
///
/// # Aborts
/// If the system refuses it: a filter of system calls was closed after `Inside::new`. A right that was taken away could
/// then still be used, and nobody would be told.
pub fn barrier() {
    let command = libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED;
    // SAFETY: it has no effect but order.
    if unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) } != 0 {
        refused();
    }
}

#[cold]
fn refused() -> ! {
    let error = io::Error::last_os_error();
    let said = writeln!(
        io::stderr(),
        "mullion: membarrier is refused ({error}). The word wall takes rights away by it, so the process ends. Let the filter of \
         system calls pass `membarrier`."
    );
    // There is nobody else to tell.
    drop(said);
    std::process::abort()
}
