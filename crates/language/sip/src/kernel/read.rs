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
    // SAFETY: by the caller; not null, aligned, and of a possible size.
    Ok(unsafe { std::slice::from_raw_parts(start, count) })
}

/// A text of a caller.
///
/// # Safety
/// As for [`slice`].
pub(super) unsafe fn text<'a>(start: *const u8, bytes: usize) -> Result<&'a str, Refusal> {
    // SAFETY: by the caller.
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
        // SAFETY: by the word of whoever made it.
        unsafe { self.0.write(value) }
    }
}
