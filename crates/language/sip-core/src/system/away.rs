//! Calls of Linux in which the processor may go to another thread.
//!
//! A processor guesses where a `ret` goes by the calls that it has seen last. When Linux goes from one thread to
//! another it fills that list with addresses of its own, for the safety of whoever runs next. The first `ret` of the
//! program that finds one of them costs about 1,100 cycles on Zen 4, as much as the call of Linux itself. It is guessed
//! into the kernel. So these calls are made here rather than by the C library, whose function would return. Afterwards
//! the list is filled with an address of the program's. A guess that goes there is wrong too, and costs about 20 cycles.
//!
//! Where nobody else has run, the guesses that are lost are cheap beside the call.

/// So many returns are guessed right or cheaply; those of Linux that are left lie deeper than workers return before they call
/// again. (32 took 50 cycles more for each call.)
#[cfg(not(miri))]
const RETURNS: usize = 8;

/// Calls Linux, and gives what it says: an error is negative.
///
/// # Safety
/// As the call says.
#[cfg(not(miri))]
#[inline(always)]
pub(super) unsafe fn call(number: libc::c_long, arguments: [usize; 6]) -> isize {
    let [first, second, third, fourth, fifth, sixth] = arguments;
    let said;
    // SAFETY: by the caller. Linux changes nothing but `rax`, `rcx` and `r11`. What the calls push is dropped; the compiler
    // has nothing below the stack pointer, since it is not told that the stack stays as it is. Nobody goes to the traps but
    // by a guess.
    unsafe {
        std::arch::asm!(
            "syscall",
            ".rept {returns}",
            "call 2f",
            "int3",
            "2:",
            ".endr",
            "add rsp, 8 * {returns}",
            returns = const RETURNS,
            inlateout("rax") number as isize => said,
            in("rdi") first,
            in("rsi") second,
            in("rdx") third,
            in("r10") fourth,
            in("r8") fifth,
            in("r9") sixth,
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
    said
}

/// The same by the C library.
///
/// # Safety
/// As that of the system call with these arguments.
#[cfg(miri)]
pub(super) unsafe fn call(number: libc::c_long, arguments: [usize; 6]) -> isize {
    let [first, second, third, fourth, fifth, _] = arguments;
    // SAFETY: the caller answers for what the system call does with these arguments.
    let said = unsafe { libc::syscall(number, first, second as i32, third as u32, fourth, fifth) };
    match said {
        0.. => said as isize,
        _ => {
            -(std::io::Error::last_os_error()
                .raw_os_error()
                .unwrap_or(libc::EINVAL) as isize)
        }
    }
}
