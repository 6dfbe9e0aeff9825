//! How much memory an argument stands for.

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

    pub(crate) fn value(self, word: u64) -> i128 {
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
        let terms = self.0.iter().flatten();
        terms.flat_map(|term| term.factors).flatten()
    }
}

impl Size {
    /// Every number in it.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = Number> {
        const NONE: Sum = Sum([None; 3]);
        let whole = |argument| Some(Number::of(argument, Bits::U64));
        let (plain, sum) = match self {
            Size::Argument(a) => ([whole(*a), None], &NONE),
            Size::Product(a, b) => ([whole(*a), whole(*b)], &NONE),
            Size::Sum(sum) | Size::Vectors(sum) => ([None; 2], sum),
            Size::Bytes(_) | Size::Text | Size::List | Size::Texts => ([None; 2], &NONE),
        };
        plain.into_iter().flatten().chain(sum.numbers())
    }

    /// Whether it is what lies there that says it, or leads to pieces.
    pub(crate) fn says_itself(&self) -> bool {
        matches!(
            self,
            Size::Text | Size::List | Size::Texts | Size::Vectors(_)
        )
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
