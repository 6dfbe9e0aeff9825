//! What a module passes to be read, as a copy. The kernel reads what is not the module's own memory. So an address that leads nowhere
//! is an error of the call and no fault of the process.

use crate::frame::Frame;
use crate::walled::Answer;

/// A page is there as a whole or not at all.
const PAGE: u64 = 4096;

/// Reads by the kernel, which may find nothing there.
///
/// # Safety
/// So many bytes can be written at the place.
unsafe fn kernel(from: u64, to: *mut u8, bytes: usize) -> Answer<()> {
    let part = |at: *mut u8| libc::iovec {
        iov_base: at.cast(),
        iov_len: bytes,
    };
    let (local, remote) = (part(to), part(from as *mut u8));
    // SAFETY: the kernel writes into the place alone, by the caller. An address that it cannot read is an error.
    let count = unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0) };
    match usize::try_from(count) == Ok(bytes) {
        true => Ok(()),
        false => Err(format!("{bytes} bytes at {from:#x} cannot be read")),
    }
}

/// Fills a place with what a module passes.
///
/// # Safety
/// So many bytes can be written at the place. Threads of the module may change them meanwhile.
pub(crate) unsafe fn into(frame: &Frame, from: u64, to: *mut u8, bytes: usize) -> Answer<()> {
    if bytes == 0 {
        return Ok(());
    }
    frame.walled.must_read(from, bytes as u64)?;
    match frame.walled.writes(from, bytes as u64) {
        true => {
            // SAFETY: the module may write, and so read, there; the place is writable by the caller. The two may overlap.
            unsafe { to.copy_from(from as *const u8, bytes) };
            Ok(())
        }
        // SAFETY: so many bytes can be written at the place, as this function's own condition has it.
        false => unsafe { kernel(from, to, bytes) },
    }
}

/// So many words.
pub(crate) fn words<const N: usize>(frame: &Frame, from: u64) -> Answer<[u64; N]> {
    let mut words = [0u64; N];
    // SAFETY: it is our own memory.
    unsafe { into(frame, from, words.as_mut_ptr().cast(), 8 * N) }?;
    Ok(words)
}

/// A string, without the zero at its end.
pub(crate) fn text(frame: &Frame, from: u64) -> Answer<Vec<u8>> {
    let mut text: Vec<u8> = Vec::new();
    loop {
        let (old, next) = (text.len(), from.wrapping_add(text.len() as u64));
        let rest = (PAGE - next % PAGE) as usize;
        text.resize(old + rest, 0);
        // SAFETY: it is our own memory, and has that room.
        unsafe { kernel(next, text[old..].as_mut_ptr(), rest) }?;
        if let Some(end) = text[old..].iter().position(|byte| *byte == 0) {
            text.truncate(old + end);
            frame.walled.must_read(from, text.len() as u64 + 1)?;
            return Ok(text);
        }
    }
}
