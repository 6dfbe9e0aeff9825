//! The memory that an argument stands for, by what a call passes and by what lies in memory.

use crate::gates::Registers;
use crate::holder::Holder;
use crate::size::{Bits, Number, Size, Sum};
use mullion_word_table::Access;

/// Pieces that an array of vectors may describe, and bytes and pieces of lists.
const MOST_VECTORS: u64 = 1024;
const MOST_POINTERS: u64 = 1 << 16;
/// Bytes of a text that are looked up at a time.
const TEXT: u64 = 64;

/// Why a size has no pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// A right that the module does not have itself.
    Lacks(Lacks),
    /// It overflows, or is below 0, or is more than anybody passes.
    NoSize,
}

/// A right that a module does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lacks {
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    pub(crate) right: Access,
}

/// Reads arguments of a call for the one who makes it: a module reads what it may itself, and the host is believed.
pub(crate) struct Arguments<'a> {
    pub(crate) registers: &'a Registers,
    pub(crate) caller: Option<&'a Holder>,
}

impl Arguments<'_> {
    /// The caller has this right itself.
    pub(crate) fn check(&self, address: u64, bytes: u64, right: Access) -> Result<(), Wrong> {
        match self.caller {
            Some(holder) if !holder.view.allows(address, bytes, right) => {
                Err(Wrong::Lacks(Lacks {
                    address,
                    bytes,
                    right,
                }))
            }
            _ => Ok(()),
        }
    }

    fn read(&self, address: u64, bits: Bits) -> Result<u64, Wrong> {
        self.check(address, bits.bytes(), Access::READ)?;
        let mut word = [0; 8];
        for (at, byte) in word.iter_mut().take(bits.bytes() as usize).enumerate() {
            // SAFETY: the module may read it, so there is memory, and whoever granted it keeps it there; or the host passes
            // it to a function whose policy reads it.
            *byte = unsafe { (address.wrapping_add(at as u64) as *const u8).read_volatile() };
        }
        Ok(u64::from_le_bytes(word))
    }

    fn number(&self, number: Number) -> Result<i128, Wrong> {
        let argument = self.registers.argument(number.argument);
        let word = match number.field {
            None => argument,
            Some(_) if argument == 0 => return Err(Wrong::NoSize),
            Some(offset) => self.read(argument.wrapping_add(offset.into()), number.bits)?,
        };
        Ok(number.bits.value(word))
    }

    fn sum(&self, sum: &Sum) -> Result<u64, Wrong> {
        let mut total = 0i128;
        for term in sum.0.iter().flatten() {
            let mut product = i128::from(term.times);
            for factor in term.factors.into_iter().flatten() {
                let value = self.number(factor)?;
                product = product.checked_mul(value).ok_or(Wrong::NoSize)?;
            }
            total = total.checked_add(product).ok_or(Wrong::NoSize)?;
        }
        u64::try_from(total).map_err(|_| Wrong::NoSize)
    }

    /// The size, if it is one number of bytes.
    pub(crate) fn bytes(&self, size: &Size) -> Result<u64, Wrong> {
        let argument = |at| self.registers.argument(at);
        match *size {
            Size::Bytes(bytes) => Ok(bytes),
            Size::Argument(at) => Ok(argument(at)),
            Size::Product(a, b) => argument(a).checked_mul(argument(b)).ok_or(Wrong::NoSize),
            Size::Sum(ref sum) => self.sum(sum),
            Size::Text | Size::List | Size::Texts | Size::Vectors(_) => Err(Wrong::NoSize),
        }
    }

    /// The pieces that an argument stands for. `is_main`: what is done with a piece is what the effect says; otherwise it is
    /// read. A piece is told behind those that lead to it, and has at least a byte.
    pub(crate) fn pieces<E: From<Wrong>>(
        &self,
        at: u8,
        size: &Size,
        each: &mut dyn FnMut(u64, u64, bool) -> Result<(), E>,
    ) -> Result<(), E> {
        let address = self.registers.argument(at);
        if address == 0 {
            return Ok(());
        }
        match size {
            Size::Text => each(address, self.text(address)?, true),
            Size::List | Size::Texts => {
                let count = self.list(address)?;
                each(address, 8 * count, true)?;
                for place in (0..count - 1).filter(|_| *size == Size::Texts) {
                    let text = self.read(address.wrapping_add(8 * place), Bits::U64)?;
                    // Another thread may have written there meanwhile.
                    if text != 0 {
                        each(text, self.text(text)?, true)?;
                    }
                }
                Ok(())
            }
            Size::Vectors(sum) => {
                let count = self.sum(sum)?;
                if count > MOST_VECTORS {
                    return Err(Wrong::NoSize.into());
                }
                if count != 0 {
                    each(address, 16 * count, false)?;
                }
                for place in (0..count).map(|place| address.wrapping_add(16 * place)) {
                    let base = self.read(place, Bits::U64)?;
                    let bytes = self.read(place.wrapping_add(8), Bits::U64)?;
                    if bytes != 0 {
                        each(base, bytes, true)?;
                    }
                }
                Ok(())
            }
            plain => match self.bytes(plain)? {
                0 => Ok(()),
                bytes => each(address, bytes, true),
            },
        }
    }

    /// Bytes of a text, its zero included.
    fn text(&self, start: u64) -> Result<u64, Wrong> {
        let mut at = start;
        loop {
            let room = self.readable(at)?;
            let end = at + room;
            while at < end {
                // The host is believed, but not that there is memory behind its text.
                let is_eight = self.caller.is_some() && at.is_multiple_of(8) && end - at >= 8;
                // SAFETY: as in `read`: all of these bytes may be read. They are aligned.
                if is_eight && !has_zero(unsafe { (at as *const u64).read_volatile() }) {
                    at += 8;
                    continue;
                }
                // SAFETY: as in `read`: the byte may be read.
                if unsafe { (at as *const u8).read_volatile() } == 0 {
                    return Ok(at - start + 1);
                }
                at += 1;
            }
        }
    }

    /// How many bytes from `at` on the caller may read, at least one; few are looked at, because most texts are short.
    fn readable(&self, at: u64) -> Result<u64, Wrong> {
        let right = Access::READ;
        let most = TEXT.min(u64::MAX - at);
        let room = match self.caller {
            Some(holder) => holder.view.allowed(at, most, right),
            None => most,
        };
        let lacks = Lacks {
            address: at,
            bytes: 1,
            right,
        };
        match room {
            0 => Err(Wrong::Lacks(lacks)),
            room => Ok(room),
        }
    }

    /// Pointers of a list, the null pointer included.
    fn list(&self, start: u64) -> Result<u64, Wrong> {
        for count in 0..MOST_POINTERS {
            let at = start.checked_add(8 * count).ok_or(Wrong::NoSize)?;
            if self.read(at, Bits::U64)? == 0 {
                return Ok(count + 1);
            }
        }
        Err(Wrong::NoSize)
    }
}

/// Whether one of the eight bytes is zero: only from there does a borrow set the highest bit of a byte that had none.
fn has_zero(eight: u64) -> bool {
    let ones = u64::MAX / 0xff;
    eight.wrapping_sub(ones) & !eight & (ones << 7) != 0
}
