//! What a header says, as far as stubs are concerned.

/// What host and extension are to each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderInterface {
    /// Structures that functions speak of, in the order of the header.
    pub structs: Vec<Struct>,
    /// The marked functions, in the order of the header.
    pub functions: Vec<BoundFunction>,
}

/// A structure of plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Struct {
    /// Its tag.
    pub name: String,
    /// Its members.
    pub fields: Vec<Field>,
}

/// A member of a structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its type, or that of its elements.
    pub kind: HeaderType,
    /// How many elements, if it is an array.
    pub length: Option<u64>,
}

/// A function that one side has and the other calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundFunction {
    /// Its name.
    pub name: String,
    /// Whether it is the host's.
    pub is_hosts: bool,
    /// What it returns.
    pub result: HeaderType,
    /// What it takes.
    pub parameters: Vec<Parameter>,
}

/// A parameter of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: HeaderType,
    /// What its mark says, if it has one.
    pub direction: Option<Direction>,
}

/// What is copied for a pointer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Elements to the callee.
    In(Count),
    /// Elements from the callee.
    Out(Count),
    /// Elements both ways.
    InOut(Count),
    /// A string to the callee.
    Text,
}

/// How many elements a pointer points to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Count {
    /// So many.
    Number(u64),
    /// As another parameter says.
    Parameter(String),
}

/// A type that crosses the wall.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeaderType {
    /// Nothing, as a result; of a pointer, anything.
    Void,
    /// An integer of so many bytes.
    Integer {
        /// 1, 2, 4 or 8.
        bytes: u8,
        /// Whether it has a sign.
        signed: bool,
    },
    /// `_Bool`.
    Bool,
    /// `float`.
    Float,
    /// `double`.
    Double,
    /// A structure, by its tag.
    Struct(String),
    /// A pointer.
    Pointer(Box<HeaderType>),
}

impl Direction {
    /// How many elements, if it is not a string.
    #[must_use]
    pub fn count(&self) -> Option<&Count> {
        match self {
            Self::In(count) | Self::Out(count) | Self::InOut(count) => Some(count),
            Self::Text => None,
        }
    }
}

impl BoundFunction {
    /// The marked parameters whose length this parameter is.
    pub fn arrays_counted_by<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Parameter> {
        self.parameters.iter().filter(move |parameter| {
            let count = parameter.direction.as_ref().and_then(Direction::count);
            count == Some(&Count::Parameter(name.to_owned()))
        })
    }
}
