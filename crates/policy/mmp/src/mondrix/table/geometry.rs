//! How many bits of an address each level of a multi-level table consumes.
//!
//! ```text
//!   32-bit address, words of 4 bytes, 16 words in a leaf entry
//!   31          22 21          12 11      6 5     2 1 0
//!  +--------------+--------------+---------+-------+---+
//!  |  root, 10    |  middle, 10  | leaf, 6 | word  |   |
//!  +--------------+--------------+---------+-------+---+
//!    an entry: 4 MiB      4 KiB       64 B     4 B
//! ```

use crate::access::WORD;
use thiserror::Error;

/// A leaf table spans a page: most allocations are a page or less (Mondrix, section 5.2).
const PAGE_LOG2: u32 = 12;

/// Why a geometry cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum GeometryError {
    /// Addresses of this width are not modelled.
    #[error("address-bits is {0}: 20 to 56 are modelled")]
    AddressBits(u32),
    /// The granularity is not a power of two between a word and a mebibyte.
    #[error("granularity is {0} bytes: a power of two from 4 to 1048576 is needed")]
    Granularity(u64),
}

/// The levels of a table, from the root to the leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Bits of an address.
    pub address_bits: u32,
    /// For each level, the base-two logarithm of its tables' entries.
    pub index_bits: Vec<u32>,
    /// For each level, the base-two logarithm of the bytes that one entry spans.
    pub span_log2: Vec<u32>,
}

impl Geometry {
    /// Cuts an address of `address_bits` into levels above entries of `1 << parts_log2` granules.
    ///
    /// From the bottom: a leaf table spans 4 KiB (if its entries are smaller than that), the levels
    /// above take ten bits each. The root what remains. With 32 bits, words, and 16 words in an entry
    /// that is 10, 10, 6.
    pub fn new(
        address_bits: u32,
        granularity: u64,
        parts_log2: u32,
    ) -> Result<Self, GeometryError> {
        if !(20..=56).contains(&address_bits) {
            return Err(GeometryError::AddressBits(address_bits));
        }
        if !granularity.is_power_of_two() || !(WORD..=1 << 20).contains(&granularity) {
            return Err(GeometryError::Granularity(granularity));
        }
        let leaf_span = granularity.ilog2() + parts_log2;
        let mut below = leaf_span;
        let mut levels = Vec::new();
        while below < address_bits || levels.is_empty() {
            let bits = if below < PAGE_LOG2 {
                PAGE_LOG2 - below
            } else {
                10
            };
            let bits = bits.min(address_bits.saturating_sub(below)).max(1);
            levels.push((bits, below));
            below += bits;
        }
        levels.reverse();
        Ok(Geometry {
            address_bits,
            index_bits: levels.iter().map(|level| level.0).collect(),
            span_log2: levels.iter().map(|level| level.1).collect(),
        })
    }

    /// The number of levels.
    pub fn levels(&self) -> usize {
        self.index_bits.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thirty_two_bits_are_ten_ten_six() {
        let geometry = Geometry::new(32, 4, 4).unwrap();
        assert_eq!(geometry.index_bits, [10, 10, 6]);
        assert_eq!(geometry.span_log2, [22, 12, 6]);
    }

    #[test]
    fn runs_halve_the_leaf() {
        let geometry = Geometry::new(32, 4, 5).unwrap();
        assert_eq!(geometry.index_bits, [10, 10, 5]);
    }

    #[test]
    fn wide_addresses_get_more_levels() {
        let geometry = Geometry::new(48, 4, 4).unwrap();
        assert_eq!(geometry.index_bits, [6, 10, 10, 10, 6]);
        assert_eq!(geometry.span_log2, [42, 32, 22, 12, 6]);
    }

    #[test]
    fn coarse_granules_lose_levels() {
        let geometry = Geometry::new(32, 4096, 4).unwrap();
        assert_eq!(geometry.index_bits, [6, 10]);
    }

    #[test]
    fn what_cannot_be_built_is_refused() {
        assert_eq!(Geometry::new(64, 4, 4), Err(GeometryError::AddressBits(64)));
        assert_eq!(Geometry::new(32, 6, 4), Err(GeometryError::Granularity(6)));
    }
}
