//! How the 32 bits of an entry of a multi-level table are used.
//!
//! The all-zero word means "no permission" in every encoding, so a fresh table needs no filling in.

/// What an entry says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Look in the table that begins at this word.
    Table(u32),
    /// Two words with all permissions, out of line.
    OutOfLine(u32),
    /// The permissions of all sub-blocks, two bits each.
    Perms(u64),
}

/// How an entry's 32 bits are used.
pub trait Encoding: std::fmt::Debug {
    /// Base-two logarithm of the sub-blocks of an entry.
    const PARTS_LOG2: u32;
    /// Whether a leaf that does not fit may point to two words with all its permissions.
    const OUT_OF_LINE: bool;

    /// What an entry says.
    fn decode(entry: u32, leaf: bool) -> Content;
    /// The entry for these permissions, if they fit.
    fn encode(perms: u64, leaf: bool) -> Option<u32>;
    /// The entry that points to a table.
    fn table(at: u32) -> u32;
    /// The entry that points to two words out of line. Only for encodings that have it.
    fn out_of_line(at: u32) -> u32;
}

/// The same two bits in every sub-block, when multiplied with a permission.
pub(super) const ONES: u64 = 0x5555_5555_5555_5555;

/// A mask of the first `parts` sub-blocks, below 32.
pub(super) const fn low_parts(parts: u32) -> u64 {
    (1 << (2 * parts)) - 1
}

/// A mask of the sub-blocks from `first` to `last`, both inside.
pub(super) const fn parts(first: u64, last: u64) -> u64 {
    (u64::MAX >> (62 - 2 * (last - first))) << (2 * first)
}
