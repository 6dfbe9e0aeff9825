//! Groups, their members, and what a domain has through them (Mondrix, section 3.6).

use crate::call::Reply;
use crate::living::Domain;
use crate::mechanism::Mechanism;
use crate::policy::{JoinPolicy, JoinRequest};
use crate::region::Grant;
use crate::set::WordSet;
use crate::state::{Group, Told, carry_out};
use crate::supervisor::Supervisor;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use mullion_refusal::error::Error;
use mullion_terms::domain::{DomainId, GroupId};
use mullion_terms::permission::Permission;
use mullion_terms::range::Range;

impl<M: Mechanism, P: JoinPolicy> Supervisor<M, P> {
    pub(crate) fn decide_group_create(&mut self, caller: DomainId) -> Result<Reply, Error> {
        let id = GroupId::new(self.state.next_group);
        self.state.next_group = self
            .state
            .next_group
            .checked_add(1)
            .ok_or(Error::Exhausted)?;
        let group = Group {
            creator: caller,
            members: BTreeSet::new(),
            held: WordSet::default(),
        };
        self.state.groups.insert(id, group);
        Ok(Reply::Group(id))
    }

    pub(crate) fn decide_group_free(
        &mut self,
        caller: DomainId,
        group: GroupId,
    ) -> Result<Reply, Error> {
        let found = self.state.group(group)?;
        if group == GroupId::GLOBAL {
            return Err(Error::GlobalGroup);
        }
        if found.creator != caller {
            return Err(Error::NotCreator {
                caller,
                creator: found.creator,
                group,
            });
        }
        let held: Vec<Range> = found.held.iter().collect();
        let words = held.iter().map(|range| range.count()).sum();
        let pieces = |range: &Range| self.state.regions.pieces(*range).count() as u64;
        let pieces = held.iter().map(pieces).sum();
        self.check_room(words, pieces, true)?;
        let mut told = Told::new::<M>();
        for range in held {
            self.state
                .set(range, group.into(), Grant::default(), &mut told);
        }
        for member in self.state.members(group) {
            if let Some(domain) = self.state.domains.get_mut(member) {
                domain.groups.remove(&group);
            }
        }
        self.state.groups.remove(&group);
        carry_out(&self.state, &mut self.mechanism, told);
        Ok(Reply::Done)
    }

    pub(crate) fn decide_join(&mut self, caller: DomainId, group: GroupId) -> Result<Reply, Error> {
        let creator = self.state.group(group)?.creator;
        if group == GroupId::GLOBAL {
            return Err(Error::GlobalGroup);
        }
        if self.state.is_member(caller, group) {
            return Err(Error::AlreadyMember {
                domain: caller,
                group,
            });
        }
        let descendant = self.state.is_above(creator, caller);
        let request = JoinRequest {
            domain: caller,
            group,
            creator,
            descendant,
        };
        if !self.policy.may_join(&request) {
            return Err(Error::JoinRefused {
                domain: caller,
                group,
            });
        }
        self.set_membership(caller, group, true);
        Ok(Reply::Done)
    }

    pub(crate) fn decide_leave(
        &mut self,
        caller: DomainId,
        group: GroupId,
    ) -> Result<Reply, Error> {
        self.state.group(group)?;
        if group == GroupId::GLOBAL {
            return Err(Error::GlobalGroup);
        }
        if !self.state.is_member(caller, group) {
            return Err(Error::NotMember {
                domain: caller,
                group,
            });
        }
        self.set_membership(caller, group, false);
        Ok(Reply::Done)
    }

    /// Changes a membership on both sides, and writes what the domain wins or loses by it.
    fn set_membership(&mut self, domain: DomainId, group: GroupId, member: bool) {
        let before = match M::BY_DOMAIN {
            true => self.access_to_group(domain, group),
            false => Vec::new(),
        };
        if let (Some(found), Some(joined)) = (
            self.state.domains.get_mut(domain),
            self.state.groups.get_mut(&group),
        ) {
            if member {
                found.groups.insert(group);
                joined.members.insert(domain);
            } else {
                found.groups.remove(&group);
                joined.members.remove(&domain);
            }
        }
        self.rehold(domain, group);
        if !M::BY_DOMAIN {
            return;
        }
        let after = self.access_to_group(domain, group);
        let mut told = Told::new::<M>();
        for (before, after) in before.into_iter().zip(after) {
            if before != after {
                told.write(domain, after.0, after.1);
            }
        }
        carry_out(&self.state, &mut self.mechanism, told);
    }

    /// Tells what `domain` has by each holding in which `group` has something.
    pub(crate) fn rehold(&mut self, domain: DomainId, group: GroupId) {
        if !M::BY_HOLDING {
            return;
        }
        let Some(found) = self.state.groups.get(&group) else {
            return;
        };
        for (number, holding) in self.state.regions.holdings_in(found.held.iter()) {
            if holding.direct(group.into()).access != Permission::None {
                let access = self.state.effective(holding, domain).access;
                self.mechanism.rehold(number, domain, access);
            }
        }
        self.mechanism.settle();
    }

    /// What `domain` has on each piece of what `group` was granted.
    fn access_to_group(&self, domain: DomainId, group: GroupId) -> Vec<(Range, Permission)> {
        let held = self
            .state
            .groups
            .get(&group)
            .into_iter()
            .flat_map(|found| found.held.iter());
        let pieces = held.flat_map(|range| self.state.regions.pieces(range));
        pieces
            .map(|(range, holding)| (range, self.state.effective(holding, domain).access))
            .collect()
    }

    /// What a new domain has from its first moment: what the global group was granted.
    pub(crate) fn tell_global(&mut self, domain: DomainId, told: &mut Told) {
        self.rehold(domain, GroupId::GLOBAL);
        if M::BY_DOMAIN {
            for (range, access) in self.access_to_group(domain, GroupId::GLOBAL) {
                told.write(domain, range, access);
            }
        }
    }

    /// Writes that take everything from `domain`, whether it owns it, was granted it or has it through a
    /// group.
    pub(crate) fn writes_of_all(&self, domain: DomainId) -> Told {
        let mut told = Told::new::<M>();
        let Some(found) = self.state.domains.get(domain).filter(|_| M::BY_DOMAIN) else {
            return told;
        };
        let mut words = found.may_hold();
        for group in found.groups.iter().chain(&[GroupId::GLOBAL]) {
            let held = self
                .state
                .groups
                .get(group)
                .into_iter()
                .flat_map(|group| group.held.iter());
            held.for_each(|range| words.insert(range));
        }
        for range in words.iter() {
            for (piece, holding) in self.state.regions.pieces(range) {
                if self.state.effective(holding, domain).access != Permission::None {
                    told.write(domain, piece, Permission::None);
                }
            }
        }
        told
    }

    /// Takes `domain` out of the tree and out of its groups. Its children and the groups that it made go
    /// to `parent`; what it owned and held is handed back with it.
    pub(crate) fn unlink(&mut self, domain: DomainId, parent: DomainId) -> Domain {
        let gone = self.state.domains.remove(domain).unwrap_or_default();
        for group in self.state.groups.values_mut() {
            group.members.remove(&domain);
            if group.creator == domain {
                group.creator = parent;
            }
        }
        for child in &gone.children {
            if let Some(child) = self.state.domains.get_mut(*child) {
                child.parent = Some(parent);
            }
        }
        if let Some(parent) = self.state.domains.get_mut(parent) {
            parent.children.remove(&domain);
            parent.children.extend(&gone.children);
        }
        gone
    }
}
