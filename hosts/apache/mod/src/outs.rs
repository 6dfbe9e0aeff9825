//! What functions of the host write for a module: memory of ours until they return. APR's functions follow what they have just
//! written, and another thread of the module could put something else there meanwhile.
//!
//! ```text
//!   the module's word ──► ours ──► APR makes an object, and follows the word ──► it is known as the module's ──► the module's word
//! ```

use crate::copied;
use crate::frame::Frame;
use crate::interface::Param;
use crate::slots::WIDE;
use crate::walled::Answer;
use std::cell::Cell;
use std::mem::MaybeUninit;

/// So many bytes a place has at most.
pub(crate) const MOST: u64 = 256;
/// So many places a call has, and words in all of them.
const PLACES: usize = 6;
const WORDS: usize = 48;

/// What an argument points to.
#[derive(Clone, Copy)]
struct Place {
    argument: usize,
    /// The module's.
    to: u64,
    bytes: usize,
    /// The first word of ours.
    word: usize,
    /// Whether the module gets it back.
    is_given: bool,
}

/// Places of one call. It is not moved while a function has their addresses.
pub(crate) struct Outs {
    /// Only those below `used` have been written: most calls have none.
    words: [MaybeUninit<Cell<u64>>; WORDS],
    used: usize,
    places: [MaybeUninit<Place>; PLACES],
    /// So many places have been written.
    count: usize,
}

impl Outs {
    pub(crate) fn new() -> Outs {
        Outs {
            words: [const { MaybeUninit::uninit() }; WORDS],
            used: 0,
            places: [const { MaybeUninit::uninit() }; PLACES],
            count: 0,
        }
    }

    /// A word that was taken for a place.
    fn cell(&self, word: usize) -> Option<&Cell<u64>> {
        let word = self.words[..self.used].get(word)?;
        // SAFETY: `place` writes each word before it counts it in `used`.
        Some(unsafe { word.assume_init_ref() })
    }

    /// Where a place's words are.
    fn at(&self, word: usize) -> *const u8 {
        self.words[word..].as_ptr().cast()
    }

    /// Puts a place of ours where an argument points to one of the module's, for each that a function writes.
    pub(crate) fn take_over(
        &mut self,
        frame: &Frame,
        params: &[Param],
        arguments: &mut [u64; WIDE],
    ) -> Answer<()> {
        for (at, param) in params.iter().enumerate().take(WIDE) {
            let value = arguments[at];
            let Some((bytes, is_object)) = param.out() else {
                continue;
            };
            // Whether there may be none is looked at later.
            if value == 0 && !is_object {
                continue;
            }
            frame.walled.must_write(value, bytes)?;
            let word = self.place(at, value, bytes)?;
            if !is_object {
                self.fill(frame, word, value, bytes)?;
            }
            arguments[at] = self.at(word) as u64;
        }
        Ok(())
    }

    fn place(&mut self, argument: usize, to: u64, bytes: u64) -> Answer<usize> {
        let (word, more) = (self.used, bytes.div_ceil(8) as usize);
        let place = self.places.get_mut(self.count);
        match place.filter(|_| bytes <= MOST && word + more <= WORDS) {
            Some(place) => {
                place.write(Place {
                    argument,
                    to,
                    bytes: bytes as usize,
                    word,
                    is_given: false,
                });
                let words = &mut self.words[word..word + more];
                words.iter_mut().for_each(|word| {
                    word.write(Cell::new(0));
                });
            }
            None => return Err("more is written than a call has room for".to_owned()),
        }
        self.used += more;
        self.count += 1;
        Ok(word)
    }

    /// What the module has there: the function may read it, or write a part of it.
    fn fill(&mut self, frame: &Frame, word: usize, from: u64, bytes: u64) -> Answer<()> {
        if let Some(place) = self.all_mut().last_mut() {
            place.is_given = true;
        }
        let words = &self.words[word..word + bytes.div_ceil(8) as usize];
        let own = words.as_ptr().cast::<u8>().cast_mut();
        // SAFETY: a cell is its word, and so many bytes of words were taken for the place and written. Nobody else has their
        // address yet.
        let own = unsafe { std::slice::from_raw_parts_mut(own, bytes as usize) };
        copied::bytes_for(frame, from, own)
    }

