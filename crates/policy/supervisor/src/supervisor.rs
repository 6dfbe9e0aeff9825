//! The supervisor: its state, and the door through which every call comes.

use crate::call::{Call, Change, Reply};
use crate::mechanism::{Holders, Mechanism};
use crate::policy::{Family, JoinPolicy};
use crate::region::{Grant, Holding};
use crate::set::WordSet;
use crate::state::State;
use alloc::vec::Vec;
use mullion_refusal::audit::AuditLog;
use mullion_refusal::error::Error;
use mullion_terms::domain::{CallStack, DomainId, GroupId};
use mullion_terms::permission::{Level, Order, Permission};
use mullion_terms::range::Range;
use mullion_terms::subject::Subject;

/// The only holder of truth on domains, ownership, permissions and groups.
///
/// Every call takes the caller from a [`CallStack`], and judges each word of the range by the row of
/// [`TABLE_1`](mullion_refusal::table::TABLE_1) that fits it. It changes everything or, with an [`Error`], nothing.
///
/// On a word that a domain does not own, it has the stronger of what it was granted itself and what its groups were
/// granted. Of equals it is its own, then the group with the lowest number. What an owner has is what it set itself.
#[derive(Clone, Debug)]
pub struct Supervisor<M, P = Family> {
    pub(crate) state: State,
    pub(crate) mechanism: M,
    pub(crate) policy: P,
    pub(crate) order: Order,
    pub(crate) audit: Option<AuditLog>,
    /// Words that are some thread's stack.
    pub(crate) stacks: WordSet,
    pub(crate) next_thread: u32,
}

impl<M: Mechanism> Supervisor<M> {
    /// A supervisor over `space`, which it owns whole and in which nobody has any permission, with
    /// [`Order::Strict`] and the default policy for groups.
    pub fn new(space: Range, mechanism: M) -> Supervisor<M> {
        Supervisor::with(space, mechanism, Family, Order::Strict)
    }
}

impl<M: Mechanism, P: JoinPolicy> Supervisor<M, P> {
    /// A supervisor with a policy and an order of permissions chosen by the caller.
    pub fn with(space: Range, mut mechanism: M, policy: P, order: Order) -> Supervisor<M, P> {
        mechanism.create(DomainId::SUPERVISOR);
        Supervisor {
            state: State::new(space),
            mechanism,
            policy,
            order,
            audit: None,
            stacks: WordSet::default(),
            next_thread: 0,
        }
    }

    /// Makes any call but [`Call::StackGrant`], which needs a thread and is refused as
    /// [`Error::NoCaller`]. The methods below are this with fewer words.
    pub fn call(&mut self, stack: &impl CallStack, call: Call) -> Result<Reply, Error> {
        let caller = stack.current();
        let outcome = self.decide(caller, stack.previous(), call);
        self.record(caller, call, outcome)
    }

    /// Makes changes that are all allowed, after `work` has succeeded that makes them so elsewhere: ask, do,
    /// commit. Where one of them is refused, `work` is not done; where `work` fails, none is made. Each is
    /// judged by what is so now: none may be allowed by another one alone.
    pub fn change_after<T, E: From<Error>>(
        &mut self,
        changes: &[(DomainId, Change)],
        work: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let mut plans = Vec::with_capacity(changes.len());
        for (caller, change) in changes {
            match self.plan(*caller, *change) {
                Ok(plan) => plans.push(plan),
                Err(error) => {
                    let refused = self.record(*caller, change.call(), Err(error));
                    return Err(refused.err().unwrap_or(error).into());
                }
            }
        }
        let words = changes.iter().map(|(_, change)| change.range().count());
        let pieces = plans.iter().map(|plan| plan.count());
        let taking = changes.iter().all(|(_, change)| change.is_taking());
        self.check_room(words.sum(), pieces.sum(), taking)?;
        let done = work()?;
        for ((caller, change), plan) in changes.iter().zip(plans) {
            match *change {
                Change::Own { .. } => {
                    self.set((*caller).into(), plan);
                }
                Change::Export {
                    target,
                    range,
                    permission,
                    ..
                } => self.export(target, range, permission, plan),
            }
            let _recorded = self.record(*caller, change.call(), Ok(Reply::Done));
        }
        Ok(done)
    }

    pub(crate) fn plan(
        &self,
        caller: DomainId,
        change: Change,
    ) -> Result<crate::memory::Plan, Error> {
        self.state.domain(caller)?;
        match change {
            Change::Own { range, permission } => self.plan_mprot(caller, range, permission),
            Change::Export {
                target,
                range,
                permission,
                export,
            } => self.plan_export(caller, target, range, Grant::new(permission, export)),
        }
    }

    pub(crate) fn record(
        &mut self,
        caller: DomainId,
        call: Call,
        outcome: Result<Reply, Error>,
    ) -> Result<Reply, Error> {
        if let Some(audit) = &mut self.audit {
            audit.record(caller, call, outcome);
        }
        outcome
    }

