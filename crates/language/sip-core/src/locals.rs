//! Thread-locals: the system's functions for them, and those of a separately built SIP.

use std::ffi::{c_int, c_void};

#[cfg(feature = "separate")]
mod own;

#[cfg(feature = "separate")]
pub use crate::thread::here::{Distance, HERE};
#[cfg(feature = "separate")]
pub(crate) use own::leave;
#[cfg(feature = "separate")]
pub use own::{Index, LOCALS, THREAD, at_end, find, use_template};

/// The initial image of a library's thread-locals, where the loader has put it.
#[derive(Clone, Copy, Debug)]
pub struct Template {
    /// Where it is.
    pub start: *const u8,
    /// Bytes that are copied.
    pub filled: usize,
    /// Bytes in all; the rest is zero.
    pub bytes: usize,
    /// Of the whole, a power of two.
    pub align: usize,
}

/// The system's own functions of thread-locals. A library has hidden ones of the same names (`own`), so it finds the
/// system's in the state of the program that it is attached to. It needs no way to ask for functions by name.
#[cfg_attr(
    not(feature = "separate"),
    expect(dead_code, reason = "libraries read it")
)]
pub(crate) struct SystemLocals {
    pub(crate) find: unsafe extern "C" fn(*const c_void) -> *mut u8,
    pub(crate) at_end:
        unsafe extern "C" fn(unsafe extern "C" fn(*mut u8), *mut u8, *mut c_void) -> c_int,
}

impl SystemLocals {
    #[cfg(not(feature = "separate"))]
    pub(crate) const OWN: Self = {
        unsafe extern "C" {
            fn __tls_get_addr(index: *const c_void) -> *mut u8;
            fn __cxa_thread_atexit_impl(
                run: unsafe extern "C" fn(*mut u8),
                value: *mut u8,
                library: *mut c_void,
            ) -> c_int;
        }
        Self {
            find: __tls_get_addr,
            at_end: __cxa_thread_atexit_impl,
        }
    };

    /// A library's own copy of the state, which it uses before it is attached only: nothing has thread-locals then.
    #[cfg(feature = "separate")]
    pub(crate) const OWN: Self = {
        unsafe extern "C" fn find(_: *const c_void) -> *mut u8 {
            std::process::abort()
        }
        unsafe extern "C" fn at_end(
            _: unsafe extern "C" fn(*mut u8),
            _: *mut u8,
            _: *mut c_void,
        ) -> c_int {
            std::process::abort()
        }
        Self { find, at_end }
    };
}

#[cfg(not(feature = "separate"))]
pub(crate) static OWN: SystemLocals = SystemLocals::OWN;
#[cfg(feature = "separate")]
__state!(SystemLocals = SystemLocals::OWN);
