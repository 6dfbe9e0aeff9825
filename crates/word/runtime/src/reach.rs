//! What a module names to a host that looks for itself: memory that may not be there. To find none is an answer, and no fault of the
//! process.

use crate::gates;

/// Bytes of a text in front of its zero; none: there is no memory, or it ends before the text does. Other threads may change the
/// text meanwhile, so a host that needs it as it was measured takes a copy ([`copy_at`]).
///
/// # Safety
/// Where there is memory, it may be read: nobody in this process has it for itself alone, as values of Rust have theirs.
#[must_use]
pub unsafe fn text_at(at: usize) -> Option<usize> {
    // SAFETY: the caller lets it be read where there is memory, which is all that is asked for.
    let length = unsafe { gates::text(at as *const u8) }?;
    usize::try_from(length).ok()
}

/// Copies so many bytes to `to`: how many there were.
///
/// # Safety
/// As [`text_at`]; and so many bytes can be written at `to`.
pub unsafe fn copy_at(at: usize, to: *mut u8, bytes: usize) -> usize {
    // SAFETY: the caller lets it be read, and there is room.
    let done = unsafe { gates::fetch(to, at as *const u8, bytes as u64) };
    done as usize
}
