//! Types of C, as far as the rules ask for them, and how they are written down.

use std::rc::Rc;

/// The most bytes of a structure where memory is checked.
pub(crate) const LARGEST: usize = 32768;

/// A type without qualifiers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Type {
    /// What was refused, or is not understood of an environment.
    Poison,
    Void,
    Int(Int),
    Float(&'static str),
    /// By the text that names it.
    Enum(Rc<str>),
    Pointer(Rc<Qualified>),
    Array(Rc<Qualified>, Length),
    Function(Rc<Function>),
    /// By its index in the table of records.
    Record(usize),
}

/// An integer type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Int {
    pub(crate) text: &'static str,
    pub(crate) bits: u8,
    pub(crate) signed: bool,
}

pub(crate) const INTS: [Int; 12] = [
    int("_Bool", 8, false),
    int("char", 8, true),
    int("signed char", 8, true),
    int("unsigned char", 8, false),
    int("short", 16, true),
    int("unsigned short", 16, false),
    int("int", 32, true),
    int("unsigned int", 32, false),
    int("long", 64, true),
    int("unsigned long", 64, false),
    int("long long", 64, true),
    int("unsigned long long", 64, false),
];
pub(crate) const INT: Type = Type::Int(INTS[6]);
pub(crate) const UNSIGNED_LONG: Type = Type::Int(INTS[9]);

const fn int(text: &'static str, bits: u8, signed: bool) -> Int {
    Int { text, bits, signed }
}

/// The length of an array.
#[derive(Clone, Debug)]
pub(crate) enum Length {
    /// Nothing is said.
    Unknown,
    /// The initialiser says it.
    Initialised,
    /// As written; the number, if it is known here.
    Given(String, Option<i128>),
}

impl PartialEq for Length {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Length::Given(_, Some(left)), Length::Given(_, Some(right))) => left == right,
            (Length::Given(left, _), Length::Given(right, _)) => left == right,
            _ => true,
        }
    }
}

/// A type with its qualifiers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Qualified {
    pub(crate) ty: Type,
    pub(crate) constant: bool,
    pub(crate) volatile: bool,
    /// Its values can be copied and not looked at.
    pub(crate) locked: bool,
}

/// A function's type.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Function {
    pub(crate) result: Qualified,
    pub(crate) parameters: Vec<Qualified>,
    pub(crate) variadic: bool,
}

/// A structure or union.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    /// `struct tag`, as the source has it; for people and for the type's lists.
    pub(crate) name: String,
    /// What names it in the text that is written.
    pub(crate) text: Option<String>,
    pub(crate) union: bool,
    pub(crate) environment: bool,
    /// `None`: not defined yet.
    pub(crate) members: Option<Vec<Member>>,
}

/// A member of a record.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    /// `None`: a record whose members count as its own.
    pub(crate) name: Option<String>,
    pub(crate) q: Qualified,
    pub(crate) bit_field: bool,
    pub(crate) read_only: bool,
}

impl From<Type> for Qualified {
    fn from(ty: Type) -> Self {
        Qualified {
            ty,
            constant: false,
            volatile: false,
            locked: false,
        }
    }
}

impl Type {
    pub(crate) fn pointer_to(q: Qualified) -> Type {
        Type::Pointer(Rc::new(q))
    }

    /// Integers, enumerations among them.
    pub(crate) fn is_integer(&self) -> bool {
        matches!(self, Type::Int(_) | Type::Enum(_) | Type::Poison)
    }

    pub(crate) fn is_arithmetic(&self) -> bool {
        self.is_integer() || matches!(self, Type::Float(_))
    }

    pub(crate) fn is_pointer(&self) -> bool {
        matches!(self, Type::Pointer(_))
    }

    /// Whether nothing in it is poisoned.
    pub(crate) fn is_understood(&self) -> bool {
        match self {
            Type::Poison => false,
            Type::Void | Type::Int(_) | Type::Float(_) | Type::Enum(_) | Type::Record(_) => true,
            Type::Pointer(of) | Type::Array(of, _) => of.ty.is_understood(),
            Type::Function(function) => {
                let mut all = std::iter::once(&function.result).chain(&function.parameters);
                all.all(|q| q.ty.is_understood())
            }
        }
    }

    pub(crate) fn is_scalar(&self) -> bool {
        self.is_arithmetic() || self.is_pointer()
    }

    /// What it is in an expression: `char` is `int` there.
    pub(crate) fn promoted(&self) -> Type {
        match self {
            Type::Int(int) if int.bits < 32 => INT,
            Type::Enum(_) => Type::Int(INTS[7]),
            other => other.clone(),
        }
    }

    /// What an operator makes of two numbers.
    pub(crate) fn with(&self, other: &Type) -> Type {
        match (self.promoted(), other.promoted()) {
            (Type::Poison, _) | (_, Type::Poison) => Type::Poison,
            (Type::Float(left), Type::Float(right)) => {
                let order = ["float", "double", "long double"];
                let rank = |name| order.iter().position(|known| *known == name);
                Type::Float(if rank(left) >= rank(right) {
                    left
                } else {
                    right
                })
            }
            (Type::Float(name), _) | (_, Type::Float(name)) => Type::Float(name),
            (Type::Int(left), Type::Int(right)) => Type::Int(match left.bits.cmp(&right.bits) {
                std::cmp::Ordering::Greater => left,
                std::cmp::Ordering::Less => right,
                std::cmp::Ordering::Equal if left.signed => right,
                std::cmp::Ordering::Equal => left,
            }),
            _ => Type::Poison,
        }
    }
}

/// Writes a declaration of `name` with that type; `None` if the type has no name that can be written.
pub(crate) fn written(records: &[Record], q: &Qualified, name: &str) -> Option<String> {
    let mut marks = String::new();
    for (is, mark) in [(q.constant, "const "), (q.volatile, "volatile ")] {
        if is {
            marks.push_str(mark);
        }
    }
    let base = |text: &str| Some(format!("{marks}{text} {name}"));
    match &q.ty {
        Type::Poison => None,
        Type::Void => base("void"),
        Type::Int(int) => base(int.text),
        Type::Float(text) => base(text),
        Type::Enum(text) => base(text),
        Type::Record(index) => base(records.get(*index)?.text.as_deref()?),
        Type::Pointer(to) => {
            let inner = format!("*{marks}{name}");
            match to.ty {
                Type::Array(..) | Type::Function(_) => written(records, to, &format!("({inner})")),
                _ => written(records, to, &inner),
            }
        }
        Type::Array(of, length) => {
            let length = match length {
                Length::Given(text, _) => text,
                Length::Unknown | Length::Initialised => "",
            };
            written(records, of, &format!("{name}[{length}]"))
        }
        Type::Function(function) => {
            let mut parameters = Vec::new();
            for parameter in &function.parameters {
                parameters.push(written(records, parameter, "")?);
            }
            if function.variadic {
                parameters.push("...".to_owned());
            } else if parameters.is_empty() {
                parameters.push("void".to_owned());
            }
            written(
                records,
                &function.result,
                &format!("{name}({})", parameters.join(", ")),
            )
        }
    }
}