    fn decide(
        &mut self,
        caller: DomainId,
        previous: Option<DomainId>,
        call: Call,
    ) -> Result<Reply, Error> {
        self.state.domain(caller)?;
        match call {
            Call::Mprot { range, permission } => self.decide_mprot(caller, range, permission),
            Call::MprotExport {
                target,
                range,
                permission,
                export,
            } => self.decide_export(caller, target, range, Grant::new(permission, export)),
            Call::PdSubdivide { range, permission } => {
                self.decide_subdivide(caller, range, permission)
            }
            Call::PdFree { target } => self.decide_pd_free(caller, target),
            Call::PermAlloc { range } => self.decide_alloc(caller, previous, range),
            Call::PermFree { range } => self.decide_free(caller, range),
            Call::Chown { range, target } => self.decide_chown(caller, range, target),
            Call::GroupCreate => self.decide_group_create(caller),
            Call::GroupFree { group } => self.decide_group_free(caller, group),
            Call::GroupJoin { group } => self.decide_join(caller, group),
            Call::GroupLeave { group } => self.decide_leave(caller, group),
            Call::StackGrant { .. } => Err(Error::NoCaller { domain: caller }),
        }
    }

    /// Sets the caller's own permission (Table 1, rows 1 and 2).
    pub fn mprot(
        &mut self,
        stack: &impl CallStack,
        range: Range,
        permission: Permission,
    ) -> Result<(), Error> {
        self.call(stack, Call::Mprot { range, permission })
            .map(drop)
    }

    /// Sets what `target`, a domain or a group, may do (Table 1, rows 3 to 5), and lets it export all of
    /// it, as the paper's supervisor does.
    pub fn mprot_export(
        &mut self,
        stack: &impl CallStack,
        target: impl Into<Subject>,
        range: Range,
        permission: Permission,
    ) -> Result<(), Error> {
        self.mprot_export_up_to(stack, target, range, permission, Level::Full)
    }

    /// As [`mprot_export`](Self::mprot_export), but `target` may pass on no more than `export` (Mondrix,
    /// section 3.1: "read-write access, but read-only export").
    pub fn mprot_export_up_to(
        &mut self,
        stack: &impl CallStack,
        target: impl Into<Subject>,
        range: Range,
        permission: Permission,
        export: Level,
    ) -> Result<(), Error> {
        let target = target.into();
        self.call(
            stack,
            Call::MprotExport {
                target,
                range,
                permission,
                export,
            },
        )
        .map(drop)
    }

    /// Makes a domain below the caller that owns `range` and has `permission` on it (Table 1, rows 6 and
    /// 7).
    pub fn pd_subdivide(
        &mut self,
        stack: &impl CallStack,
        range: Range,
        permission: Permission,
    ) -> Result<DomainId, Error> {
        match self.call(stack, Call::PdSubdivide { range, permission })? {
            Reply::Domain(domain) => Ok(domain),
            _ => Err(Error::Exhausted),
        }
    }

    /// Deletes a domain (Table 1, row 8). Its children become its parent's, and so do the groups it made.
    /// Every switch gate into it goes.
    pub fn pd_free(&mut self, stack: &impl CallStack, target: DomainId) -> Result<(), Error> {
        self.call(stack, Call::PdFree { target }).map(drop)
    }

    /// Gives the domain that called the caller permission on `range` (Table 1, rows 9 to 11).
    pub fn perm_alloc(&mut self, stack: &impl CallStack, range: Range) -> Result<(), Error> {
        self.call(stack, Call::PermAlloc { range }).map(drop)
    }

    /// Revokes everybody's permission on `range` but the caller's, who owns it (Table 1, rows 12 and 13).
    /// Where nobody else has any there is nothing to do, which [`call`](Self::call) tells as
    /// [`Reply::NothingToFree`].
    pub fn perm_free(&mut self, stack: &impl CallStack, range: Range) -> Result<(), Error> {
        self.call(stack, Call::PermFree { range }).map(drop)
    }

    /// Gives `range`, which the caller owns and nobody but the caller and `target` has access to, to
    /// `target`. The caller keeps nothing; `target` keeps the permission it had (Mondrix, section 3.1).
    pub fn chown(
        &mut self,
        stack: &impl CallStack,
        range: Range,
        target: DomainId,
    ) -> Result<(), Error> {
        self.call(stack, Call::Chown { range, target }).map(drop)
    }

    /// Makes an empty group. Its maker is not a member.
    pub fn group_create(&mut self, stack: &impl CallStack) -> Result<GroupId, Error> {
        match self.call(stack, Call::GroupCreate)? {
            Reply::Group(group) => Ok(group),
            _ => Err(Error::Exhausted),
        }
    }

