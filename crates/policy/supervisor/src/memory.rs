//! The rules of Table 1 and of `chown`: first every word is judged, then everything changes.

use crate::call::Reply;
use crate::few::Few;
use crate::living::Domain;
use crate::mechanism::Mechanism;
use crate::policy::JoinPolicy;
use crate::region::Grant;
use crate::region::Holding;
use crate::state::{Told, carry_out, carry_out_all};
use crate::supervisor::Supervisor;
use mullion_refusal::error::{Error, Rule};
use mullion_terms::domain::{DomainId, GroupId};
use mullion_terms::permission::{Level, Permission};
use mullion_terms::range::Range;
use mullion_terms::subject::Subject;

/// What to set, piece by piece, once all pieces are allowed.
pub(crate) type Plan = Few<(Range, Grant)>;

impl<M: Mechanism, P: JoinPolicy> Supervisor<M, P> {
    /// Rows 1 and 2.
    pub(crate) fn decide_mprot(
        &mut self,
        caller: DomainId,
        range: Range,
        asked: Permission,
    ) -> Result<Reply, Error> {
        let plan = self.plan_mprot(caller, range, asked)?;
        self.check_room(range.count(), plan.count(), asked == Permission::None)?;
        self.set(caller.into(), plan);
        Ok(Reply::Done)
    }

    /// What [`decide_mprot`](Self::decide_mprot) sets; nothing changes.
    pub(crate) fn plan_mprot(
        &self,
        caller: DomainId,
        range: Range,
        asked: Permission,
    ) -> Result<Plan, Error> {
        self.check_space(range)?;
        self.check_gate(caller, range, asked)?;
        let mut plan = Plan::new();
        for (at, holding) in self.state.regions.pieces(range) {
            let own = holding.direct(caller.into());
            if holding.owner == caller {
                plan.push((at, Grant::new(asked, Level::Full)));
                continue;
            }
            let held = self.state.effective(holding, caller).access;
            if !self.order.at_most(asked, held) {
                return Err(Error::AboveOwn {
                    rule: Rule::Row(2),
                    caller,
                    asked,
                    held,
                    at,
                });
            }
            if asked == held {
                continue;
            }
            // What a group gives is the group's: it is neither lowered nor turned into something of one's
            // own that would outlive the membership.
            let outlives = !self.order.at_most(asked, own.access);
            self.check_through_group(at, holding, caller, asked, outlives)?;
            plan.push((at, Grant::new(asked, own.export)));
        }
        Ok(plan)
    }

    /// Rows 3 to 5.
    pub(crate) fn decide_export(
        &mut self,
        caller: DomainId,
        target: Subject,
        range: Range,
        asked: Grant,
    ) -> Result<Reply, Error> {
        let plan = self.plan_export(caller, target, range, asked)?;
        self.check_room(
            range.count(),
            plan.count(),
            asked.access == Permission::None,
        )?;
        self.export(target, range, asked.access, plan);
        Ok(Reply::Done)
    }

    /// Carries out what [`plan_export`](Self::plan_export) has found.
    pub(crate) fn export(&mut self, target: Subject, range: Range, access: Permission, plan: Plan) {
        let written = self.set(target, plan);
        match target {
            Subject::Group(group) if written && M::BY_DOMAIN => self.hint(group, range, access),
            _ => {}
        }
    }

    /// What [`decide_export`](Self::decide_export) sets; nothing changes.
    pub(crate) fn plan_export(
        &self,
        caller: DomainId,
        target: Subject,
        range: Range,
        asked: Grant,
    ) -> Result<Plan, Error> {
        self.check_space(range)?;
        self.check_target(caller, target)?;
        self.check_gate(caller, range, asked.access)?;
        let mut plan = Plan::new();
        for (at, holding) in self.state.regions.pieces(range) {
            if holding.owner == caller {
                if let Subject::Domain(domain) = target {
                    self.check_through_group(at, holding, domain, asked.access, false)?;
                }
                plan.push((at, asked));
            } else {
                plan.push((
                    at,
                    self.judge_non_owner(5, caller, target, (at, holding), asked)?,
                ));
            }
        }
        Ok(plan)
    }

