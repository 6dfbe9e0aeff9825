//! Who may join a group: the one decision that the paper leaves to the system's designer (section 3.6).

use mullion_terms::domain::{DomainId, GroupId};

/// A domain that wants to be in a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JoinRequest {
    /// Who asks.
    pub domain: DomainId,
    /// Where it wants to be.
    pub group: GroupId,
    /// Who made the group.
    pub creator: DomainId,
    /// Whether `domain` is below `creator` in the tree of domains.
    pub descendant: bool,
}

/// Decides who may join a group. A function `Fn(&JoinRequest) -> bool` is a policy.
pub trait JoinPolicy {
    /// Whether to let it in.
    fn may_join(&self, request: &JoinRequest) -> bool;
}

/// Lets the creator of a group and its descendants in: the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Family;

impl JoinPolicy for Family {
    fn may_join(&self, request: &JoinRequest) -> bool {
        request.descendant || request.domain == request.creator
    }
}

impl<F: Fn(&JoinRequest) -> bool> JoinPolicy for F {
    fn may_join(&self, request: &JoinRequest) -> bool {
        self(request)
    }
}
