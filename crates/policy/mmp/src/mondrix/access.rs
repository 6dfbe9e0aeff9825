//! What an instruction wants to do to memory, and what a permission table can hold about a word.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Bytes in the unit of protection (Mondrix, section 2.1: regions begin and end at word-aligned addresses).
pub const WORD: u64 = 4;

/// What one access wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MachineAccess {
    /// A load.
    Read,
    /// A store.
    Write,
    /// An instruction fetch.
    Execute,
}

impl fmt::Display for MachineAccess {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            MachineAccess::Read => "read",
            MachineAccess::Write => "write",
            MachineAccess::Execute => "execute",
        })
    }
}

/// The two bits that a permission table holds for a word.
///
/// Gates are not here. They live in the gate table (Mondrix, section 2.2), and the word under a gate
/// is executable or not by its own two bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum Perm {
    /// No access.
    #[default]
    None = 0,
    /// Loads.
    Read = 1,
    /// Loads and stores.
    ReadWrite = 2,
    /// Loads and instruction fetches.
    ExecuteRead = 3,
}

impl Perm {
    /// All values, in the order of their encoding.
    pub const ALL: [Perm; 4] = [Perm::None, Perm::Read, Perm::ReadWrite, Perm::ExecuteRead];

    /// The value encoded in the low two bits; higher bits are ignored.
    pub const fn from_bits(bits: u64) -> Perm {
        match bits & 3 {
            0 => Perm::None,
            1 => Perm::Read,
            2 => Perm::ReadWrite,
            _ => Perm::ExecuteRead,
        }
    }

    /// The encoding, below four.
    pub const fn bits(self) -> u64 {
        self as u64
    }

    /// Whether this permission is enough for the access.
    pub const fn allows(self, access: MachineAccess) -> bool {
        match access {
            MachineAccess::Read => !matches!(self, Perm::None),
            MachineAccess::Write => matches!(self, Perm::ReadWrite),
            MachineAccess::Execute => matches!(self, Perm::ExecuteRead),
        }
    }
}

impl fmt::Display for Perm {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Perm::None => "none",
            Perm::Read => "read",
            Perm::ReadWrite => "read-write",
            Perm::ExecuteRead => "execute-read",
        })
    }
}
