//! What callers of the table point to.

use super::Refusal;

/// The memory at a pointer of a caller.
///
/// # Safety
/// Where it is not null, `count` values are there, and nobody changes them meanwhile.
pub(super) unsafe fn slice<'a, T>(start: *const T, count: usize) -> Result<&'a [T], Refusal> {
    if count == 0 {
        return Ok(&[]);
    }
    if start.is_null() || !start.is_aligned() {
        return Err(Refusal::Null);
    }
    if count > isize::MAX as usize / size_of::<T>().max(1) {
        return Err(Refusal::TooLong);
    }
    // SAFETY: the caller promises that `count` values can be read there and that nobody writes them meanwhile. The checks
    // above have refused what no slice may be: null, a pointer out of line, and more than `isize::MAX` bytes.
    Ok(unsafe { std::slice::from_raw_parts(start, count) })
}

/// A text of a caller.
///
/// # Safety
/// As for [`slice`].
pub(super) unsafe fn text<'a>(start: *const u8, bytes: usize) -> Result<&'a str, Refusal> {
    // SAFETY: a text is a slice of bytes, for which the caller promises the same.
    let bytes = unsafe { slice(start, bytes) }?;
    std::str::from_utf8(bytes).map_err(|_| Refusal::Malformed)
}

/// A place of a caller for an answer. Looked at before anything is done.
pub(super) struct Out<T>(*mut T);

impl<T> Out<T> {
    /// # Safety
    /// Where it is not null and aligned, a `T` can be written there.
    pub(super) unsafe fn new(place: *mut T) -> Result<Out<T>, Refusal> {
        if place.is_null() || !place.is_aligned() {
            return Err(Refusal::Null);
        }
        Ok(Out(place))
    }

    pub(super) fn put(self, value: T) {
        // SAFETY: `Out::new` is unsafe: whoever made this value has promised room for a `T` there. It is not null and is in
        // line, which `Out::new` has checked; `put` takes the value, so it writes once.
        unsafe { self.0.write(value) }
    }
}
