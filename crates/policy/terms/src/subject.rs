//! To whom something is granted.

use crate::domain::{DomainId, GroupId};
use core::fmt;

/// Who can be given a permission.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// One domain.
    Domain(DomainId),
    /// All members of a group, as long as they are members.
    Group(GroupId),
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Domain(domain) => domain.fmt(f),
            Subject::Group(group) => group.fmt(f),
        }
    }
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Domain(domain) => fmt::Debug::fmt(domain, f),
            Subject::Group(group) => fmt::Debug::fmt(group, f),
        }
    }
}

impl From<DomainId> for Subject {
    fn from(domain: DomainId) -> Subject {
        Subject::Domain(domain)
    }
}

impl From<GroupId> for Subject {
    fn from(group: GroupId) -> Subject {
        Subject::Group(group)
    }
}
