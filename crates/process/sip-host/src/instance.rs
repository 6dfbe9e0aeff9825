//! A judged library in memory.
//!
//! ```text
//!   memory file with the judged bytes -> dlopen -> entry attaches it to this program -> a copy of its statics
//!   before each life of a process:  statics <- the copy
//! ```
//! Each process that lives has an instance to itself, so that no two share statics. Each life begins with the statics
//! that the first one had. A life may leave pointers there into a heap that is gone, or a lock that was held when it
//! was killed. All that is gone with it. An instance that no process has is used again, and none is ever unmapped,
//! since messages, names and contracts refer to its constants.

use std::ffi::{CStr, CString, c_void};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::OnceLock;
use std::{io, ptr, slice};

use mullion_hip::sealed;
use mullion_sip::kernel::kernel;
use mullion_sip::manifest::ENTRY;
use mullion_sip::separate::{self, Entry, EntryFunction, Template};
use thiserror::Error;

use crate::image::{SipImage, Span};

/// Why a judged library could not be loaded.
#[derive(Debug, Error)]
pub enum LibraryLoadError {
    /// No memory for its bytes.
    #[error("no memory file for the library: {0}")]
    Memory(#[from] io::Error),
    /// The system's loader refused it.
    #[error("the system's loader refuses it: {0}")]
    Refused(String),
    /// Its entry found another version of the kernel's table.
    #[error("its entry does not take this host's kernel")]
    Version,
    /// Libraries find this program's thread-locals at a fixed distance from the thread pointer.
    #[error(
        "this program's thread-locals are in another place on each OS thread: link mullion-sip into the program, not into a library that it opens"
    )]
    Locals,
    /// Libraries call the C library's allocator, and give blocks to the program and take them.
    #[error(
        "this program has another allocator in the place of the C library's: SIPs that are built separately need that one"
    )]
    Allocator,
}

/// One copy of a library.
pub(crate) struct Instance {
    entry: &'static Entry,
    /// Stays open: the loader knows a library by its path, which has this number in it.
    _file: OwnedFd,
    /// Where its statics are, and what they were.
    statics: Vec<(*mut u8, Box<[u8]>)>,
}

// SAFETY: the pointers are to memory that stays; what is behind them is touched by `renew` alone, whose caller
// promises that nobody else uses it.
unsafe impl Send for Instance {}
// SAFETY: a reference to it gives numbers alone; `renew` asks for the instance alone.
unsafe impl Sync for Instance {}

impl Instance {
    /// Loads a library. It stays loaded.
    ///
    /// # Errors
    /// See [`LibraryLoadError`].
    pub(crate) fn load(image: &SipImage) -> Result<&'static Instance, LibraryLoadError> {
        if !has_fixed_locals() {
            return Err(LibraryLoadError::Locals);
        }
        if !has_usual_allocator() {
            return Err(LibraryLoadError::Allocator);
        }
        // Nobody can change it, and each such file is another library to the loader.
        let file = sealed(image.name(), &image.silenced())?;
        let path = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()))
            .unwrap_or_else(|_| unreachable!("a number has no zero byte"));
        // SAFETY: loading runs constructors of the library. The image was judged, and names none any more.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            return Err(LibraryLoadError::Refused(last_error()));
        }
        let base = base_of(handle)?;
        let name = CString::new(ENTRY).unwrap_or_default();
        // SAFETY: the library is open, the name a C string.
        let entry = unsafe { libc::dlsym(handle, name.as_ptr()) };
        if entry.is_null() {
            return Err(LibraryLoadError::Refused(last_error()));
        }
        // SAFETY: a function of that name in a library whose manifest names the same sources of `mullion-sip`, the
        // same compiler and layout has this type. Whoever made the file by other means is trusted with it.
        let attach = unsafe { std::mem::transmute::<*mut c_void, EntryFunction>(entry) };
        // SAFETY: the manifest agrees, and this is the first call.
        let entry = unsafe { attach(kernel()) }.ok_or(LibraryLoadError::Version)?;
        let parts = image.parts();
        let locals = parts.locals;
        // SAFETY: the library's own image, which was found to lie in it, and stays.
        unsafe {
            (entry.locals)(Template {
                start: base.wrapping_add(locals.start as usize),
                filled: locals.filled as usize,
                bytes: locals.bytes as usize,
                align: locals.align as usize,
            });
        }
        let instance = Instance {
            entry,
            _file: file,
            // SAFETY: the library's own segments, mapped at `base`, and nobody runs in it.
            statics: parts
                .writable
                .iter()
                .map(|span| unsafe { copy_of(base, *span) })
                .collect(),
        };
        Ok(Box::leak(Box::new(instance)))
    }

    /// The SIP's main function.
    pub(crate) fn main(&self) -> fn(&[String]) {
        self.entry.main
    }

    /// Statics as they were before the first life. Thread-locals are each thread's, and fresh by themselves.
    ///
    /// # Safety
    /// No process has this instance but the calling one, which has not begun to run it. The caller is in a critical
    /// piece that allocates as the host.
    pub(crate) unsafe fn renew(&self) {
        for (at, before) in &self.statics {
            // SAFETY: the library's own memory, of that length, which nobody uses, by the caller.
            unsafe { ptr::copy_nonoverlapping(before.as_ptr(), *at, before.len()) };
        }
    }
}

/// Whether two OS threads have what they have at the same distance from their thread pointers, as the program's own
/// thread-locals are by the ABI.
fn has_fixed_locals() -> bool {
    static FIXED: OnceLock<bool> = OnceLock::new();
    *FIXED.get_or_init(|| {
        let there = std::thread::spawn(separate::here).join();
        there.is_ok_and(|there| there == separate::here())
    })
}

/// Whether the C library's allocator is the one that everybody finds by its usual name.
fn has_usual_allocator() -> bool {
    let names = [(c"malloc", c"__libc_malloc"), (c"free", c"__libc_free")];
    // SAFETY: only asks for the addresses of names.
    let place = |name: &CStr| unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    names.iter().all(|(usual, own)| place(usual) == place(own))
}

/// The front of the loader's record of a library, which the system documents (`link.h`).
#[repr(C)]
struct LinkMap {
    base: *mut u8,
}

/// Where a library's address 0 is.
fn base_of(handle: *mut c_void) -> Result<*mut u8, LibraryLoadError> {
    let mut map = ptr::null::<LinkMap>();
    // SAFETY: the library is open, and the answer is a pointer to its record, which lives as long as it is.
    unsafe {
        if libc::dlinfo(handle, libc::RTLD_DI_LINKMAP, (&raw mut map).cast()) != 0 {
            return Err(LibraryLoadError::Refused(last_error()));
        }
        Ok((*map).base)
    }
}

/// # Safety
/// The span is of a library at `base`, readable, and nobody writes it.
unsafe fn copy_of(base: *mut u8, span: Span) -> (*mut u8, Box<[u8]>) {
    let at = base.wrapping_add(span.start as usize);
    // SAFETY: the span is of the library, readable, and nobody writes it, as this function demands.
    let now = unsafe { slice::from_raw_parts(at, span.bytes as usize) };
    (at, now.into())
}

fn last_error() -> String {
    // SAFETY: a C string of this thread, or null.
    unsafe {
        let text = libc::dlerror();
        if text.is_null() {
            return "no reason given".into();
        }
        CStr::from_ptr(text).to_string_lossy().into_owned()
    }
}