    /// Rows 6 and 7.
    pub(crate) fn decide_subdivide(
        &mut self,
        caller: DomainId,
        range: Range,
        permission: Permission,
    ) -> Result<Reply, Error> {
        self.check_space(range)?;
        self.check_gate(caller, range, permission)?;
        self.check_unshared(caller, None, range, Rule::Row(7), Rule::Row(6))?;
        let child = DomainId::new(self.state.next_domain);
        let next = self
            .state
            .next_domain
            .checked_add(1)
            .ok_or(Error::Exhausted)?;
        self.check_room(range.count(), 1, permission == Permission::None)?;
        if !self.mechanism.room_for_domain() {
            let words = range.count();
            return Err(Error::NoRoom { words });
        }

        self.state.next_domain = next;
        let domain = Domain {
            parent: Some(caller),
            ..Domain::default()
        };
        self.state.domains.insert(child, domain);
        if let Some(parent) = self.state.domains.get_mut(caller) {
            parent.children.insert(child);
        }
        self.mechanism.create(child);
        let mut told = Told::new::<M>();
        self.tell_global(child, &mut told);
        self.state.change(range, &mut told, |holding| {
            holding.owner = child;
            holding.grants.clear();
            holding.set(child.into(), Grant::new(permission, Level::Full));
        });
        carry_out(&self.state, &mut self.mechanism, told);
        Ok(Reply::Domain(child))
    }

    /// Row 8.
    pub(crate) fn decide_pd_free(
        &mut self,
        caller: DomainId,
        target: DomainId,
    ) -> Result<Reply, Error> {
        let Some(parent) = self.state.domain(target)?.parent else {
            return Err(Error::Root);
        };
        if caller != target && !self.state.is_above(caller, target) {
            return Err(Error::NotAncestor { caller, target });
        }

        let mut told = self.writes_of_all(target);
        let gone = self.unlink(target, parent);
        for owned in gone.owned.iter() {
            self.state.change(owned, &mut told, |holding| {
                holding.owner = parent;
                holding.grants.clear();
            });
        }
        self.tell_holdings(&mut told);
        for held in gone.may_hold().iter() {
            self.state
                .set(held, target.into(), Grant::default(), &mut told);
        }
        self.tell_holdings(&mut told);
        for entry in gone.entries.iter() {
            self.state.change(entry, &mut told, |holding| {
                holding
                    .grants
                    .retain(|(_, grant)| grant.access != Permission::SwitchGate { to: target });
            });
        }
        carry_out_all(&self.state, &mut self.mechanism, told);
        if M::BY_HOLDING {
            self.mechanism.settle();
        }
        self.forget_prepared_for(&gone);
        self.mechanism.remove(target);
        Ok(Reply::Done)
    }

    /// Rows 9 to 11.
    pub(crate) fn decide_alloc(
        &mut self,
        caller: DomainId,
        previous: Option<DomainId>,
        range: Range,
    ) -> Result<Reply, Error> {
        let target = previous.ok_or(Error::NoCaller { domain: caller })?;
        self.state.domain(target)?;
        self.check_space(range)?;
        let mut plan = Plan::new();
        for (at, holding) in self.state.regions.pieces(range) {
            let read_write = Grant::new(Permission::ReadWrite, Level::Full);
            if holding.owner == target {
                return Err(Error::TargetOwns {
                    rule: Rule::Row(10),
                    target,
                    at,
                });
            } else if holding.owner == caller {
                plan.push((at, read_write));
            } else {
                let asked = self.state.effective(holding, caller);
                plan.push((
                    at,
                    self.judge_non_owner(11, caller, target.into(), (at, holding), asked)?,
                ));
            }
        }
        self.check_room(range.count(), plan.count(), false)?;
        self.set(target.into(), plan);
        Ok(Reply::Done)
    }

