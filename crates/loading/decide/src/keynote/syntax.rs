//! The syntax tree of an assertion (RFC 2704, appendix B).
//!
//! Chains of operators of one precedence are lists, not nested pairs. So the
//! depth of a tree is that of its parentheses, however long the text is.

use super::posix::Pattern;
use super::principal::Principal;
use super::work::{Cost, Exhausted, Work};
use std::collections::BTreeMap;
use std::fmt;

/// One assertion, parsed; nothing about it has been verified.
pub struct Assertion {
    pub(super) source: Box<[u8]>,
    /// Length of the part of `source` that the signature covers, if there is one.
    pub(super) signed_length: usize,
    pub(super) constants: BTreeMap<String, Vec<u8>>,
    pub(super) authorizer: PrincipalRef,
    /// `None`: the field is missing.
    pub(super) licensees: Option<Licensees>,
    /// `None`: the field is missing.
    pub(super) conditions: Option<Vec<Clause>>,
    pub(super) comment: Option<String>,
    pub(super) signature: Option<Str>,
}

impl Assertion {
    /// The text as it was read, without what surrounds it.
    #[must_use]
    pub fn source(&self) -> &[u8] {
        &self.source
    }

    /// The authorizer, when it does not depend on the attributes of a query.
    #[must_use]
    pub fn authorizer(&self) -> Option<&Principal> {
        self.authorizer.constant()
    }

    /// The principals of the `Licensees` field that do not depend on a query.
    #[must_use]
    pub fn licensees(&self) -> Vec<&Principal> {
        let mut found = Vec::new();
        if let Some(licensees) = &self.licensees {
            licensees.each(&mut |reference| found.extend(reference.constant()));
        }
        found
    }

    /// The text of the `Comment` field, blanks at its ends removed.
    #[must_use]
    pub fn comment(&self) -> Option<&str> {
        self.comment.as_deref()
    }

    /// Whether the assertion has a `Signature` field (which may be wrong).
    #[must_use]
    pub fn is_signed(&self) -> bool {
        self.signature.is_some()
    }

    /// The value of a name that the `Local-Constants` field defines.
    #[must_use]
    pub fn constant(&self, name: &str) -> Option<&[u8]> {
        self.constants.get(name).map(Vec::as_slice)
    }

    #[doc(hidden)]
    #[must_use]
    pub fn clauses(&self) -> &[Clause] {
        self.conditions.as_deref().unwrap_or_default()
    }
}

impl fmt::Debug for Assertion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Assertion")
            .field("authorizer", &self.authorizer())
            .field("licensees", &self.licensees())
            .finish_non_exhaustive()
    }
}

/// A principal as it is written.
pub(super) enum PrincipalRef {
    /// Made of literals and local constants only.
    Constant(Principal),
    /// Names attributes of the query.
    Computed(Str),
}

impl PrincipalRef {
    pub(super) fn constant(&self) -> Option<&Principal> {
        match self {
            PrincipalRef::Constant(principal) => Some(principal),
            PrincipalRef::Computed(_) => None,
        }
    }
}

/// The `Licensees` field.
pub(super) enum Licensees {
    /// Nobody: the field is there and empty.
    Empty,
    One(PrincipalRef),
    And(Vec<Licensees>),
    Or(Vec<Licensees>),
    AtLeast(usize, Vec<PrincipalRef>),
}

impl Licensees {
    pub(super) fn each<'a>(&'a self, visit: &mut impl FnMut(&'a PrincipalRef)) {
        match self {
            Licensees::Empty => {}
            Licensees::One(reference) => visit(reference),
            Licensees::And(parts) | Licensees::Or(parts) => {
                for part in parts {
                    part.each(visit);
                }
            }
            Licensees::AtLeast(_, list) => list.iter().for_each(visit),
        }
    }
}

/// One clause of the `Conditions` field.
pub struct Clause {
    pub test: Test,
    pub value: ClauseValue,
}

/// What a clause whose test succeeds is worth.
pub enum ClauseValue {
    /// No value given: `_MAX_TRUST`.
    Greatest,
    Named(Str),
    Nested(Vec<Clause>),
}

/// A logical expression.
pub enum Test {
    Constant(bool),
    Not(Box<Test>),
    And(Vec<Test>),
    Or(Vec<Test>),
    Integers(Integer, Relation, Integer),
    Floats(Float, Relation, Float),
    Strings(Str, Relation, Str),
    Matches(Str, Box<Pattern>),
}

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    Equal,
    NotEqual,
    Less,
    Greater,
    LessOrEqual,
    GreaterOrEqual,
}

/// An arithmetic operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Power,
}

/// An integer expression.
pub enum Integer {
    Literal(i32),
    /// `@`
    Of(Str),
    Negated(Box<Integer>),
    /// Operators of one precedence, from left to right.
    Chain(Box<Integer>, Vec<(Operator, Integer)>),
}

/// A floating point expression.
pub enum Float {
    Literal(f64),
    /// `&`
    Of(Str),
    Negated(Box<Float>),
    /// Operators of one precedence, from left to right.
    Chain(Box<Float>, Vec<(Operator, Float)>),
}

/// A string expression.
pub enum Str {
    Literal(Vec<u8>),
    Attribute(String),
    /// `$`
    Dereference(Box<Str>),
    Joined(Vec<Str>),
}

impl Str {
    /// The value, if it is made of literals and the given constants only, and not too long. Pays
    /// for every byte.
    pub(super) fn constant(
        &self,
        constants: &BTreeMap<String, Vec<u8>>,
        work: &mut Work,
    ) -> Result<Option<Vec<u8>>, Exhausted> {
        let paid = |value: Option<&Vec<u8>>, work: &mut Work| {
            work.pay(Cost::Copied, value.map_or(0, Vec::len))?;
            Ok(value.cloned())
        };
        match self {
            Str::Literal(text) => paid(Some(text), work),
            Str::Attribute(name) => paid(constants.get(name), work),
            Str::Dereference(inner) => {
                let name = inner.constant(constants, work)?;
                let name = name.and_then(|name| String::from_utf8(name).ok());
                paid(name.and_then(|name| constants.get(&name)), work)
            }
            Str::Joined(parts) => {
                let mut joined = Vec::new();
                for part in parts {
                    let Some(part) = part.constant(constants, work)? else {
                        return Ok(None);
                    };
                    if joined.len() + part.len() > super::bounds::STRING {
                        return Ok(None);
                    }
                    joined.extend(part);
                }
                Ok(Some(joined))
            }
        }
    }
}

impl Relation {
    /// Whether the relation holds of two values that compare so.
    pub(super) fn holds(self, ordering: std::cmp::Ordering) -> bool {
        match self {
            Relation::Equal => ordering.is_eq(),
            Relation::NotEqual => ordering.is_ne(),
            Relation::Less => ordering.is_lt(),
            Relation::Greater => ordering.is_gt(),
            Relation::LessOrEqual => ordering.is_le(),
            Relation::GreaterOrEqual => ordering.is_ge(),
        }
    }
}
