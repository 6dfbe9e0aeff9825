//! The host's own signal handlers go on working. In a process of its own, as
//! handlers belong to the whole process.
#![expect(clippy::disallowed_methods, reason = "the test maps memory of its own")]

mod support;

use mullion_runtime::Cause;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use support::Program;

static SEEN: AtomicU64 = AtomicU64::new(0);

/// Counts, and makes the page readable and writable.
extern "C" fn hosts_own(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    SEEN.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the fault is the one that the test causes in its own mapping.
    unsafe {
        let page = ((*info).si_addr() as usize & !0xfff) as *mut libc::c_void;
        libc::mprotect(page, 4096, libc::PROT_READ | libc::PROT_WRITE);
    }
}

#[test]
fn the_hosts_handler_sees_the_hosts_faults_and_no_others() {
    // SAFETY: a handler of the right signature; a mapping of the test's own.
    let page = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = hosts_own as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        libc::sigaction(libc::SIGSEGV, &action, ptr::null_mut());
        libc::mmap(
            ptr::null_mut(),
            4096,
            libc::PROT_NONE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    let program = Program::new(
        "
        export fail
            xorl %eax, %eax
            movq %gs:(%eax), %rax
            ret
        ",
    );
    let fault = program.load().fault("fail", &[]);
    assert!(matches!(fault.cause, Cause::Access { .. }));
    assert_eq!(SEEN.load(Ordering::Relaxed), 0);
    // SAFETY: faults once, and then the handler has made the page writable.
    unsafe { page.cast::<u64>().write_volatile(7) };
    assert_eq!(SEEN.load(Ordering::Relaxed), 1);
    program.load().fault("fail", &[]);
    assert_eq!(SEEN.load(Ordering::Relaxed), 1);
}
