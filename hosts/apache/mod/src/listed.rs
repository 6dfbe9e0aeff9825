//! Arguments of a format that lie in the module's memory, and what they point to.

use crate::conversions::{Arguments, look};
use crate::copied;
use crate::walled::{Answer, Walled};

/// Integers that a format may read, by their places.
pub(crate) trait Words {
    /// None: the wall does not pass it on.
    fn word(&self, place: usize) -> Option<u64>;

    /// Numbers of floating point that come in registers. Others would lie among the words.
    fn floats(&self) -> usize {
        FLOATS
    }
}

struct Read<'a, W>(&'static Walled, &'a W);

/// Looks at what a format reads by its arguments.
pub(crate) fn arguments(
    walled: &'static Walled,
    format: &[u8],
    words: &impl Words,
    is_apr: bool,
) -> Answer<()> {
    let looked = look(format, is_apr, &Read(walled, words));
    looked.map_err(|what| format!("an argument of the format: {what}"))
}

impl<W: Words> Arguments for Read<'_, W> {
    fn floats(&self) -> usize {
        self.1.floats()
    }

    fn word(&self, place: usize) -> Option<u64> {
        self.1.word(place)
    }

    fn text(&self, at: u64, most: u64) -> Answer<()> {
        self.0.length(at, most).map(drop)
    }

    fn bytes(&self, at: u64, bytes: u64) -> Answer<()> {
        is_there(self.0, at, bytes)
    }

    fn address(&self, at: u64) -> Answer<()> {
        is_there(self.0, at, ADDRESS)?;
        is_there(self.0, address_of(at)?, 16)
    }
}

/// `apr_sockaddr_t` up to the pointer to its address, and where that is.
const ADDRESS: u64 = 56;
const POINTER: u64 = 48;

fn address_of(at: u64) -> Answer<u64> {
    let mut word = [0; 8];
    copied::bytes(at + POINTER, &mut word)?;
    Ok(u64::from_ne_bytes(word))
}

fn is_there(walled: &'static Walled, at: u64, bytes: u64) -> Answer<()> {
    walled.must_read(at, bytes)?;
    match copied::is_there(at, bytes) {
        true => Ok(()),
        false => Err(format!(
            "an argument of the format: there is nothing at {at:#x}"
        )),
    }
}

/// Registers that a variadic function has saved: six integers, and eight numbers of floating point.
const INTEGERS: u32 = 48;
const SAVED: usize = 176;
const FLOATS: usize = 8;
/// Bytes of one of these.
const FLOAT: usize = 16;
/// Words on the stack that are passed on.
const STACKED: usize = 32;

/// A `va_list`, as a copy: the module has its own in its memory, and another thread of it may change that one.
pub(crate) struct List {
    head: Box<[u64; 3]>,
    saved: Box<[u8; SAVED]>,
    stacked: Box<[u64; STACKED]>,
    /// Words on the stack that there are.
    count: usize,
    /// Bytes of the registers that are used up.
    used: u32,
    /// Numbers of floating point that are left in the registers.
    floats: usize,
}

impl List {
    pub(crate) fn of(walled: &'static Walled, at: u64) -> Answer<List> {
        walled.must_read(at, 24)?;
        let mut head = [0; 24];
        copied::bytes(at, &mut head)?;
        let word = |at: usize| u64::from_ne_bytes(head[at..at + 8].try_into().unwrap_or_default());
        let (offsets, overflow, area) = (word(0), word(8), word(16));
        let (used, floats) = (offsets as u32, (offsets >> 32) as u32);
        let floats = floats as usize;
        let is_float =
            (INTEGERS as usize..=SAVED).contains(&floats) && floats.is_multiple_of(FLOAT);
        if !used.is_multiple_of(8) || used > INTEGERS || !is_float {
            return Err(format!("{at:#x} is no list of arguments"));
        }
        let (mut saved, mut stacked) = (Box::new([0; SAVED]), Box::new([0; STACKED]));
        walled.must_read(area, SAVED as u64)?;
        copied::bytes(area, &mut saved[..])?;
        // Nearly always these words are on the module's stack, which it may write. So it is known how many there are, and none behind
        // the stack's end is read, where a fault would tell.
        let most = match walled.writable(overflow, 8 * STACKED as u64) / 8 {
            0 => STACKED,
            most => most as usize,
        };
        let mut count = 0;
        for word in stacked.iter_mut().take(most) {
            let (place, mut bytes) = (overflow.wrapping_add(8 * count as u64), [0; 8]);
            if walled.must_read(place, 8).is_err() || copied::bytes(place, &mut bytes).is_err() {
                break;
            }
            *word = u64::from_ne_bytes(bytes);
            count += 1;
        }
        let head = Box::new([offsets, stacked.as_ptr() as u64, saved.as_ptr() as u64]);
        Ok(List {
            head,
            saved,
            stacked,
            count,
            used,
            floats: (SAVED - floats) / FLOAT,
        })
    }

    /// Where the copy is.
    pub(crate) fn at(&self) -> u64 {
        self.head.as_ptr() as u64
    }
}

impl Words for List {
    fn floats(&self) -> usize {
        self.floats
    }

    fn word(&self, place: usize) -> Option<u64> {
        let left = ((INTEGERS - self.used) / 8) as usize;
        match place.checked_sub(left) {
            None => {
                let at = self.used as usize + 8 * place;
                let bytes = self.saved[at..at + 8].try_into().unwrap_or_default();
                Some(u64::from_ne_bytes(bytes))
            }
            Some(place) => self.stacked[..self.count].get(place).copied(),
        }
    }
}
