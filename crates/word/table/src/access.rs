//! What a byte of a domain's map says.

use mullion_supervisor::{DomainId, Permission};
use std::fmt;
use std::ops::BitOr;

/// A set of rights on a word, as one byte of a map.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Access(u8);

impl Access {
    /// Nothing.
    pub const NONE: Access = Access(0);
    /// Loads.
    pub const READ: Access = Access(1);
    /// Stores.
    pub const WRITE: Access = Access(2);
    /// Instruction fetches.
    pub const EXECUTE: Access = Access(4);
    /// A call to this word goes to another domain: a switch gate.
    pub const ENTER: Access = Access(8);
    /// A return from this word goes back to another domain: a return gate.
    pub const LEAVE: Access = Access(16);
    /// Loads and stores: what the own number of a domain means.
    pub const READ_WRITE: Access = Access(3);

    /// The bits that `permission` gives `holder`.
    #[must_use]
    pub fn of(permission: Permission, holder: DomainId) -> Access {
        let bit = |is: bool, bit: Access| if is { bit } else { Access::NONE };
        bit(permission.reads(holder), Access::READ)
            | bit(permission.writes(), Access::WRITE)
            | bit(permission.executes(holder), Access::EXECUTE)
            | bit(
                matches!(permission, Permission::SwitchGate { .. }),
                Access::ENTER,
            )
            | bit(permission == Permission::ReturnGate, Access::LEAVE)
    }

    /// The byte.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    pub(crate) const fn from_bits(bits: u8) -> Access {
        Access(bits)
    }

    /// Whether all of `other` is there.
    #[must_use]
    pub const fn covers(self, other: Access) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Access {
    type Output = Access;

    fn bitor(self, other: Access) -> Access {
        Access(self.0 | other.0)
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (bit, letter) in [(1, 'r'), (2, 'w'), (4, 'x'), (8, 'g'), (16, 'b')] {
            let shown = if self.0 & bit != 0 { letter } else { '-' };
            write!(f, "{shown}")?;
        }
        Ok(())
    }
}
