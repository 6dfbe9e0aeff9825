//! The types of functions, as debug information states them.
//!
//! They are a help against mistakes, and no evidence: the image's author wrote them.

use crate::Plain;
use std::fmt;

/// What a function takes and returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebugSignature {
    /// What it returns; `None`: nothing.
    pub result: Option<DebugType>,
    /// What it takes; `None`: anything, as a declaration without a prototype or with an
    /// ellipsis says.
    pub parameters: Option<Vec<DebugType>>,
}

impl fmt::Display for DebugSignature {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let result = self.result.as_ref().map_or("void", |of| &of.name);
        let parameters = match &self.parameters {
            None => "...".to_owned(),
            Some(list) if list.is_empty() => "void".to_owned(),
            Some(list) => {
                let names: Vec<_> = list.iter().map(|of| of.name.as_str()).collect();
                names.join(", ")
            }
        };
        write!(formatter, "{result} ({parameters})")
    }
}

/// A type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebugType {
    /// How it is passed.
    pub class: Class,
    /// As the source has it, roughly.
    pub name: Plain,
}

/// How a value is passed, and how many bytes it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// An integer, character, truth value, enumeration or pointer.
    Integer(u64),
    /// A floating-point number.
    Real(u64),
    /// Something else: a structure, a complex number, a vector.
    Other,
}

impl fmt::Display for Class {
    /// As C names a type of that kind.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(bytes) => write!(formatter, "int{}_t", 8 * u128::from(*bytes)),
            Self::Real(4) => formatter.write_str("float"),
            Self::Real(8) => formatter.write_str("double"),
            Self::Real(bytes) => write!(formatter, "a number of {bytes} bytes"),
            Self::Other => formatter.write_str("something else"),
        }
    }
}

/// Why nothing is known of a function's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unknown {
    /// There is no debug information about code at that place.
    #[error("unknown: the image has no debug information of it (compile with -g)")]
    NoInformation,
    /// There is only as much as lines need.
    #[error("unknown: the debug information has lines, but no types (compile with -g, not -g1)")]
    NoTypes,
    /// The linker was given a part of it.
    #[error(
        "unknown: the debug information is in a file of its own (compile without -gsplit-dwarf)"
    )]
    Split,
    /// It is damaged, of a kind that is not read, or takes more work than its size explains.
    #[error("unknown: the debug information of it cannot be read")]
    Unreadable,
    /// The host reads none, or was compiled without.
    #[error("unknown: this host reads no debug information")]
    NotRead,
}