    fn all(&self) -> &[Place] {
        let written = self.places[..self.count].as_ptr().cast::<Place>();
        // SAFETY: `place` writes each place before it counts it, and one that may be unwritten lies as one that is not.
        unsafe { std::slice::from_raw_parts(written, self.count) }
    }

    fn all_mut(&mut self) -> &mut [Place] {
        let written = self.places[..self.count].as_mut_ptr().cast::<Place>();
        // SAFETY: `place` writes each place before it counts it, and nobody else has them.
        unsafe { std::slice::from_raw_parts_mut(written, self.count) }
    }

    /// The word that an argument points to, if it is one of ours.
    pub(crate) fn word(&self, argument: usize) -> Option<u64> {
        let place = self.all().iter().find(|place| place.argument == argument)?;
        self.cell(place.word).map(Cell::get)
    }

    /// The module gets this in the place of an object.
    pub(crate) fn give(&mut self, argument: usize, value: u64) {
        let mut places = self.all_mut().iter_mut();
        let Some(place) = places.find(|place| place.argument == argument) else {
            return;
        };
        place.is_given = true;
        let word = place.word;
        if let Some(word) = self.cell(word) {
            word.set(value);
        }
    }

    /// Words in which a function may have put addresses of ours: the module gets its own.
    pub(crate) fn show(&self, theirs: impl Fn(u64) -> u64) {
        for word in 0..self.used {
            if let Some(word) = self.cell(word) {
                word.set(theirs(word.get()));
            }
        }
    }

    /// What a function has answered, which may be one of its places: then it is the module's.
    pub(crate) fn answer(&self, result: u64) -> u64 {
        let theirs = self.all().iter().find_map(|place| {
            let inside = result.wrapping_sub(self.at(place.word) as u64);
            (inside < place.bytes as u64).then(|| place.to.wrapping_add(inside))
        });
        theirs.unwrap_or(result)
    }

    /// The call is over.
    pub(crate) fn give_back(&self, frame: &Frame) -> Answer<()> {
        for place in self.all().iter().filter(|place| place.is_given) {
            // Another thread of the module may have given the memory back meanwhile.
            frame.walled.must_write(place.to, place.bytes as u64)?;
            let from = self.at(place.word);
            // SAFETY: the place has so many bytes, and the module may write them.
            unsafe { (place.to as *mut u8).copy_from_nonoverlapping(from, place.bytes) };
        }
        Ok(())
    }
}

/// What a function writes of any length, as lines and buffers: httpd looks for the end of a line that it has just written, and writes
/// there.
#[derive(Default)]
pub(crate) struct Written(Vec<(usize, u64, Vec<u8>)>);

/// Zeros behind a place. A function that has written nothing there may look for the end of what it has written.
const BEHIND: usize = 8;

impl Written {
    /// A place of ours for an argument, with what the module has there. Functions that have no room write nevertheless: some look for a
    /// string's end there, and some count from one less.
    ///
    /// # Errors
    /// There is no room, or the module may not write there.
    pub(crate) fn take_over(
        &mut self,
        frame: &Frame,
        argument: usize,
        to: u64,
        bytes: u64,
    ) -> Answer<u64> {
        frame.walled.must_write(to, bytes)?;
        if bytes == 0 {
            return Err(format!("{to:#x} is a place without room"));
        }
        let mut own = vec![0; bytes as usize + BEHIND];
        copied::bytes(to, &mut own[..bytes as usize])?;
        let at = own.as_mut_ptr() as u64;
        self.0.push((argument, to, own));
        Ok(at)
    }

    /// What the function has answered, which may be one of its places.
    pub(crate) fn answer(&self, result: u64) -> u64 {
        let theirs = self.0.iter().find_map(|(_, to, own)| {
            let inside = result.wrapping_sub(own.as_ptr() as u64);
            (inside < own.len() as u64).then(|| to.wrapping_add(inside))
        });
        theirs.unwrap_or(result)
    }

    /// The call is over.
    pub(crate) fn give_back(self, frame: &Frame, arguments: &mut [u64; WIDE]) -> Answer<()> {
        for (argument, to, own) in self.0 {
            arguments[argument] = to;
            let bytes = own.len() - BEHIND;
            frame.walled.must_write(to, bytes as u64)?;
            // SAFETY: the module may write so many bytes there.
            unsafe { (to as *mut u8).copy_from_nonoverlapping(own.as_ptr(), bytes) };
        }
        Ok(())
    }
}
