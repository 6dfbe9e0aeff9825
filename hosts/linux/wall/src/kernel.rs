//! What the kernel lets the library ask of it.

use crate::returns;
use std::ffi::{CStr, CString, c_char, c_int, c_ulong, c_void};

/// `struct mullion_kernel` of the patch.
#[repr(C)]
pub struct Functions {
    symbol: extern "C" fn(*const c_char, *mut c_void) -> c_ulong,
    say: extern "C" fn(*const c_char),
    object: extern "C" fn(c_ulong, *mut Found) -> c_int,
    grants: extern "C" fn(c_ulong, c_ulong),
}

/// `struct mullion_object` of the patch.
#[repr(C)]
struct Found {
    start: c_ulong,
    bytes: c_ulong,
    kind: [c_char; 64],
}

/// `struct mullion_recovery` of the module for recovery.
#[repr(C)]
struct Recovery {
    ended: Option<extern "C" fn(c_ulong)>,
    give_back: Option<extern "C" fn(c_ulong)>,
    is_over: Option<extern "C" fn(c_ulong) -> c_int>,
}

/// Something of the kernel's that has bounds: an object of a cache, a page, a variable.
#[derive(Clone, Debug)]
pub(crate) struct Object {
    pub(crate) start: u64,
    pub(crate) bytes: u64,
    /// The name of its cache, `page.ext2`, `variable.jiffies`.
    pub(crate) kind: String,
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

    /// What is at an address. None: the kernel knows no bounds there, or nobody may be granted it.
    pub(crate) fn object(self, address: u64) -> Option<Object> {
        let mut found = Found {
            start: 0,
            bytes: 0,
            kind: [0; 64],
        };
        let nothing = (self.0.object)(address, &raw mut found);
        // SAFETY: the kernel has ended the name with a zero within its 64 bytes.
        let kind = unsafe { CStr::from_ptr(found.kind.as_ptr()) };
        (nothing == 0 && found.bytes != 0).then(|| Object {
            start: found.start,
            bytes: found.bytes,
            // As policies can write it.
            kind: kind
                .to_string_lossy()
                .replace(|c: char| !c.is_ascii_alphanumeric() && c != '.', "_"),
        })
    }

    fn recovery(self) -> Option<*mut Recovery> {
        let found = self.symbol("mullion_recovery", std::ptr::null_mut())?;
        Some(found as *mut Recovery)
    }

    /// A module was ended. `give_back` is called later, by a thread of the kernel. Nothing happens without the module for that.
    pub(crate) fn ended(self, domain: c_ulong, give_back: extern "C" fn(c_ulong)) {
        let Some(recovery) = self.recovery() else {
            return;
        };
        // SAFETY: it is the kernel's own structure of this form, which stays, and one task at a time is in here.
        let ended = unsafe {
            (*recovery).give_back = Some(give_back);
            (*recovery).is_over = Some(returns::is_over);
            (*recovery).ended
        };
        if let Some(ended) = ended {
            ended(domain);
        }
    }

    /// A walled module has mounted something: `what` is its root, or the context that has got the tree.
    pub(crate) fn mounted(self, what: u64, is_tree: bool) {
        let name = match is_tree {
            true => "mullion_mounted_tree",
            false => "mullion_mounted",
        };
        let Some(found) = self.symbol(name, std::ptr::null_mut()) else {
            return;
        };
        // SAFETY: the kernel's functions of these names take a context and a dentry, and `what` is one of its own.
        let function: extern "C" fn(u64) = unsafe { std::mem::transmute(found) };
        function(what);
    }

    /// Whether an inode is marked as new.
    pub(crate) fn is_new(self, inode: u64) -> bool {
        let Some(found) = self.symbol("mullion_is_new", std::ptr::null_mut()) else {
            return false;
        };
        // SAFETY: the kernel's function of this name takes an inode, and says yes or no.
        let function: extern "C" fn(u64) -> c_int = unsafe { std::mem::transmute(found) };
        function(inode) != 0
    }

    /// Interrupts come again.
    pub(crate) fn interrupts_on(self) {
        if let Some(found) = self.symbol("um_set_signals", std::ptr::null_mut()) {
            // SAFETY: the kernel's function of this name takes a number.
            let function: extern "C" fn(c_int) -> c_int = unsafe { std::mem::transmute(found) };
            function(1);
        }
    }

    /// The kernel is to tell when this memory is freed.
    pub(crate) fn grants(self, object: &Object) {
        (self.0.grants)(object.start, object.bytes);
    }

    /// Lines for the kernel's log.
    pub(crate) fn say(self, text: &str) {
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        for line in lines.filter_map(|line| CString::new(line).ok()) {
            (self.0.say)(line.as_ptr());
        }
    }
}
