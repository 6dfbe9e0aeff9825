//! What a module passes to be read. An address that leads nowhere is an error of the call and no fault of the process.

use crate::frame::{self, Frame};
use crate::walled::{Answer, Walled};
use mullion_word_runtime::{copy_at, text_at};

/// Bytes that are looked at at a time.
const PIECE: usize = 64;

/// Fills a place with what a module passes.
///
/// # Safety
/// So many bytes can be written at the place. Threads of the module may change them meanwhile.
pub(crate) unsafe fn into(frame: &Frame, from: u64, to: *mut u8, bytes: usize) -> Answer<()> {
    if bytes == 0 {
        return Ok(());
    }
    frame.walled.must_read(from, bytes as u64)?;
    // SAFETY: the module reads there itself, as was looked at. The place is writable by the caller.
    match unsafe { copy_at(from as usize, to, bytes) } == bytes {
        true => Ok(()),
        false => Err(format!("{bytes} bytes at {from:#x} cannot be read")),
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
    text_of(frame.walled, from)
}

pub(crate) fn text_of(walled: &'static Walled, from: u64) -> Answer<Vec<u8>> {
    let length = bare_length(from).ok_or_else(|| no_string(from))?;
    walled.must_read(from, length as u64 + 1)?;
    let mut text = vec![0; length];
    // SAFETY: the module may read there, and there is room.
    match unsafe { copy_at(from as usize, text.as_mut_ptr(), length) } == length {
        true => Ok(text),
        false => Err(no_string(from)),
    }
}

/// A string that the module may read, with the zero at its end: what is looked at is what is passed on.
pub(crate) fn name(frame: &Frame, from: u64) -> Answer<Vec<u8>> {
    let mut name = text(frame, from)?;
    name.push(0);
    Ok(name)
}

/// A string with the zero at its end, whatever the module makes of it meanwhile.
pub(crate) fn with_zero(from: u64) -> Answer<Vec<u8>> {
    let mut text = vec![0; length(from)? + 1];
    let end = text.len() - 1;
    // SAFETY: the server reads what a module reads, and there is room.
    match unsafe { copy_at(from as usize, text.as_mut_ptr(), end) } == end {
        true => Ok(text),
        false => Err(no_string(from)),
    }
}

/// Characters of a string, which has an end. The module that has called may read it.
pub(crate) fn length(from: u64) -> Answer<usize> {
    let length = bare_length(from).ok_or_else(|| no_string(from))?;
    reads(from, length as u64 + 1)?;
    Ok(length)
}

/// The same of a string that is not the module's to read.
pub(crate) fn bare_length(from: u64) -> Option<usize> {
    // SAFETY: the server reads what a module reads. Memory of the module's own is read by no reference of ours.
    unsafe { text_at(from as usize) }
}

/// The module that has called the host may read there.
fn reads(from: u64, bytes: u64) -> Answer<()> {
    match frame::now() {
        Some(frame) => frame.walled.must_read(from, bytes),
        None => Ok(()),
    }
}

/// The same of at most so many.
pub(crate) fn length_within(from: u64, most: u64) -> Answer<usize> {
    let mut length = 0;
    while length < most {
        let mut piece = [0; PIECE];
        let room = (most - length).min(PIECE as u64) as usize;
        // SAFETY: as in `length`, and there is room.
        let done = unsafe { copy_at(from.wrapping_add(length) as usize, piece.as_mut_ptr(), room) };
        if let Some(end) = piece[..done].iter().position(|byte| *byte == 0) {
            return Ok(length as usize + end);
        }
        if done < room {
            return Err(no_string(from));
        }
        length += room as u64;
    }
    Ok(length as usize)
}

/// Fills bytes of ours with what the module may read.
pub(crate) fn bytes(from: u64, to: &mut [u8]) -> Answer<()> {
    reads(from, to.len() as u64)?;
    // SAFETY: as in `length`, and there is room.
    match unsafe { copy_at(from as usize, to.as_mut_ptr(), to.len()) } == to.len() {
        true => Ok(()),
        false => Err(format!("{} bytes at {from:#x} cannot be read", to.len())),
    }
}

fn no_string(from: u64) -> String {
    format!("{from:#x} is no string")
}

/// So many bytes are there.
pub(crate) fn is_there(from: u64, bytes: u64) -> bool {
    const PAGE: u64 = 4096;
    let Some(last) = bytes.checked_sub(1) else {
        return true;
    };
    let Some(last) = from.checked_add(last) else {
        return false;
    };
    let mut pages = (from / PAGE + 1..=last / PAGE).map(|page| page * PAGE);
    let mut byte = 0;
    // SAFETY: as in `length`, and there is room.
    let mut is_one = |at: u64| unsafe { copy_at(at as usize, &mut byte, 1) } == 1;
    is_one(from) && pages.all(is_one)
}
