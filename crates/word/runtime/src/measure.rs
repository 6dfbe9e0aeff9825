//! The memory that an argument stands for, by what a call passes and by what lies in memory.
//!
//! What lies in memory is read once. Another thread of the module may change it behind that, or take the memory away:
//!
//! - A size that is a field is read from a copy that the host's function gets, or from where the module may not write. Where the
//!   host calls a module, that module may not write it either.
//! - Of vectors and lists the host's function gets a copy, and each entry is looked at there.
//! - Of a text the host's function gets a copy, which ends where the gate has found its end.
//! - A gate that finds no memory says so, and the call is refused ([`fetch`]).

use crate::core::Core;
use crate::gates::{Registers, Seat, fetch};
use crate::holder::Holder;
use crate::size::{Bits, Number, Size, Sum};
use mullion_word_table::Access;

/// Pieces that an array of vectors may describe, and pointers of lists.
const MOST_VECTORS: u64 = 1024;
const MOST_POINTERS: u64 = 1 << 16;
/// Bytes of an argument that are copied for the host, at most.
const MOST_COPIED: u64 = 1 << 20;
/// Words of a text that are looked up at a time.
const TEXT: usize = 8;
const PAGE: u64 = crate::memory::PAGE;

/// Why a size has no pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// A right that the module does not have itself.
    Lacks(Lacks),
    /// It overflows, or is below 0, or is more than anybody passes.
    NoSize,
    /// There is a right, and no memory.
    NoMemory(u64),
    /// It is where the module may write while the host's function reads it.
    Changes,
    /// It is where the module may write that would be granted so much.
    Chosen,
}

impl Wrong {
    /// What is wrong with this argument.
    pub(crate) fn of(self, argument: u8) -> String {
        match self {
            Wrong::NoSize => format!("argument {argument} has no size"),
            Wrong::NoMemory(address) => {
                format!("there is no memory at {address:#x}, for argument {argument}")
            }
            Wrong::Changes => format!(
                "argument {argument} has its size where the module may write, and the host would read it again: \
                 `copyin` and `copyinout` are for that"
            ),
            Wrong::Chosen => format!(
                "argument {argument} has its size where the module may write: the module would say how much it is granted"
            ),
            Wrong::Lacks(Lacks { address, right, .. }) => {
                format!("argument {argument} is at {address:#x}, without {right:?}")
            }
        }
    }
}

/// A right that a module does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lacks {
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    pub(crate) right: Access,
}

/// What the host's function gets in the place of what an argument points to. It lasts as long as the call.
pub(crate) struct Copy {
    pub(crate) argument: u8,
    bytes: u64,
    words: Vec<u64>,
    /// The text, where there are no words; otherwise those that words point to.
    texts: Vec<Vec<u8>>,
    /// Where the module has it.
    from: u64,
    /// Whether it goes back there when the call is over.
    is_back: bool,
}

impl Copy {
    fn new(argument: u8, from: u64, bytes: u64) -> Copy {
        Copy {
            argument,
            bytes,
            words: vec![0; bytes.div_ceil(8) as usize],
            texts: Vec::new(),
            from,
            is_back: false,
        }
    }

    /// Where the host finds it.
    pub(crate) fn address(&self) -> u64 {
        match self.texts.first() {
            Some(text) if self.words.is_empty() => text.as_ptr() as u64,
            _ => self.words.as_ptr() as u64,
        }
    }

    /// Where the module has what a pointer into the copied text points to, its end included.
    fn original(&self, pointer: u64) -> Option<u64> {
        let text = self.texts.first().filter(|_| self.words.is_empty())?;
        let distance = pointer.wrapping_sub(text.as_ptr() as u64);
        (distance < text.len() as u64).then(|| self.from.wrapping_add(distance))
    }

