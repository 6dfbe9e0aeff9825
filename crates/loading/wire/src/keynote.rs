//! Why assertions, signatures, queries and tests do not count.

/// Why a text is no assertion, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {problem}{}{hint}", if hint.is_empty() { "" } else { "; " })]
pub struct ParseError {
    /// From 1.
    pub line: usize,
    /// In bytes, from 1.
    pub column: usize,
    /// What is wrong there.
    pub problem: String,
    /// The way out, or empty.
    pub hint: &'static str,
}

impl ParseError {
    /// At an offset of the text.
    #[must_use]
    pub fn at(source: &[u8], offset: usize, problem: String, hint: &'static str) -> Self {
        let before = &source[..offset.min(source.len())];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        let start = before.iter().rposition(|byte| *byte == b'\n');
        ParseError {
            line,
            column: offset - start.map_or(0, |newline| newline + 1) + 1,
            problem,
            hint,
        }
    }

    /// The same, so many lines further down.
    #[must_use]
    pub fn below(mut self, lines: usize) -> Self {
        self.line += lines;
        self
    }
}

/// Why a credential does not count.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignatureErrorOf<K> {
    /// No `Signature` field.
    #[error("the credential is not signed; only a policy may be unsigned")]
    Missing,
    /// The authorizer is a name, or a key of an algorithm that is not known.
    #[error("the authorizer `{0}` is not a key that signatures can be verified with")]
    NotAKey(K),
    /// The signature's algorithm.
    #[error("signatures of the algorithm `{algorithm}` are not accepted; {hint}")]
    Algorithm {
        /// As written.
        algorithm: String,
        /// The way out.
        hint: &'static str,
    },
    /// The bits do not have the form of the algorithm.
    #[error("the signature does not have the form of its algorithm")]
    Malformed,
    /// The signature of another text, or another key.
    #[error(
        "the signature is not that of its authorizer over this text; the text was changed, or it was signed by another key"
    )]
    Wrong,
}

/// A question that cannot be asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// None, too many, or one of them twice.
    #[error("the compliance values must be 1 to {0} different strings")]
    Values(usize),
    /// None, or too many.
    #[error("a query needs 1 to {0} requesters")]
    Requesters(usize),
    /// `POLICY` asks nobody.
    #[error("`POLICY` is the root of all chains and cannot be a requester")]
    PolicyRequests,
    /// An attribute's name.
    #[error(
        "`{0}` cannot be an attribute: names are letters, digits and `_`, and do not begin with `_`"
    )]
    AttributeName(String),
    /// An attribute's value, or the number of attributes.
    #[error("the attribute `{0}` is too long, holds a NUL byte, or is one too many")]
    AttributeValue(String),
}

/// Why a test is false although nobody said so. It ends the test that it
/// happens in, and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConditionError {
    /// A divisor of zero.
    #[error("division by zero")]
    DivisionByZero,
    /// An integer of more than 32 bits.
    #[error("an integer beyond -2147483648 ... 2147483647")]
    Overflow,
    /// Infinity, or no number.
    #[error("a floating point number beyond all bounds")]
    NotFinite,
    /// A pattern that does not count.
    #[error("a regular expression that is not valid")]
    Pattern,
    /// A string beyond the bound.
    #[error("a string longer than {0} bytes")]
    TooLong(usize),
    /// The budget.
    #[error("more work than one assertion may cause")]
    TooMuch,
}

/// Why a pattern is not used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("regular expression, byte {at}: {problem}")]
pub struct PatternError {
    /// Offset in the pattern.
    pub at: usize,
    /// What is wrong there.
    pub problem: &'static str,
}
