//! What the kernel lets the library ask of it.

use std::ffi::{CString, c_char, c_ulong, c_void};

/// `struct mullion_kernel` of the patch.
#[repr(C)]
pub struct Functions {
    symbol: extern "C" fn(*const c_char, *mut c_void) -> c_ulong,
    say: extern "C" fn(*const c_char),
}

/// The same, for the library's own use.
#[derive(Clone, Copy)]
pub(crate) struct Kernel(&'static Functions);

impl Kernel {
    pub(crate) fn new(functions: &'static Functions) -> Kernel {
        Kernel(functions)
    }

    /// Where an exported symbol is, for the module `of`.
    pub(crate) fn symbol(self, name: &str, of: *mut c_void) -> Option<usize> {
        let name = CString::new(name).ok()?;
        let found = (self.0.symbol)(name.as_ptr(), of);
        (found != 0).then_some(found as usize)
    }

    /// Lines for the kernel's log.
    pub(crate) fn say(self, text: &str) {
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        for line in lines.filter_map(|line| CString::new(line).ok()) {
            (self.0.say)(line.as_ptr());
        }
    }
}
