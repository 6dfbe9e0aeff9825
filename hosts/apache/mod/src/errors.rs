//! `errno` of modules: a word of the module's own for each of its threads. It goes to the C library before a call of the host, and
//! comes back behind it.

use crate::call::mediate;
use crate::frame::Frame;
use crate::heap;
use std::cell::RefCell;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether any module has ever asked for it.
static ANY: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// This thread's words, by the modules that have them.
    static WORDS: RefCell<Vec<(usize, u64)>> = const { RefCell::new(Vec::new()) };
}

/// The word of the call's module, if it has one in this thread.
fn word(frame: &Frame) -> Option<u64> {
    let module = std::ptr::from_ref(frame.walled) as usize;
    WORDS.with_borrow(|words| {
        let mut words = words.iter();
        words.find(|(of, _)| *of == module).map(|(_, at)| *at)
    })
}

fn library() -> *mut c_int {
    // SAFETY: it is this thread's own word, and always there.
    unsafe { libc::__errno_location() }
}

/// A call of the host, with the module's number before it and the library's behind it.
#[inline]
pub(crate) fn around<R>(frame: &Frame, act: impl FnOnce() -> R) -> R {
    match ANY.load(Ordering::Relaxed).then(|| word(frame)).flatten() {
        None => act(),
        Some(at) => {
            // SAFETY: `__errno_location` below has taken the word from memory that is the module's for good.
            unsafe { library().write((at as *const c_int).read()) };
            let result = act();
            // SAFETY: the word is the module's for good, and four bytes of it are written.
            unsafe { (at as *mut c_int).write(library().read()) };
            result
        }
    }
}

pub(crate) extern "C" fn __errno_location() -> u64 {
    mediate(|frame| {
        if let Some(at) = word(frame) {
            return Ok(at);
        }
        let at = frame.walled.take(frame, heap::lasting(frame)?, 8)?;
        // SAFETY: it was just taken.
        unsafe { (at as *mut c_int).write(library().read()) };
        let module = std::ptr::from_ref(frame.walled) as usize;
        WORDS.with_borrow_mut(|words| words.push((module, at)));
        ANY.store(true, Ordering::Relaxed);
        Ok(at)
    })
}
