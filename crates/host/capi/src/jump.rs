//! A host function that is left by a jump.
//!
//! A function can register another one by `_pthread_cleanup_push` (Linux Standard Base, LSB Core). When it is left by
//! `longjmp` or `pthread_exit`, the C library calls that one before the stack is given up. That is the one moment at
//! which such a jump can be seen for certain. Afterwards the stack may look as if the host function still ran.

use mullion_host as host;
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr;

/// `struct _pthread_cleanup_buffer`, which the C library fills in.
#[repr(C)]
struct Buffer {
    routine: Option<unsafe extern "C" fn(*mut c_void)>,
    argument: *mut c_void,
    cancel_type: c_int,
    previous: *mut Buffer,
}

unsafe extern "C" {
    fn _pthread_cleanup_push(
        buffer: *mut Buffer,
        routine: unsafe extern "C" fn(*mut c_void),
        argument: *mut c_void,
    );
    fn _pthread_cleanup_pop(buffer: *mut Buffer, execute: c_int);
}

/// Runs `function`; if a jump leaves it, no domain is entered on the thread any more.
#[inline]
pub(crate) fn watched<R>(function: impl FnOnce() -> R) -> R {
    let mut buffer = MaybeUninit::<Buffer>::uninit();
    let place = buffer.as_mut_ptr();
    // SAFETY: the buffer stays where it is until it is taken off the thread's list again, which is in this
    // function, as `function` calls C that does not unwind; or by the C library, when a jump leaves it.
    unsafe { _pthread_cleanup_push(place, left, ptr::null_mut()) };
    let returned = function();
    // SAFETY: it is the last one on the list: C functions take off what they have put there.
    unsafe { _pthread_cleanup_pop(place, 0) };
    returned
}

unsafe extern "C" fn left(_: *mut c_void) {
    host::abandon_thread();
}
