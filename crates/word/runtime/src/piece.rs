//! Words of which a holder has the same by grants that end ([`Rights`](crate::rights::Rights)).

use mullion_supervisor::Permission;

/// Words on which all is the same.
#[derive(Clone, Copy)]
pub(crate) struct Piece {
    pub(crate) end: u64,
    pub(crate) base: Permission,
    /// Grants in force, to read, and to read and write.
    pub(crate) reads: u32,
    pub(crate) writes: u32,
    /// The latest number when the piece was made. Older grants that cover it had lost it before.
    pub(crate) since: u64,
}

impl Piece {
    pub(crate) fn wanted(&self) -> Permission {
        let given = match (self.reads, self.writes) {
            (0, 0) => Permission::None,
            (_, 0) => Permission::Read,
            _ => Permission::ReadWrite,
        };
        self.base.max(given)
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.reads == 0 && self.writes == 0
    }

    pub(crate) fn count(&mut self, permission: Permission) -> &mut u32 {
        match permission {
            Permission::ReadWrite => &mut self.writes,
            _ => &mut self.reads,
        }
    }
}

/// Nothing, or to read, or to read and write. Gates and code stay what they are.
pub(crate) fn is_data(permission: Permission) -> bool {
    permission <= Permission::ReadWrite
}
