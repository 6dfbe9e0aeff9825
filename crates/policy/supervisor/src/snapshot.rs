//! The whole state as plain data: to compare, to store, to paint.

use crate::mechanism::Mechanism;
use crate::policy::JoinPolicy;
use crate::region::Holding;
use crate::supervisor::Supervisor;
use alloc::vec::Vec;
use mullion_terms::domain::{DomainId, GroupId};
use mullion_terms::permission::Order;
use mullion_terms::range::Range;

/// Everything that the supervisor knows. Two supervisors with equal snapshots answer every call alike, if
/// their policies do.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Snapshot {
    /// The space that is shared out.
    pub space: Range,
    /// The order of permissions.
    pub order: Order,
    /// The living domains, in order of number.
    pub domains: Vec<DomainState>,
    /// The living groups, in order of number; the global one first.
    pub groups: Vec<GroupState>,
    /// The whole space in order of address, neighbours always different.
    pub regions: Vec<(Range, Holding)>,
    /// Words that are some thread's stack.
    pub stacks: Vec<Range>,
    /// The next numbers of a domain, a group and a thread.
    pub next: [u32; 3],
}

/// A living domain.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DomainState {
    /// Its number.
    pub id: DomainId,
    /// Its parent; none for the root.
    pub parent: Option<DomainId>,
    /// The groups it has joined, in order; the global one goes without saying.
    pub groups: Vec<GroupId>,
}

/// A living group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GroupState {
    /// Its number.
    pub id: GroupId,
    /// Who made it, or inherited it.
    pub creator: DomainId,
    /// Who joined it, in order; empty for the global one, which has everybody.
    pub members: Vec<DomainId>,
}

impl<M: Mechanism, P: JoinPolicy> Supervisor<M, P> {
    /// Copies the whole state; costs as much as there is.
    pub fn snapshot(&self) -> Snapshot {
        let domains = self.state.domains.iter().map(|(id, domain)| DomainState {
            id,
            parent: domain.parent,
            groups: domain.groups.iter().copied().collect(),
        });
        let groups = self.state.groups.iter().map(|(id, group)| GroupState {
            id: *id,
            creator: group.creator,
            members: group.members.iter().copied().collect(),
        });
        let regions = self
            .regions(self.space())
            .map(|(range, holding)| (range, holding.clone()));
        Snapshot {
            space: self.space(),
            order: self.order,
            domains: domains.collect(),
            groups: groups.collect(),
            regions: regions.collect(),
            stacks: self.stacks.iter().collect(),
            next: [
                self.state.next_domain,
                self.state.next_group,
                self.next_thread,
            ],
        }
    }

    /// Checks that the indexes say what the regions say. It is true by construction; tests can ask, with the feature
    /// `check`. Costs as much as there is.
    #[cfg(feature = "check")]
    pub fn check(&self) -> Result<(), &'static str> {
        let mut again = crate::state::Rebuilt::default();
        for (range, holding) in self.regions(self.space()) {
            again.add(range, holding);
        }
        again.matches(&self.state)
    }
}
