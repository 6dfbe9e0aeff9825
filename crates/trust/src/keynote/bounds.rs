//! What an assertion, an attribute or a query may not exceed.
//!
//! The numbers are far above what people write and low enough that no input
//! costs more than milliseconds.

/// Bytes of one assertion.
pub const ASSERTION: usize = 64 * 1024;
/// Bytes of a file of assertions.
pub const FILE: usize = 64 * 1024 * 1024;
/// Depth of parentheses, blocks and prefix operators, together.
pub const NESTING: usize = 64;
/// Bytes of any string while a condition is evaluated.
pub const STRING: usize = 64 * 1024;
/// Bytes of a regular expression, before and after translation.
pub const PATTERN: usize = 4 * 1024;
/// Bytes that a compiled regular expression may take.
pub const PATTERN_MEMORY: usize = 512 * 1024;
/// Bytes compared by the regular expressions of one assertion, and the tests
/// done by it, in one query.
pub const WORK: usize = 4 * 1024 * 1024;
/// Compliance values of a query.
pub const VALUES: usize = 256;
/// Attributes of a query.
pub const ATTRIBUTES: usize = 1024;
/// Requesters of a query.
pub const REQUESTERS: usize = 256;
/// Groups of a match that become `_1`, `_2` ...
pub const GROUPS: usize = 31;
