//! What a byte of a domain's map says.

use mullion_supervisor::{DomainId, Permission};
use mullion_word_abi::right;
use std::fmt;
use std::ops::BitOr;

/// A set of rights on a word, as one byte of a map.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Access(u8);

impl Access {
    /// Nothing.
    pub const NONE: Access = Access(0);
    /// Loads.
    pub const READ: Access = Access(right::READ);
    /// Stores. A permission that gives this gives [`READ`](Self::READ), too.
    pub const WRITE: Access = Access(right::WRITE);
    /// Jumps within the domain's own code.
    pub const EXECUTE: Access = Access(right::EXECUTE);
    /// A call to this word goes to another domain: a switch gate.
    pub const ENTER: Access = Access(right::ENTER);
    /// A function of the host that may be called. It is what a return gate gives: here, control leaves the domain.
    pub const LEAVE: Access = Access(right::LEAVE);
    /// Loads and stores: what the own number of a domain means.
    pub const READ_WRITE: Access = Access(right::READ | right::WRITE);

    /// The bits that `permission` gives `holder`.
    #[must_use]
    pub fn of(permission: Permission, holder: DomainId) -> Access {
        let bit = |is: bool, bit: Access| if is { bit } else { Access::NONE };
        bit(permission.reads(holder), Access::READ)
            | bit(permission.writes(), Access::WRITE)
            | bit(
                // Control leaves by the run time. A jump within the module must not go to a function of the host, even if a
                // label's bytes happen to lie in front of it.
                permission.executes(holder) && permission != Permission::ReturnGate,
                Access::EXECUTE,
            )
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
        for (bit, letter) in [(1, 'r'), (2, 'w'), (4, 'x'), (8, 'g'), (16, 'l')] {
            let shown = if self.0 & bit != 0 { letter } else { '-' };
            write!(f, "{shown}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checked code tests one bit for a store that may be followed by loads of the same words.
    #[test]
    fn what_may_be_written_may_be_read() {
        let (me, other) = (DomainId::new(1), DomainId::new(2));
        for permission in [
            Permission::None,
            Permission::Read,
            Permission::ReadWrite,
            Permission::ExecuteRead,
            Permission::SwitchGate { to: me },
            Permission::SwitchGate { to: other },
            Permission::ReturnGate,
        ] {
            let access = Access::of(permission, me);
            assert!(
                !access.covers(Access::WRITE) || access.covers(Access::READ),
                "{permission:?}"
            );
        }
        assert_eq!(Access::of(Permission::ReadWrite, me), Access::READ_WRITE);
    }

    /// The check of a jump asks for `EXECUTE`, and for a label in front, which only the domain's own code must have.
    #[test]
    fn no_jump_goes_to_the_host_or_to_another_domain() {
        let (me, other) = (DomainId::new(1), DomainId::new(2));
        for permission in [
            Permission::ReturnGate,
            Permission::SwitchGate { to: other },
            Permission::ReadWrite,
        ] {
            assert!(
                !Access::of(permission, me).covers(Access::EXECUTE),
                "{permission:?}"
            );
        }
        assert!(Access::of(Permission::ReturnGate, me).covers(Access::LEAVE));
    }
}