    /// Rows 12 and 13.
    pub(crate) fn decide_free(&mut self, caller: DomainId, range: Range) -> Result<Reply, Error> {
        self.check_space(range)?;
        let (mut held, mut pieces) = (false, 0);
        for (at, holding) in self.state.regions.pieces(range) {
            if holding.owner != caller {
                return Err(Error::NotOwner {
                    rule: Rule::Row(13),
                    caller,
                    owner: holding.owner,
                    at,
                });
            }
            held |= holding
                .grants
                .iter()
                .any(|(subject, _)| *subject != caller.into());
            pieces += 1;
        }
        if !held {
            return Ok(Reply::NothingToFree);
        }
        self.check_room(range.count(), pieces, true)?;
        let mut told = Told::new::<M>();
        self.state.change(range, &mut told, |holding| {
            holding
                .grants
                .retain(|(subject, _)| *subject == caller.into());
        });
        carry_out(&self.state, &mut self.mechanism, told);
        Ok(Reply::Done)
    }

    /// Section 3.1: what the paper's supervisor "could provide".
    pub(crate) fn decide_chown(
        &mut self,
        caller: DomainId,
        range: Range,
        target: DomainId,
    ) -> Result<Reply, Error> {
        self.check_space(range)?;
        self.check_target(caller, target.into())?;
        self.check_unshared(
            caller,
            Some(target),
            range,
            Rule::Ownership,
            Rule::Ownership,
        )?;
        let pieces = self.state.regions.pieces(range).count() as u64;
        self.check_room(range.count(), pieces, true)?;
        let mut told = Told::new::<M>();
        self.state.change(range, &mut told, |holding| {
            holding.owner = target;
            holding.set(caller.into(), Grant::default());
        });
        carry_out(&self.state, &mut self.mechanism, told);
        Ok(Reply::Done)
    }

    /// The common part of rows 4, 5 and 11: `caller` does not own the piece and gives `asked`.
    fn judge_non_owner(
        &self,
        row: u8,
        caller: DomainId,
        target: Subject,
        (at, holding): (Range, &Holding),
        asked: Grant,
    ) -> Result<Grant, Error> {
        let rule = Rule::Row(row);
        if target == holding.owner.into() {
            return Err(Error::TargetOwns {
                rule: Rule::Row(4),
                target: holding.owner,
                at,
            });
        }
        let own = self.state.effective(holding, caller);
        if !self.order.at_most(asked.access, own.access) {
            return Err(Error::AboveOwn {
                rule,
                caller,
                asked: asked.access,
                held: own.access,
                at,
            });
        }
        if asked.access.level() > own.export {
            return Err(Error::AboveExport {
                rule,
                caller,
                asked: asked.access,
                export: own.export,
                at,
            });
        }
        let direct = holding.direct(target);
        let held = match target {
            Subject::Domain(domain) => self.state.effective(holding, domain).access,
            Subject::Group(_) => direct.access,
        };
        if !self.order.at_most(held, asked.access) {
            return Err(Error::WouldLower {
                rule,
                target,
                asked: asked.access,
                held,
                at,
            });
        }
        // What the target could export before it still can: nobody but the owner takes that away.
        Ok(Grant::new(
            asked.access,
            asked.export.min(own.export).max(direct.export),
        ))
    }

    /// Sets what `subject` holds and has the mechanism write what that changes; whether it changed any
    /// domain's permission.
    pub(crate) fn set(&mut self, subject: Subject, plan: Plan) -> bool {
        let mut told = Told::new::<M>();
        for (range, grant) in plan {
            self.state.set(range, subject, grant, &mut told);
        }
        let written = !told.writes.is_empty();
        carry_out(&self.state, &mut self.mechanism, told);
        written
    }

