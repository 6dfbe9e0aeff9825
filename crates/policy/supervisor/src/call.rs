//! The calls as data, for the audit log and for programs that make them up.

use mullion_terms::domain::{DomainId, GroupId};
use mullion_terms::permission::{Level, Permission};
use mullion_terms::range::Range;
use mullion_terms::subject::Subject;

/// A call to the supervisor. The methods of [`Supervisor`](crate::supervisor::Supervisor) have the same names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(
    missing_docs,
    reason = "the fields are the parameters of the methods, described there"
)]
pub enum Call {
    /// Table 1, rows 1 and 2.
    Mprot {
        range: Range,
        permission: Permission,
    },
    /// Table 1, rows 3 to 5.
    MprotExport {
        target: Subject,
        range: Range,
        permission: Permission,
        export: Level,
    },
    /// Table 1, rows 6 and 7.
    PdSubdivide {
        range: Range,
        permission: Permission,
    },
    /// Table 1, row 8.
    PdFree { target: DomainId },
    /// Table 1, rows 9 to 11.
    PermAlloc { range: Range },
    /// Table 1, rows 12 and 13.
    PermFree { range: Range },
    /// Mondrix, section 3.1.
    Chown { range: Range, target: DomainId },
    /// Mondrix, section 3.6.
    GroupCreate,
    /// Deletes a group.
    GroupFree { group: GroupId },
    /// Mondrix, section 3.6.
    GroupJoin { group: GroupId },
    /// Mondrix, section 3.6.
    GroupLeave { group: GroupId },
    /// Mondrix, section 3.3: recorded in the audit log; made by
    /// [`Supervisor::stack_grant`](crate::supervisor::Supervisor::stack_grant), which has the thread.
    StackGrant {
        thread: mullion_terms::domain::ThreadId,
        range: Range,
        writable: bool,
    },
}

/// A call that sets permissions, for [`Supervisor::change_after`](crate::supervisor::Supervisor::change_after).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(
    missing_docs,
    reason = "the fields are the parameters of the methods, described there"
)]
pub enum Change {
    /// [`Call::Mprot`].
    Own {
        range: Range,
        permission: Permission,
    },
    /// [`Call::MprotExport`].
    Export {
        target: Subject,
        range: Range,
        permission: Permission,
        export: Level,
    },
}

impl Change {
    /// The words that it is about.
    #[must_use]
    pub fn range(self) -> Range {
        match self {
            Self::Own { range, .. } | Self::Export { range, .. } => range,
        }
    }

    /// Whether it can only take something away.
    #[must_use]
    pub fn is_taking(self) -> bool {
        let (Self::Own { permission, .. } | Self::Export { permission, .. }) = self;
        permission == Permission::None
    }

    /// The call that it is.
    #[must_use]
    pub fn call(self) -> Call {
        match self {
            Self::Own { range, permission } => Call::Mprot { range, permission },
            Self::Export {
                target,
                range,
                permission,
                export,
            } => Call::MprotExport {
                target,
                range,
                permission,
                export,
            },
        }
    }
}

/// What a call that was not refused returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reply {
    /// Nothing but success.
    Done,
    /// The domain made by `pd_subdivide`.
    Domain(DomainId),
    /// The group made by `group_create`.
    Group(GroupId),
    /// What `perm_free` found: nobody but the owner had anything on the range, so nothing changed.
    NothingToFree,
}
