//! What an assertion, an attribute or a query may not exceed.
//!
//! The numbers are far above what people write. What is within them is paid for
//! by the request's [`super::Work`].

/// Bytes of one assertion.
pub const ASSERTION: usize = 64 * 1024;
/// Bytes of a file of assertions.
pub const FILE: usize = 64 * 1024 * 1024;
/// Depth of parentheses, blocks and prefix operators, together.
pub const NESTING: usize = 64;
/// Bytes of any string while a condition is evaluated.
pub const STRING: usize = 64 * 1024;
/// Bytes of a regular expression.
pub const PATTERN: usize = 4 * 1024;
/// States of a regular expression, its repetitions written out.
pub const STATES: usize = 16 * 1024;
/// Units of work ([`super::Work`]) of one assertion's conditions, in one query.
pub const WORK: u64 = 8_000_000;
/// Assertions of a text that are reported as left out.
pub const LEFT_OUT: usize = 16;
/// Compliance values of a query.
pub const VALUES: usize = 256;
/// Attributes of a query.
pub const ATTRIBUTES: usize = 1024;
/// Requesters of a query.
pub const REQUESTERS: usize = 256;
/// Groups of a match that become `_1`, `_2` ...
pub const GROUPS: usize = 31;
