//! What a module passes to be read. An address that leads nowhere is an error of the call and no fault of the process.

use crate::apr;
use crate::frame::{self, Frame};
use crate::walled::{Answer, Walled};
use mullion_word_runtime::{copy_at, text_at};
use std::mem::MaybeUninit;

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

/// The same, or nothing for null.
pub(crate) fn name_or_null(frame: &Frame, from: u64) -> Answer<Option<Vec<u8>>> {
    match from {
        0 => Ok(None),
        from => name(frame, from).map(Some),
    }
}

/// Where a function finds such a copy.
pub(crate) fn place(name: Option<&Vec<u8>>) -> u64 {
    name.map_or(0, |name| name.as_ptr() as u64)
}

/// Strings that a module passes, up to a null pointer, as copies.
pub(crate) struct Names {
    names: Vec<Vec<u8>>,
    words: Vec<u64>,
}

/// No list is longer.
const NAMES: usize = 1 << 16;

impl Names {
    pub(crate) fn of(frame: &Frame, list: u64) -> Answer<Names> {
        let (mut names, mut words) = (Vec::new(), Vec::new());
        while words.len() < NAMES {
            match self::words(frame, list.wrapping_add(8 * words.len() as u64))? {
                [0] => {
                    words.push(0);
                    return Ok(Names { names, words });
                }
                [from] => {
                    let name = name(frame, from)?;
                    words.push(name.as_ptr() as u64);
                    names.push(name);
                }
            }
        }
        Err(format!("the list at {list:#x} has no end"))
    }

    pub(crate) fn names(&self) -> &[Vec<u8>] {
        &self.names
    }

    /// The list of the copies.
    pub(crate) fn at(&self) -> u64 {
        self.words.as_ptr() as u64
    }
}

/// So many bytes of a call's strings lie where the call has them, and longer ones elsewhere.
const SHORT: usize = 256;
/// A call has no more arguments.
const MOST: usize = 12;

/// The strings of one call of the host, as copies. The module's own may change or go while the function reads. It is not moved while a
/// function has their addresses.
pub(crate) struct Texts {
    /// Only bytes below `used` have been written.
    short: [MaybeUninit<u8>; SHORT],
    used: usize,
    long: Vec<Vec<u8>>,
    /// The module's, ours, and the bytes with the zero; only those below `count` have been written.
    places: [MaybeUninit<(u64, u64, u64)>; MOST],
    count: usize,
}

impl Texts {
    #[inline]
    pub(crate) fn new() -> Texts {
        Texts {
            short: [const { MaybeUninit::uninit() }; SHORT],
            used: 0,
            long: Vec::new(),
            places: [const { MaybeUninit::uninit() }; MOST],
            count: 0,
        }
    }

    /// A copy of a string, with a zero at its end: where it is.
    pub(crate) fn copy(&mut self, frame: &Frame, from: u64) -> Answer<u64> {
        let length = frame.walled.length(from, u64::MAX)?;
        let to = self.room(length + 1)?;
        // SAFETY: the server reads what a module reads, and there is room for the string and a zero.
        let done = unsafe {
            to.add(length).write(0);
            copy_at(from as usize, to, length)
        };
        let place = self.places.get_mut(self.count);
        match place.filter(|_| done == length) {
            Some(place) => place.write((from, to as u64, length as u64 + 1)),
            None => return Err(no_string(from)),
        };
        self.count += 1;
        Ok(to as u64)
    }

    fn room(&mut self, bytes: usize) -> Answer<*mut u8> {
        if let Some(room) = self.short[self.used..].get_mut(..bytes) {
            self.used += bytes;
            return Ok(room.as_mut_ptr().cast());
        }
        let mut room = Vec::new();
        let has_room = room.try_reserve_exact(bytes);
        has_room.map_err(|_| format!("a string of {bytes} bytes"))?;
        let at = room.as_mut_ptr();
        self.long.push(room);
        Ok(at)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The module's own place for an address that may lie in one of the copies.
    #[inline]
    pub(crate) fn theirs(&self, at: u64) -> u64 {
        match self.count {
            0 => at,
            _ => self.found(at),
        }
    }

    fn found(&self, at: u64) -> u64 {
        for place in &self.places[..self.count] {
            // SAFETY: `copy` writes each place before it counts it.
            let (theirs, ours, bytes) = unsafe { place.assume_init() };
            let inside = at.wrapping_sub(ours);
            if inside < bytes {
                return theirs.wrapping_add(inside);
            }
        }
        at
    }
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

/// The same for the call's module.
#[inline]
pub(crate) fn bytes_for(frame: &Frame, from: u64, to: &mut [u8]) -> Answer<()> {
    // SAFETY: there is room.
    unsafe { into(frame, from, to.as_mut_ptr(), to.len()) }
}

pub(crate) fn no_string(from: u64) -> String {
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

/// A copy of a string that a module passes, in a pool.
///
/// # Safety
/// The pool lives, and is this thread's.
pub(crate) unsafe fn keep_text(frame: &Frame, pool: u64, from: u64) -> Answer<u64> {
    let length = frame.walled.length(from, u64::MAX)?;
    // SAFETY: by the caller; there is room for the string and a zero, which is written last: nobody has the address before.
    let (at, done) = unsafe {
        let at = apr::apr_palloc(pool, length as u64 + 1);
        let done = copy_at(from as usize, at as *mut u8, length);
        ((at as *mut u8).add(length)).write(0);
        (at, done)
    };
    match done == length {
        true => Ok(at),
        false => Err(no_string(from)),
    }
}

/// A copy of a string in a pool.
///
/// # Safety
/// The pool lives, and is this thread's.
pub(crate) unsafe fn keep(pool: u64, text: &[u8]) -> u64 {
    // SAFETY: by the caller; there is room for the zero.
    unsafe {
        let at = apr::apr_palloc(pool, text.len() as u64 + 1);
        (at as *mut u8).copy_from_nonoverlapping(text.as_ptr(), text.len());
        ((at as *mut u8).add(text.len())).write(0);
        at
    }
}