    /// Deletes a group; its members lose what they had through it.
    pub fn group_free(&mut self, stack: &impl CallStack, group: GroupId) -> Result<(), Error> {
        self.call(stack, Call::GroupFree { group }).map(drop)
    }

    /// Makes the caller a member, if the policy allows.
    pub fn group_join(&mut self, stack: &impl CallStack, group: GroupId) -> Result<(), Error> {
        self.call(stack, Call::GroupJoin { group }).map(drop)
    }

    /// Ends the caller's membership and what it had through it.
    pub fn group_leave(&mut self, stack: &impl CallStack, group: GroupId) -> Result<(), Error> {
        self.call(stack, Call::GroupLeave { group }).map(drop)
    }

    /// Keeps the latest `capacity` decisions from now on; what was kept before is gone.
    pub fn start_audit(&mut self, capacity: usize) {
        self.audit = Some(AuditLog::new(capacity));
    }

    /// Ends the log and hands it over.
    pub fn stop_audit(&mut self) -> Option<AuditLog> {
        self.audit.take()
    }

    /// The log, while there is one.
    pub fn audit(&self) -> Option<&AuditLog> {
        self.audit.as_ref()
    }

    /// The mechanism.
    pub fn mechanism(&self) -> &M {
        &self.mechanism
    }

    /// The mechanism, for what is its own business (accounting, running code). What the supervisor has
    /// written must stay as it is.
    pub fn mechanism_mut(&mut self) -> &mut M {
        &mut self.mechanism
    }

    /// Tells the mechanism again, by holding, what every word has: for one that writes its table anew. Costs as much
    /// as there is.
    pub fn tell_again(&mut self) {
        for (range, id) in self.state.regions.numbered(self.space()) {
            let number = self.state.regions.number(id);
            let holders = Holders::new(&self.state, self.state.regions.holding(id), None);
            self.mechanism.hold(range, number, number, holders);
        }
        self.mechanism.settle();
    }

    /// The space that is shared out.
    pub fn space(&self) -> Range {
        self.state.regions.space()
    }

    /// The order of permissions.
    pub fn order(&self) -> Order {
        self.order
    }

    /// How many regions the space is cut into.
    pub fn region_count(&self) -> usize {
        self.state.regions.count()
    }

    /// Whether the domain lives.
    pub fn exists(&self, domain: DomainId) -> bool {
        self.state.domain(domain).is_ok()
    }

    /// The parent of a living domain; none for the root.
    pub fn parent(&self, domain: DomainId) -> Result<Option<DomainId>, Error> {
        Ok(self.state.domain(domain)?.parent)
    }

    /// The owner of `word`, a word of the space.
    pub fn owner(&self, word: u64) -> Option<DomainId> {
        self.state.regions.at(word).map(|holding| holding.owner)
    }

    /// What `domain` may do with `word`, itself and through groups.
    pub fn permission(&self, domain: DomainId, word: u64) -> Permission {
        self.grant(domain, word).access
    }

    /// What `domain` may do with `word` and may export of it, itself and through groups.
    pub fn grant(&self, domain: DomainId, word: u64) -> Grant {
        match self.state.regions.at(word) {
            Some(holding) if self.exists(domain) => self.state.effective(holding, domain),
            _ => Grant::default(),
        }
    }

    /// The regions, with owner and grants, that make up `range`.
    pub fn regions(&self, range: Range) -> impl Iterator<Item = (Range, &Holding)> {
        let inside = self.space().overlap(range);
        inside
            .into_iter()
            .flat_map(|range| self.state.regions.pieces(range))
    }

    /// The members of a group.
    pub fn members(&self, group: GroupId) -> Result<Vec<DomainId>, Error> {
        self.state.group(group)?;
        Ok(self.state.members(group))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Silent;

    impl Mechanism for Silent {
        fn write(&mut self, _: DomainId, _: Range, _: Permission) {}
        fn flush(&mut self, _: DomainId, _: Range) {}
    }

    #[test]
    fn numbers_are_never_given_out_twice_and_run_out() {
        let root = DomainId::SUPERVISOR;
        let mut supervisor = Supervisor::new(Range::everything(), Silent);
        supervisor.state.next_domain = u32::MAX;
        supervisor.state.next_group = u32::MAX;
        supervisor.next_thread = u32::MAX;
        let before = supervisor.snapshot();
        let range = Range::words(0, 1).unwrap();
        let exhausted = Error::Exhausted;
        assert_eq!(
            supervisor.pd_subdivide(&root, range, Permission::Read),
            Err(exhausted)
        );
        assert_eq!(supervisor.group_create(&root), Err(exhausted));
        assert_eq!(
            supervisor.thread_create(&root, range).unwrap_err(),
            exhausted
        );
        assert_eq!(supervisor.snapshot(), before);
    }
}