    /// Tells the mechanism which members now hold `permission` on all of `range`.
    pub(crate) fn hint(&mut self, group: GroupId, range: Range, permission: Permission) {
        let mut members = self.state.members(group);
        members.retain(|member| {
            let mut pieces = self.state.regions.pieces(range);
            pieces.all(|(_, holding)| self.state.effective(holding, *member).access == permission)
        });
        if members.len() > 1 {
            self.mechanism.alike(&members, range, permission);
        }
    }

    /// Tells what has moved so far at a domain's end, while its numbers are true.
    fn tell_holdings(&mut self, told: &mut Told) {
        let mut now = Told::new::<M>();
        core::mem::swap(&mut now.moves, &mut told.moves);
        carry_out_all(&self.state, &mut self.mechanism, now);
    }

    /// The mechanism has room for a change.
    pub(crate) fn check_room(
        &mut self,
        words: u64,
        pieces: u64,
        taking: bool,
    ) -> Result<(), Error> {
        match self.mechanism.room(words, pieces, taking) {
            true => Ok(()),
            false => Err(Error::NoRoom { words }),
        }
    }

    pub(crate) fn check_space(&self, range: Range) -> Result<(), Error> {
        let space = self.space();
        match space.covers(range) {
            true if self.mechanism.enforces(range) => Ok(()),
            true => Err(Error::NotEnforced { range }),
            false => Err(Error::OutsideSpace { range, space }),
        }
    }

    /// The target exists and is not the caller.
    fn check_target(&self, caller: DomainId, target: Subject) -> Result<(), Error> {
        match target {
            Subject::Domain(domain) if domain == caller => Err(Error::TargetIsCaller { caller }),
            Subject::Domain(domain) => self.state.domain(domain).map(drop),
            Subject::Group(group) => self.state.group(group).map(drop),
        }
    }

    /// A switch gate is placed by the domain that it enters or by an ancestor, or passed on by who has it:
    /// else any domain could enter any other anywhere.
    fn check_gate(&self, caller: DomainId, range: Range, asked: Permission) -> Result<(), Error> {
        let Permission::SwitchGate { to } = asked else {
            return Ok(());
        };
        self.state.domain(to)?;
        if to == caller || self.state.is_above(caller, to) {
            return Ok(());
        }
        let foreign = |(at, holding): (Range, &Holding)| {
            let has_it = self.state.effective(holding, caller).access == asked;
            (!has_it).then_some(Error::ForeignGate { caller, to, at })
        };
        self.state
            .regions
            .pieces(range)
            .find_map(foreign)
            .map_or(Ok(()), Err)
    }

    /// Refuses to set `domain` to `asked` where a group gives it more, so that the call would have no
    /// effect; or anything at all, if `anything`.
    fn check_through_group(
        &self,
        at: Range,
        holding: &Holding,
        domain: DomainId,
        asked: Permission,
        anything: bool,
    ) -> Result<(), Error> {
        match self.state.through_groups(holding, domain) {
            Some((group, held)) if anything || held.level() > asked.level() => {
                Err(Error::HeldThroughGroup {
                    domain,
                    group,
                    asked,
                    held,
                    at,
                })
            }
            _ => Ok(()),
        }
    }

    /// The caller owns all of `range`, and nobody but it and `other` has any access.
    fn check_unshared(
        &self,
        caller: DomainId,
        other: Option<DomainId>,
        range: Range,
        owning: Rule,
        sharing: Rule,
    ) -> Result<(), Error> {
        for (at, holding) in self.state.regions.pieces(range) {
            let owner = holding.owner;
            if owner != caller {
                return Err(Error::NotOwner {
                    rule: owning,
                    caller,
                    owner,
                    at,
                });
            }
            let mut holders = holding.grants.iter().map(|(subject, _)| *subject);
            let allowed = |holder: Subject| {
                holder == caller.into() || other.is_some_and(|o| holder == o.into())
            };
            if let Some(holder) = holders.find(|holder| !allowed(*holder)) {
                return Err(Error::Shared {
                    rule: sharing,
                    holder,
                    at,
                });
            }
        }
        Ok(())
    }
}
