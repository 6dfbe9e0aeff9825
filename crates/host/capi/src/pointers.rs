//! What C's pointers point to, for the time of a call.

use crate::status::Failure;
use std::ffi::{CStr, c_char, c_void};

/// Where C wants a result: not null.
///
/// # Safety
/// If it is not null, it points to a place for a `T` that this call may write.
pub(crate) unsafe fn place<'a, T>(
    pointer: *mut T,
) -> Result<&'a mut std::mem::MaybeUninit<T>, Failure> {
    // SAFETY: null, or a place that this call may write: this function's condition. Nothing is assumed about what is
    // there, and C has no reference of Rust's to it.
    unsafe { pointer.cast::<std::mem::MaybeUninit<T>>().as_mut() }.ok_or_else(Failure::null)
}

/// C's bytes; none may be null.
///
/// # Safety
/// If it is not null, it points to `length` bytes that nobody changes meanwhile.
pub(crate) unsafe fn bytes<'a>(pointer: *const c_void, length: usize) -> Result<&'a [u8], Failure> {
    if length == 0 {
        return Ok(&[]);
    }
    if pointer.is_null() || isize::try_from(length).is_err() {
        return Err(Failure::null());
    }
    // SAFETY: not null, and `length` bytes that nobody changes: this function's condition. The length is not too large.
    Ok(unsafe { std::slice::from_raw_parts(pointer.cast(), length) })
}

/// A string of C's, not null.
///
/// # Safety
/// If it is not null, it is a string that nobody changes meanwhile.
pub(crate) unsafe fn string<'a>(pointer: *const c_char) -> Result<&'a CStr, Failure> {
    if pointer.is_null() {
        return Err(Failure::null());
    }
    // SAFETY: not null, so a string that ends with a zero and that nobody changes: this function's condition.
    Ok(unsafe { CStr::from_ptr(pointer) })
}

/// As [`string`], as text.
///
/// # Safety
/// As [`string`].
pub(crate) unsafe fn text<'a>(pointer: *const c_char) -> Result<&'a str, Failure> {
    // SAFETY: `string` has the same condition.
    let string = unsafe { string(pointer) }?;
    string
        .to_str()
        .map_err(|_| Failure::argument("a name is not UTF-8"))
}
