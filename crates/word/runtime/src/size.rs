//! How much memory an argument stands for.

use crate::gates::Registers;
use crate::holder::Holder;
use mullion_word_table::Access;

/// The width of an integer that is passed, and whether it has a sign. What a register holds beyond it is not looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are Rust's types of the same names")]
pub enum Bits {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    #[default]
    U64,
    I64,
}

/// An integer that a call passes: an argument, or a field of the structure that an argument points to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Number {
    /// Which argument.
    pub argument: u8,
    /// Of a field: so many bytes behind where the argument points.
    pub field: Option<u32>,
    /// How the integer is read.
    pub bits: Bits,
}

/// A product of a constant and at most two numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Term {
    /// The constant.
    pub times: i64,
    /// The numbers.
    pub factors: [Option<Number>; 2],
}

/// A sum of products. It has no value if it is below 0 or 2^64 and above.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum(pub [Option<Term>; 3]);

/// How many bytes an argument points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// So many.
    Bytes(u64),
    /// As many as this argument says, all 64 bits of it. Arguments count from 0.
    Argument(u8),
    /// As many as two arguments' product.
    Product(u8, u8),
    /// As many as the sum says.
    Sum(Sum),
    /// Up to the first zero, that included. Only for [`Effect::In`](crate::Effect::In).
    Text,
    /// Pointers up to the first null pointer, that included. Only for [`Effect::In`](crate::Effect::In).
    List,
    /// The same, and each pointer is to a text. Only for [`Effect::In`](crate::Effect::In).
    Texts,
    /// So many of `struct iovec`, which are read, and what each of them describes. Only for
    /// [`Effect::In`](crate::Effect::In), [`Out`](crate::Effect::Out) and [`InOut`](crate::Effect::InOut).
    Vectors(Sum),
}

/// Pieces that an array of vectors may describe, and bytes and pieces of lists.
const MOST_VECTORS: u64 = 1024;
const MOST_POINTERS: u64 = 1 << 16;

impl Bits {
    /// How many bytes.
    #[must_use]
    pub fn bytes(self) -> u64 {
        match self {
            Bits::U8 | Bits::I8 => 1,
            Bits::U16 | Bits::I16 => 2,
            Bits::U32 | Bits::I32 => 4,
            Bits::U64 | Bits::I64 => 8,
        }
    }

    /// The bits that count.
    pub(crate) fn mask(self) -> u64 {
        u64::MAX >> (64 - 8 * self.bytes())
    }

    fn value(self, word: u64) -> i128 {
        match self {
            Bits::U8 => (word as u8).into(),
            Bits::I8 => (word as i8).into(),
            Bits::U16 => (word as u16).into(),
            Bits::I16 => (word as i16).into(),
            Bits::U32 => (word as u32).into(),
            Bits::I32 => (word as i32).into(),
            Bits::U64 => word.into(),
            Bits::I64 => (word as i64).into(),
        }
    }
}

impl Number {
    /// This argument as an integer of this width.
    #[must_use]
    pub fn of(argument: u8, bits: Bits) -> Number {
        Number {
            argument,
            field: None,
            bits,
        }
    }

    /// The field of this width, so far behind where this argument points.
    #[must_use]
    pub fn field(argument: u8, offset: u32, bits: Bits) -> Number {
        Number {
            argument,
            field: Some(offset),
            bits,
        }
    }
}

impl From<Number> for Sum {
    fn from(number: Number) -> Sum {
        let factors = [Some(number), None];
        Sum([Some(Term { times: 1, factors }), None, None])
    }
}

impl Sum {
    /// Every number in it.
    pub fn numbers(&self) -> impl Iterator<Item = Number> {
        let terms = self.0.into_iter().flatten();
        terms.flat_map(|term| term.factors).flatten()
    }
}

impl Size {
    /// Every number in it.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = Number> {
        let whole = |argument| Some(Number::of(argument, Bits::U64));
        let (plain, sum) = match *self {
            Size::Argument(a) => ([whole(a), None], Sum::default()),
            Size::Product(a, b) => ([whole(a), whole(b)], Sum::default()),
            Size::Sum(sum) | Size::Vectors(sum) => ([None; 2], sum),
            Size::Bytes(_) | Size::Text | Size::List | Size::Texts => ([None; 2], Sum::default()),
        };
        let of_sum: Vec<Number> = sum.numbers().collect();
        plain.into_iter().flatten().chain(of_sum)
    }

    /// Whether registers alone say it.
    pub(crate) fn is_in_registers(&self) -> bool {
        let plain = matches!(
            self,
            Size::Bytes(_) | Size::Argument(_) | Size::Product(..) | Size::Sum(_)
        );
        plain && self.numbers().all(|number| number.field.is_none())
    }
}

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
    pub(crate) fn bytes(&self, size: Size) -> Result<u64, Wrong> {
        let argument = |at| self.registers.argument(at);
        match size {
            Size::Bytes(bytes) => Ok(bytes),
            Size::Argument(at) => Ok(argument(at)),
            Size::Product(a, b) => argument(a).checked_mul(argument(b)).ok_or(Wrong::NoSize),
            Size::Sum(sum) => self.sum(&sum),
            Size::Text | Size::List | Size::Texts | Size::Vectors(_) => Err(Wrong::NoSize),
        }
    }

    /// The pieces that an argument stands for. `is_main`: what is done with a piece is what the effect says; otherwise it is
    /// read. A piece is told behind those that lead to it, and has at least a byte.
    pub(crate) fn pieces<E: From<Wrong>>(
        &self,
        at: u8,
        size: Size,
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
                for place in (0..count - 1).filter(|_| size == Size::Texts) {
                    let text = self.read(address.wrapping_add(8 * place), Bits::U64)?;
                    // Another thread may have written there meanwhile.
                    if text != 0 {
                        each(text, self.text(text)?, true)?;
                    }
                }
                Ok(())
            }
            Size::Vectors(sum) => {
                let count = self.sum(&sum)?;
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
        while self.read(at, Bits::U8)? != 0 {
            at = at.checked_add(1).ok_or(Wrong::NoSize)?;
        }
        Ok(at - start + 1)
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
