//! Ranges of words: the unit in which memory is owned and protected.

use core::fmt;

/// Bytes in a word, the smallest piece of memory that can have a permission of its own.
pub const WORD_BYTES: u64 = 4;

/// A non-empty run of words. Word `n` holds the bytes `4 n` to `4 n + 3`.
///
/// Every range that exists is aligned, not empty and inside the 64-bit space, because the constructors
/// refuse all others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Range {
    /// The first word.
    start: u64,
    /// The word behind the last one: more than `start`, at most 2^62.
    end: u64,
}

/// Why something is not a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeError {
    /// The address or the length is not a multiple of [`WORD_BYTES`].
    Unaligned {
        /// The byte address asked for.
        address: u64,
        /// The bytes asked for.
        bytes: u64,
    },
    /// No word at all.
    Empty {
        /// The byte address asked for.
        address: u64,
    },
    /// The end lies beyond the 64-bit address space.
    Overflow {
        /// The byte address asked for.
        address: u64,
        /// The bytes asked for.
        bytes: u64,
    },
}

impl fmt::Display for RangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RangeError::Unaligned { address, bytes } => write!(
                f,
                "{bytes} bytes at {address:#x} do not begin and end on a word: make both multiples of {WORD_BYTES}"
            ),
            RangeError::Empty { address } => {
                write!(
                    f,
                    "the range at {address:#x} is empty: name at least one word"
                )
            }
            RangeError::Overflow { address, bytes } => {
                write!(
                    f,
                    "{bytes} bytes at {address:#x} run past the end of the address space"
                )
            }
        }
    }
}

impl core::error::Error for RangeError {}

/// Words in the 64-bit address space.
const SPACE_WORDS: u64 = 1 << 62;

impl Range {
    /// `bytes` bytes from the byte address `address`; both are multiples of four.
    pub fn bytes(address: u64, bytes: u64) -> Result<Range, RangeError> {
        if !address.is_multiple_of(WORD_BYTES) || !bytes.is_multiple_of(WORD_BYTES) {
            return Err(RangeError::Unaligned { address, bytes });
        }
        Range::words(address / WORD_BYTES, bytes / WORD_BYTES)
    }

    /// `count` words from word `first`.
    pub fn words(first: u64, count: u64) -> Result<Range, RangeError> {
        let address = first.wrapping_mul(WORD_BYTES);
        let bytes = count.wrapping_mul(WORD_BYTES);
        if count == 0 {
            return Err(RangeError::Empty { address });
        }
        match first.checked_add(count) {
            Some(end) if end <= SPACE_WORDS => Ok(Range { start: first, end }),
            _ => Err(RangeError::Overflow { address, bytes }),
        }
    }

    /// The whole 64-bit address space.
    pub const fn everything() -> Range {
        Range {
            start: 0,
            end: SPACE_WORDS,
        }
    }

    /// The words from `start` to before `end`, if there are any.
    #[must_use]
    pub fn between(start: u64, end: u64) -> Option<Range> {
        (start < end).then_some(Range { start, end })
    }

    /// The first word.
    pub const fn start(self) -> u64 {
        self.start
    }

    /// The word behind the last one.
    pub const fn end(self) -> u64 {
        self.end
    }

    /// How many words; at least 1.
    pub const fn count(self) -> u64 {
        self.end - self.start
    }

    /// The byte address of the first word.
    pub const fn address(self) -> u64 {
        self.start * WORD_BYTES
    }

    /// Length in bytes; the whole space, which does not fit, counts as `u64::MAX`.
    pub const fn byte_count(self) -> u64 {
        self.count().saturating_mul(WORD_BYTES)
    }

    /// Whether `word` lies inside.
    pub const fn holds(self, word: u64) -> bool {
        self.start <= word && word < self.end
    }

    /// Whether all of `other` lies inside.
    pub const fn covers(self, other: Range) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    /// The words that both have.
    pub fn overlap(self, other: Range) -> Option<Range> {
        Range::between(self.start.max(other.start), self.end.min(other.end))
    }
}

impl fmt::Display for Range {
    /// Byte addresses, the end exclusive: `0x1000..0x2000`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = u128::from(self.end) * u128::from(WORD_BYTES);
        write!(f, "{:#x}..{end:#x}", self.address())
    }
}

impl fmt::Debug for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_aligned_and_not_empty_and_fits() {
        assert_eq!(
            Range::bytes(2, 4),
            Err(RangeError::Unaligned {
                address: 2,
                bytes: 4
            })
        );
        assert_eq!(
            Range::bytes(4, 6),
            Err(RangeError::Unaligned {
                address: 4,
                bytes: 6
            })
        );
        assert_eq!(Range::bytes(8, 0), Err(RangeError::Empty { address: 8 }));
        assert!(matches!(
            Range::bytes(u64::MAX - 3, 8),
            Err(RangeError::Overflow { .. })
        ));
        assert!(matches!(
            Range::words(u64::MAX, 2),
            Err(RangeError::Overflow { .. })
        ));
        let last = Range::bytes(u64::MAX - 3, 4).unwrap();
        assert_eq!((last.count(), last.end()), (1, Range::everything().end()));
    }
}
