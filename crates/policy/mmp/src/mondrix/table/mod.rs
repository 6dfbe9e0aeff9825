//! Permission tables: what a domain may do to each word, in memory, in one of three formats.
//!
//! | format | entry | a look-up loads | good at |
//! | --- | --- | --- | --- |
//! | [`sorted::SortedTable`] | start of a segment and its permission | a binary search | few segments |
//! | [`multilevel::Vector`] | two bits for each word, eight sub-blocks above the leaves | one word a level | the paper's choice: cheap writes |
//! | [`multilevel::Runs`] | up to five runs over 32 sub-blocks | one word a level, one more if out of line | fewer and wider entries |
//!
//! A table answers a look-up with a *block*: an aligned power-of-two range that the loaded entry
//! describes completely. The block is what the protection lookaside buffer caches.

pub mod encoding;
pub mod geometry;
pub mod memory;
pub mod multilevel;
mod runs;
pub mod sorted;
mod vector;

use crate::access::Perm;
use memory::TableMemory;
use serde::{Deserialize, Serialize};
use std::ops::Range;

pub use geometry::{Geometry, GeometryError};

/// The formats that a configuration can name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// A sorted array of segments, searched by halving.
    Sorted,
    /// A multi-level table with bit vectors (Mondrix, section 5.2: used for all its experiments).
    #[default]
    Vector,
    /// A multi-level table with run-length entries.
    Runs,
}

impl Format {
    /// All formats, in the order of the documentation.
    pub const ALL: [Format; 3] = [Format::Sorted, Format::Vector, Format::Runs];
}

impl std::fmt::Display for Format {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Format::Sorted => "sorted",
            Format::Vector => "vector",
            Format::Runs => "runs",
        })
    }
}

impl std::str::FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Format::ALL
            .into_iter()
            .find(|format| format.to_string() == text)
            .ok_or_else(|| format!("no table format `{text}`: sorted, vector or runs"))
    }
}

/// What one loaded entry says: an aligned power-of-two range cut into equal sub-blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryBlock {
    /// First address; a multiple of the size.
    pub base: u64,
    /// Base-two logarithm of the size in bytes.
    pub size_log2: u32,
    /// Base-two logarithm of the number of sub-blocks; at most five.
    pub parts_log2: u32,
    /// Two bits for each sub-block, the first in the lowest bits.
    pub perms: u64,
}

impl MemoryBlock {
    /// A block with one permission throughout.
    pub const fn uniform(base: u64, size_log2: u32, perm: Perm) -> MemoryBlock {
        MemoryBlock {
            base,
            size_log2,
            parts_log2: 0,
            perms: perm.bits(),
        }
    }

    /// The permission at an address inside the block.
    pub const fn perm_at(&self, address: u64) -> Perm {
        let part = (address - self.base) >> (self.size_log2 - self.parts_log2);
        Perm::from_bits(self.perms >> (2 * part))
    }

    /// Whether the address lies inside.
    pub const fn contains(&self, address: u64) -> bool {
        address >> self.size_log2 == self.base >> self.size_log2
    }
}

/// The loads that the hardware made to answer one look-up, as word indices into the table memory.
#[derive(Clone, Debug, Default)]
pub struct Walk {
    loads: Vec<u32>,
}

impl Walk {
    /// The loads, in order.
    pub fn loads(&self) -> &[u32] {
        &self.loads
    }

    /// Forgets them, keeping the room.
    pub fn clear(&mut self) {
        self.loads.clear();
    }

    /// Notes a load.
    pub fn load(&mut self, word: u32) {
        self.loads.push(word);
    }
}

/// A table format: where one domain's table begins is a [`Root`], everything else is in the memory.
pub trait PermissionTable: std::fmt::Debug {
    /// An empty table: no permission anywhere.
    fn create(&self, memory: &mut TableMemory) -> Root;

    /// Gives all memory of a table back, except what other tables share.
    fn destroy(&self, memory: &mut TableMemory, root: Root);

    /// Sets the permission of an aligned, non-empty range in every one of the tables.
    ///
    /// Several tables at once is a group's write: pieces that end up the same are written once and
    /// shared, where they fill an aligned subtree.
    fn set(&self, memory: &mut TableMemory, roots: &mut [Root], range: Range<u64>, perm: Perm);

    /// Lets tables share the subtrees at the edges of a range that have become word for word the same.
    /// A format without subtrees has nothing to share.
    fn share(&self, memory: &mut TableMemory, roots: &[Root], range: Range<u64>) {
        let _ = (memory, roots, range);
    }

    /// What the hardware finds for an address, and which words it loads for it.
    fn look_up(
        &self,
        memory: &TableMemory,
        root: Root,
        address: u64,
        walk: &mut Walk,
    ) -> MemoryBlock;
}

/// The registers that describe a domain's table to the hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Root {
    /// Index of the table's first word.
    pub at: u32,
    /// Entries in use (sorted tables only).
    pub count: u32,
    /// Base-two logarithm of the words allocated (sorted tables only).
    pub capacity_log2: u32,
}

/// The largest aligned power-of-two block around an address that lies inside a range.
pub(crate) fn largest_block(range: &Range<u64>, address: u64, limit_log2: u32) -> (u64, u32) {
    let mut log2 = 2;
    let mut base = address & !3;
    while log2 < limit_log2 {
        let wider = address >> (log2 + 1) << (log2 + 1);
        if wider < range.start || range.end - wider < 1 << (log2 + 1) {
            break;
        }
        log2 += 1;
        base = wider;
    }
    (base, log2)
}
