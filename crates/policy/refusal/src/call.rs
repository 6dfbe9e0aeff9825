//! The calls as data, for the audit log and for programs that make them up. The supervisor takes them and does them; this
//! does nothing.

use mullion_terms::domain::{DomainId, GroupId, ThreadId};
use mullion_terms::permission::{Level, Permission};
use mullion_terms::range::Range;
use mullion_terms::subject::Subject;

/// A call to the supervisor. The methods of the supervisor have the same names.
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
    /// `Supervisor::stack_grant`, which has the thread.
    StackGrant {
        thread: ThreadId,
        range: Range,
        writable: bool,
    },
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