    fn field(&self, offset: u32, bits: Bits) -> Result<u64, Wrong> {
        let end = u64::from(offset) + bits.bytes();
        if end > self.bytes {
            return Err(Wrong::NoSize);
        }
        let bytes = (u64::from(offset)..end).rev();
        let byte = |at: u64| self.words[at as usize / 8] >> (8 * (at % 8)) & 0xff;
        Ok(bytes.fold(0, |word, at| word << 8 | byte(at)))
    }
}

/// Reads arguments of a call for the one who makes it: a module reads what it may itself, and the host is believed.
pub(crate) struct Arguments<'a> {
    pub(crate) registers: &'a Registers,
    pub(crate) caller: Option<&'a Holder>,
    /// Of a call of the host: the module that calls, and what the host gets a copy of.
    pub(crate) host: Option<(&'static Core, &'a [Box<Copy>])>,
    /// Of a call by the host: the module, the thread's seat in it, and whether it is the thread's only call there.
    pub(crate) callee: Option<(&'static Core, *mut Seat, bool)>,
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

    /// Copies what the caller may read. There is room for it.
    fn read_into(&self, to: &mut [u64], address: u64, bytes: u64) -> Result<(), Wrong> {
        self.check(address, bytes, Access::READ)?;
        assert!(bytes <= 8 * to.len() as u64, "there is room");
        // SAFETY: there is room. The module may read what is there, or the host passes it to a function whose policy reads it;
        // whether there is memory, it finds out.
        let done = unsafe { fetch(to.as_mut_ptr().cast(), address as *const u8, bytes) };
        match done == bytes {
            true => Ok(()),
            false => Err(Wrong::NoMemory(address.wrapping_add(done))),
        }
    }

    fn read(&self, address: u64, bits: Bits) -> Result<u64, Wrong> {
        let mut word = [0];
        self.read_into(&mut word, address, bits.bytes())?;
        Ok(word[0])
    }

    fn copy(&self, argument: u8, address: u64, bytes: u64) -> Result<Copy, Wrong> {
        if bytes > MOST_COPIED {
            return Err(Wrong::NoSize);
        }
        let mut copy = Copy::new(argument, address, bytes);
        self.read_into(&mut copy.words, address, bytes)?;
        Ok(copy)
    }

    fn number(&self, number: Number) -> Result<i128, Wrong> {
        let argument = self.registers.argument(number.argument);
        let word = match number.field {
            None => argument,
            Some(_) if argument == 0 => return Err(Wrong::NoSize),
            Some(offset) => self.field(number, offset)?,
        };
        Ok(number.bits.value(word))
    }

    fn field(&self, number: Number, offset: u32) -> Result<u64, Wrong> {
        let argument = self.registers.argument(number.argument);
        let (at, bytes) = (argument.wrapping_add(offset.into()), number.bits.bytes());
        if let Some((core, copies)) = self.host {
            let mut copies = copies.iter();
            if let Some(copy) = copies.find(|copy| copy.argument == number.argument) {
                return copy.field(offset, number.bits);
            }
            self.check(at, bytes, Access::READ)?;
            // A domain that learns is not confined.
            if core.learning.is_none() && may_write(core, at, bytes) {
                return Err(Wrong::Changes);
            }
        }
        if let Some((core, seat, outermost)) = self.callee.filter(|_| self.caller.is_none()) {
            if outermost {
                // SAFETY: the seat is the thread's own, and counted.
                unsafe { core.keep.give_up(core, seat) };
            }
            if core.learning.is_none() && may_write(core, at, bytes) {
                return Err(Wrong::Chosen);
            }
        }
        self.read(at, number.bits)
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
    /// read. A piece is told behind those that lead to it, and has at least a byte. What leads to pieces is the answer, as it was
    /// read: the host's function gets that.
    #[inline]
    pub(crate) fn pieces<E: From<Wrong>>(
        &self,
        at: u8,
        size: &Size,
        each: &mut dyn FnMut(u64, u64, bool) -> Result<(), E>,
    ) -> Result<Option<Box<Copy>>, E> {
        let address = self.registers.argument(at);
        if address == 0 {
            return Ok(None);
        }
        // The usual sizes alone are looked at without a call.
        let bytes = match *size {
            Size::Bytes(bytes) => bytes,
            Size::Argument(of) => self.registers.argument(of),
            _ => return self.pieces_of(at, size, each),
        };
        if bytes != 0 {
            each(address, bytes, true)?;
        }
        Ok(None)
    }

    #[inline(never)]
    fn pieces_of<E: From<Wrong>>(
        &self,
        at: u8,
        size: &Size,
        each: &mut dyn FnMut(u64, u64, bool) -> Result<(), E>,
    ) -> Result<Option<Box<Copy>>, E> {
        let address = self.registers.argument(at);
        match size {
            Size::Text => each(address, self.text(address, None)?, true)?,
            Size::List | Size::Texts => {
                let mut copy = self.list(at, address)?;
                each(address, copy.bytes, true)?;
                if *size == Size::Texts {
                    self.texts(&mut copy, each)?;
                }
                return Ok(Some(Box::new(copy)));
            }
            Size::Vectors(sum) => {
                let count = self.sum(sum)?;
                if count > MOST_VECTORS {
                    return Err(Wrong::NoSize.into());
                }
                if count == 0 {
                    return Ok(None);
                }
                each(address, 16 * count, false)?;
                let copy = self.copy(at, address, 16 * count)?;
                for vector in copy.words.chunks_exact(2).filter(|vector| vector[1] != 0) {
                    each(vector[0], vector[1], true)?;
                }
                return Ok(Some(Box::new(copy)));
            }
            plain => match self.bytes(plain)? {
                0 => {}
                bytes => each(address, bytes, true)?,
            },
        }
        Ok(None)
    }

    /// As [`pieces`](Self::pieces), of what the host's function gets a copy of. With `back` it is written back.
    #[inline(never)]
    pub(crate) fn copied<E: From<Wrong>>(
        &self,
        at: u8,
        (size, back): (&Size, bool),
        each: &mut dyn FnMut(u64, u64, bool) -> Result<(), E>,
    ) -> Result<Option<Box<Copy>>, E> {
        let address = self.registers.argument(at);
        if self.host.is_none() || address == 0 {
            return self.pieces(at, size, each);
        }
        if *size == Size::Text {
            let (mut copy, mut text) = (Copy::new(at, address, 0), Vec::new());
            each(address, self.text(address, Some(&mut text))?, true)?;
            copy.texts.push(text);
            return Ok(Some(Box::new(copy)));
        }
        let bytes = self.bytes(size)?;
        if bytes == 0 {
            return Ok(None);
        }
        each(address, bytes, true)?;
        let mut copy = self.copy(at, address, bytes)?;
        copy.is_back = back;
        Ok(Some(Box::new(copy)))
    }

    /// Behind the call: the module gets what the host has written.
    pub(crate) fn write_back(&self, copy: &Copy) -> Result<(), Wrong> {
        if !copy.is_back {
            return Ok(());
        }
        let to = copy.from;
        self.check(to, copy.bytes, Access::READ_WRITE)?;
        // SAFETY: the module may write there, and the call has it lent until now; whether there is memory, it finds out.
        let done = unsafe { fetch(to as *mut u8, copy.words.as_ptr().cast(), copy.bytes) };
        match done == copy.bytes {
            true => Ok(()),
            false => Err(Wrong::NoMemory(to.wrapping_add(done))),
        }
    }

    /// Behind the call: words that the host has written there, and that point into the copy of a text, point into the text.
    pub(crate) fn lead_back(&self, at: u64, bytes: u64, copy: &Copy) -> Result<(), Wrong> {
        for place in (0..bytes / 8).map(|word| at.wrapping_add(8 * word)) {
            let pointer = self.read(place, Bits::U64)?;
            let Some(original) = copy.original(pointer) else {
                continue;
            };
            self.check(place, 8, Access::READ_WRITE)?;
            // SAFETY: the module may write there, and the call has it lent until now; whether there is memory, it finds out.
            let done = unsafe { fetch(place as *mut u8, original.to_ne_bytes().as_ptr(), 8) };
            if done != 8 {
                return Err(Wrong::NoMemory(place.wrapping_add(done)));
            }
        }
        Ok(())
    }

    /// Bytes of a text, its zero included. All of it is added to `kept`.
    fn text(&self, start: u64, mut kept: Option<&mut Vec<u8>>) -> Result<u64, Wrong> {
        let mut at = start;
        loop {
            let room = self.readable(at)?;
            let mut words = [u64::MAX; TEXT];
            // SAFETY: there is room; as in `read_into`.
            let done = unsafe { fetch(words.as_mut_ptr().cast(), at as *const u8, room) };
            let found = words.iter().enumerate().find_map(|(place, word)| {
                let zero = zero(*word)?;
                Some(8 * place as u64 + zero)
            });
            let used = found.map_or(done, |zero| zero + 1);
            if let Some(kept) = &mut kept {
                let mut bytes = [0; 8 * TEXT];
                for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
                    place.copy_from_slice(&word.to_ne_bytes());
                }
                kept.extend_from_slice(&bytes[..used as usize]);
                if kept.len() as u64 > MOST_COPIED {
                    return Err(Wrong::NoSize);
                }
            }
            at += used;
            match found {
                Some(_) => return Ok(at - start),
                None if done < room => return Err(Wrong::NoMemory(at)),
                None => {}
            }
        }
    }

    /// How many bytes from `at` on the caller may read, at least one; few are looked at, because most texts are short.
    fn readable(&self, at: u64) -> Result<u64, Wrong> {
        let right = Access::READ;
        // The host is believed, but not that there is memory behind its text.
        let most = (8 * TEXT as u64).min(PAGE - at % PAGE).min(u64::MAX - at);
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
    fn list(&self, argument: u8, start: u64) -> Result<Copy, Wrong> {
        let mut copy = Copy::new(argument, start, 0);
        for count in 0..MOST_POINTERS {
            let at = start.checked_add(8 * count).ok_or(Wrong::NoSize)?;
            let pointer = self.read(at, Bits::U64)?;
            copy.words.push(pointer);
            copy.bytes += 8;
            if pointer == 0 {
                return Ok(copy);
            }
        }
        Err(Wrong::NoSize)
    }

    /// The texts of a list, each a copy where the host gets one.
    fn texts<E: From<Wrong>>(
        &self,
        copy: &mut Copy,
        each: &mut dyn FnMut(u64, u64, bool) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut room = MOST_COPIED;
        for word in copy.words.iter_mut().filter(|word| **word != 0) {
            let mut text = Vec::new();
            let kept = self.host.is_some().then_some(&mut text);
            let bytes = self.text(*word, kept)?;
            each(*word, bytes, true)?;
            if !text.is_empty() {
                room = room.checked_sub(bytes).ok_or(Wrong::NoSize)?;
                *word = text.as_ptr() as u64;
                copy.texts.push(text);
            }
        }
        Ok(())
    }
}

/// Whether the module may write some of these bytes, or one of its instances may.
fn may_write(core: &'static Core, address: u64, bytes: u64) -> bool {
    // A host may pass what is no address.
    let last = address.saturating_add(bytes - 1);
    let words = || (address / 4..=last / 4).map(|word| 4 * word);
    core.holders()
        .any(|holder| words().any(|word| holder.view.allows(word, 1, Access::WRITE)))
}

/// The place of the first of the eight bytes that is zero: only from there does a borrow set the highest bit of a byte that had
/// none.
fn zero(eight: u64) -> Option<u64> {
    let ones = u64::MAX / 0xff;
    match eight.wrapping_sub(ones) & !eight & (ones << 7) {
        0 => None,
        marks => Some(u64::from(marks.trailing_zeros() / 8)),
    }
}
