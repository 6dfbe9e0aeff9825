//! The supervisor's state: regions, the tree of domains, groups, and indexes. By the indexes the cost of a call
//! follows the holders of what it touches.

use crate::few::Few;
use crate::living::{Domain, Domains};
use crate::mechanism::{Holders, Mechanism};
use crate::prepared::Prepared;
use crate::region::Grant;
use crate::region::{Holding, Moved, Moves, Regions};
use crate::set::WordSet;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use mullion_refusal::error::Error;
use mullion_terms::domain::{DomainId, GroupId};
use mullion_terms::permission::Permission;
use mullion_terms::range::Range;
use mullion_terms::subject::Subject;

/// A living group.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// Who made it, or inherited it.
    pub(crate) creator: DomainId,
    /// Empty for the global group, whose members are all domains.
    pub(crate) members: BTreeSet<DomainId>,
    /// Exactly the words on which it was granted something.
    pub(crate) held: WordSet,
}

/// What a call has decided that the mechanism must write.
pub(crate) type Writes = Few<(DomainId, Range, Permission)>;

/// What a call has changed, in the words that the mechanism asks for.
#[derive(Debug)]
pub(crate) struct Told {
    by_domain: bool,
    by_holding: bool,
    /// Each word of a domain at most once.
    pub(crate) writes: Writes,
    pub(crate) moves: Few<Moved>,
}

impl Told {
    /// Nothing yet, for `M`.
    pub(crate) fn new<M: Mechanism>() -> Told {
        Told {
            by_domain: M::BY_DOMAIN,
            by_holding: M::BY_HOLDING,
            writes: Few::new(),
            moves: Few::new(),
        }
    }

    /// For changes of which nobody is to hear.
    pub(crate) fn nobody() -> Told {
        Told {
            by_domain: false,
            by_holding: false,
            writes: Few::new(),
            moves: Few::new(),
        }
    }

    pub(crate) fn write(&mut self, domain: DomainId, range: Range, permission: Permission) {
        if self.by_domain {
            self.writes.push((domain, range, permission));
        }
    }
}

fn moves(by_holding: bool, moves: &mut Few<Moved>) -> Moves<'_> {
    by_holding.then_some(moves)
}

/// The living groups.
pub(crate) type Groups = BTreeMap<GroupId, Group>;

#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) regions: Regions,
    pub(crate) domains: Domains,
    pub(crate) groups: Groups,
    pub(crate) prepared: Prepared,
    pub(crate) next_domain: u32,
    pub(crate) next_group: u32,
}

impl State {
    pub(crate) fn new(space: Range) -> State {
        let mut root = Domain::default();
        root.owned.insert(space);
        let global = Group {
            creator: DomainId::SUPERVISOR,
            members: BTreeSet::new(),
            held: WordSet::default(),
        };
        let mut domains = Domains::default();
        domains.insert(DomainId::SUPERVISOR, root);
        State {
            regions: Regions::new(space, DomainId::SUPERVISOR),
            domains,
            groups: BTreeMap::from([(GroupId::GLOBAL, global)]),
            prepared: Prepared::default(),
            next_domain: 1,
            next_group: 1,
        }
    }

    /// The living domain with this number.
    pub(crate) fn domain(&self, domain: DomainId) -> Result<&Domain, Error> {
        match self.domains.get(domain) {
            Some(found) => Ok(found),
            None if domain.get() < self.next_domain => Err(Error::DeletedDomain { domain }),
            None => Err(Error::UnknownDomain { domain }),
        }
    }

    /// The living group with this number.
    pub(crate) fn group(&self, group: GroupId) -> Result<&Group, Error> {
        self.groups.get(&group).ok_or(Error::UnknownGroup { group })
    }

    /// Whether `ancestor` is above `domain` in the tree.
    pub(crate) fn is_above(&self, ancestor: DomainId, domain: DomainId) -> bool {
        let parent = |id: &DomainId| self.domains.get(*id).and_then(|found| found.parent);
        core::iter::successors(parent(&domain), parent).any(|above| above == ancestor)
    }

    pub(crate) fn is_member(&self, domain: DomainId, group: GroupId) -> bool {
        is_member(&self.domains, domain, group)
    }

    /// The members of `group`; all domains for the global one.
    pub(crate) fn members(&self, group: GroupId) -> Vec<DomainId> {
        members(&self.domains, &self.groups, group)
    }

    /// The strongest that groups give `domain`, and the group that does; of equals, the lowest number.
    /// Groups give nothing to the owner, who alone sets what it has.
    pub(crate) fn through_groups(
        &self,
        holding: &Holding,
        domain: DomainId,
    ) -> Option<(GroupId, Permission)> {
        through_groups(&self.domains, holding, domain)
    }

    /// What `domain` has: the stronger of its own grant and what groups give, its own of equals; and how
    /// far it may export, which is what any of these allows.
    pub(crate) fn effective(&self, holding: &Holding, domain: DomainId) -> Grant {
        effective(&self.domains, holding, domain)
    }

    /// Gives `subject` this grant on `range` and keeps every index true; what changes goes to `told`.
    pub(crate) fn set(&mut self, range: Range, subject: Subject, grant: Grant, told: &mut Told) {
        let (domains, groups) = (&self.domains, &self.groups);
        let (by_domain, writes) = (told.by_domain, &mut told.writes);
        let moves = moves(told.by_holding, &mut told.moves);
        let mut gates: Few<(Range, DomainId)> = Few::new();
        let mut held: Few<Range> = Few::new();
        self.regions
            .set(range, subject, grant, moves, |piece, before| {
                let mut affect = |domain: DomainId| {
                    if !domains.lives(domain) {
                        return;
                    }
                    let was = effective(domains, before, domain).access;
                    let now = effective_after(domains, before, domain, subject, grant);
                    if was != now {
                        writes.push((domain, piece, now));
                    }
                };
                match subject {
                    _ if !by_domain => {}
                    Subject::Domain(domain) => affect(domain),
                    Subject::Group(group) => {
                        members(domains, groups, group).into_iter().for_each(affect)
                    }
                }
                let was = before.direct(subject).access;
                if (was == Permission::None) != (grant.access == Permission::None) {
                    held.push(piece);
                }
                if let Permission::SwitchGate { to } = was
                    && was != grant.access
                {
                    let others = before.grants.iter().filter(|(other, _)| *other != subject);
                    if others.into_iter().all(|(_, other)| other.access != was) {
                        gates.push((piece, to));
                    }
                }
            });
        for (piece, to) in gates {
            if let Some(domain) = self.domains.get_mut(to) {
                domain.entries.remove(piece);
            }
        }
        if let Permission::SwitchGate { to } = grant.access
            && let Some(domain) = self.domains.get_mut(to)
        {
            domain.entries.insert(range);
        }
        let set = match subject {
            Subject::Domain(domain) => self.domains.get_mut(domain).map(|found| &mut found.held),
            Subject::Group(group) => self.groups.get_mut(&group).map(|found| &mut found.held),
        };
        if let Some(set) = set {
            for piece in held {
                match grant.access {
                    Permission::None => set.remove(piece),
                    _ => set.insert(piece),
                }
            }
        }
    }

    /// Edits `range` and keeps every index true; what changes goes to `told`.
    pub(crate) fn change(&mut self, range: Range, told: &mut Told, edit: impl FnMut(&mut Holding)) {
        let (domains, groups) = (&mut self.domains, &mut self.groups);
        let (by_domain, writes) = (told.by_domain, &mut told.writes);
        let moves = moves(told.by_holding, &mut told.moves);
        self.regions
            .change(range, moves, edit, |piece, before, after| {
                if by_domain {
                    differences(domains, groups, piece, before, after, writes);
                }
                index(domains, groups, piece, before, after);
            });
    }

    /// Tells how `piece` differs from when it had `before`, a holding that has been kept.
    pub(crate) fn compare(
        &self,
        piece: Range,
        before: crate::holdings::HoldingId,
        told: &mut Told,
    ) {
        let was = self.regions.number(before);
        for (part, id) in self.regions.numbered(piece) {
            if id == before {
                continue;
            }
            let holding = |id| self.regions.holding(id);
            if told.by_domain {
                let (was, is) = (holding(before), holding(id));
                differences(&self.domains, &self.groups, part, was, is, &mut told.writes);
            }
            if told.by_holding {
                told.moves.push(Moved {
                    range: part,
                    before: was,
                    after: self.regions.number(id),
                    subject: None,
                });
            }
        }
    }
}

/// Adds what living domains win or lose on `piece` from `before` to `after`.
fn differences(
    domains: &Domains,
    groups: &Groups,
    piece: Range,
    before: &Holding,
    after: &Holding,
    writes: &mut Writes,
) {
    for domain in affected(domains, groups, before, after) {
        let now = effective(domains, after, domain).access;
        if effective(domains, before, domain).access != now {
            writes.push((domain, piece, now));
        }
    }
}

fn is_member(domains: &Domains, domain: DomainId, group: GroupId) -> bool {
    let joined = |found: &Domain| found.groups.contains(&group);
    group == GroupId::GLOBAL || domains.get(domain).is_some_and(joined)
}

fn members(domains: &Domains, groups: &Groups, group: GroupId) -> Vec<DomainId> {
    match groups.get(&group) {
        Some(_) if group == GroupId::GLOBAL => domains.ids().collect(),
        Some(found) => found.members.iter().copied().collect(),
        None => Vec::new(),
    }
}

fn through_groups(
    domains: &Domains,
    holding: &Holding,
    domain: DomainId,
) -> Option<(GroupId, Permission)> {
    if holding.owner == domain {
        return None;
    }
    let mut best: Option<(GroupId, Permission)> = None;
    for (group, grant) in holding.of_groups() {
        let more = best.is_none_or(|(_, found)| grant.access.level() > found.level());
        if more && is_member(domains, domain, group) {
            best = Some((group, grant.access));
        }
    }
    best
}

fn effective(domains: &Domains, holding: &Holding, domain: DomainId) -> Grant {
    let own = holding.direct(domain.into());
    let Some((_, through)) = through_groups(domains, holding, domain) else {
        return own;
    };
    let export = holding
        .of_groups()
        .filter(|(group, _)| is_member(domains, domain, *group))
        .fold(own.export, |most, (_, grant)| most.max(grant.export));
    Grant::new(stronger(own.access, through), export)
}

/// What `domain` may do once `subject`, the domain itself or a group of it, holds `grant`.
fn effective_after(
    domains: &Domains,
    before: &Holding,
    domain: DomainId,
    subject: Subject,
    grant: Grant,
) -> Permission {
    match subject {
        Subject::Domain(_) => match through_groups(domains, before, domain) {
            Some((_, through)) => stronger(grant.access, through),
            None => grant.access,
        },
        Subject::Group(_) => {
            let groups = before.of_groups();
            let mut after = Holding {
                owner: before.owner,
                grants: groups
                    .map(|(group, grant)| (Subject::Group(group), grant))
                    .collect(),
            };
            after.set(subject, grant);
            let own = before.direct(domain.into()).access;
            match through_groups(domains, &after, domain) {
                Some((_, through)) => stronger(own, through),
                None => own,
            }
        }
    }
}

/// The one with the higher level, and of equals what a domain has itself.
fn stronger(own: Permission, through: Permission) -> Permission {
    match through.level() > own.level() {
        true => through,
        false => own,
    }
}

/// The subjects whose grants differ, with what they have before and after, in order.
fn differing<'a>(
    before: &'a Holding,
    after: &'a Holding,
) -> impl Iterator<Item = (Subject, Grant, Grant)> + 'a {
    let mut before = before.grants.iter().copied().peekable();
    let mut after = after.grants.iter().copied().peekable();
    let merged = core::iter::from_fn(move || {
        let subject = match (before.peek(), after.peek()) {
            (Some((left, _)), Some((right, _))) => *left.min(right),
            (Some((only, _)), None) | (None, Some((only, _))) => *only,
            (None, None) => return None,
        };
        let was = before.next_if(|(found, _)| *found == subject);
        let is = after.next_if(|(found, _)| *found == subject);
        let grant = |entry: Option<(Subject, Grant)>| entry.map_or(Grant::default(), |(_, g)| g);
        Some((subject, grant(was), grant(is)))
    });
    merged.filter(|(_, was, is)| was != is)
}

/// The living domains whose permission may differ between `before` and `after`, in order.
fn affected(
    domains: &Domains,
    groups: &Groups,
    before: &Holding,
    after: &Holding,
) -> Vec<DomainId> {
    let mut found = Vec::new();
    if before.owner != after.owner {
        found.extend([before.owner, after.owner]);
    }
    for (subject, _, _) in differing(before, after) {
        match subject {
            Subject::Domain(domain) => found.push(domain),
            Subject::Group(group) => found.extend(members(domains, groups, group)),
        }
    }
    found.sort_unstable();
    found.dedup();
    found.retain(|domain| domains.lives(*domain));
    found
}

/// Brings the indexes from `before` to `after`.
fn index(
    domains: &mut Domains,
    groups: &mut Groups,
    piece: Range,
    before: &Holding,
    after: &Holding,
) {
    if before.owner != after.owner {
        if let Some(domain) = domains.get_mut(before.owner) {
            domain.owned.remove(piece);
        }
        if let Some(domain) = domains.get_mut(after.owner) {
            domain.owned.insert(piece);
        }
    }
    let is_gate = |grant: Grant| matches!(grant.access, Permission::SwitchGate { .. });
    let mut gates = false;
    for (subject, was, is) in differing(before, after) {
        gates |= is_gate(was) || is_gate(is);
        let held = match subject {
            Subject::Domain(domain) => domains.get_mut(domain).map(|found| &mut found.held),
            Subject::Group(group) => groups.get_mut(&group).map(|found| &mut found.held),
        };
        let Some(held) = held else { continue };
        match (was.access, is.access) {
            (Permission::None, _) => held.insert(piece),
            (_, Permission::None) => held.remove(piece),
            _ => {}
        }
    }
    if gates {
        index_entries(domains, piece, before, WordSet::remove);
        index_entries(domains, piece, after, WordSet::insert);
    }
}

fn index_entries(
    domains: &mut Domains,
    piece: Range,
    holding: &Holding,
    update: impl Fn(&mut WordSet, Range),
) {
    for (_, grant) in &holding.grants {
        if let Permission::SwitchGate { to } = grant.access
            && let Some(domain) = domains.get_mut(to)
        {
            update(&mut domain.entries, piece);
        }
    }
}

/// Hands what one call has changed to the mechanism.
pub(crate) fn carry_out(state: &State, mechanism: &mut impl Mechanism, told: Told) {
    let moved = !told.moves.is_empty();
    for moved in told.moves {
        let holding = state.regions.numbered_holding(moved.after);
        let holders = Holders::new(state, holding, moved.subject);
        mechanism.hold(moved.range, moved.before, moved.after, holders);
    }
    if moved {
        mechanism.settle();
    }
    carry_out_writes(mechanism, told.writes);
}

/// As [`carry_out`], where every word that had a holding has moved to the same other one; to be settled
/// behind the last one.
pub(crate) fn carry_out_all(state: &State, mechanism: &mut impl Mechanism, told: Told) {
    let mut moves = told.moves.into_vec();
    // A number gets its new edition before others become it.
    let key = |moved: &Moved| {
        let joins = moved.before.number != moved.after.number;
        (joins, moved.before, moved.after)
    };
    moves.sort_unstable_by_key(key);
    moves.dedup_by_key(|moved| key(moved));
    for moved in moves {
        let holding = state.regions.numbered_holding(moved.after);
        let holders = Holders::new(state, holding, moved.subject);
        mechanism.succeed(moved.before, moved.after, holders);
    }
    carry_out_writes(mechanism, told.writes);
}

/// In order of domain and address, neighbours with the same permission as one, then a flush for each connected
/// piece.
fn carry_out_writes(mechanism: &mut impl Mechanism, writes: Writes) {
    if let Some((domain, range, permission)) = writes.only() {
        mechanism.write(*domain, *range, *permission);
        mechanism.flush(*domain, *range);
        return;
    }
    if writes.is_empty() {
        return;
    }
    let mut writes = writes.into_vec();
    writes.sort_unstable();
    let joined = join(&writes, |a, b| a == b);
    for (domain, range, permission) in &joined {
        mechanism.write(*domain, *range, *permission);
    }
    for (domain, range, _) in join(&joined, |_, _| true) {
        mechanism.flush(domain, range);
    }
}

/// Joins neighbouring writes to the same domain whose permissions are `alike`.
fn join(
    writes: &[(DomainId, Range, Permission)],
    alike: impl Fn(Permission, Permission) -> bool,
) -> Vec<(DomainId, Range, Permission)> {
    let mut joined: Vec<(DomainId, Range, Permission)> = Vec::new();
    for (domain, range, permission) in writes {
        if let Some((last_domain, last, last_permission)) = joined.last_mut()
            && last_domain == domain
            && last.end() == range.start()
            && alike(*last_permission, *permission)
            && let Some(both) = Range::between(last.start(), range.end())
        {
            *last = both;
            continue;
        }
        joined.push((*domain, *range, *permission));
    }
    joined
}

/// The indexes, made again from the regions.
#[cfg(feature = "check")]
#[derive(Default)]
pub(crate) struct Rebuilt {
    owned: BTreeMap<DomainId, WordSet>,
    held: BTreeMap<Subject, WordSet>,
    entries: BTreeMap<DomainId, WordSet>,
    end: Option<u64>,
    gap: bool,
    bad_grant: bool,
}

#[cfg(feature = "check")]
impl Rebuilt {
    pub(crate) fn add(&mut self, range: Range, holding: &Holding) {
        self.gap |= self.end.is_some_and(|end| end != range.start());
        self.end = Some(range.end());
        self.owned.entry(holding.owner).or_default().insert(range);
        self.bad_grant |= !holding.grants.is_sorted_by(|a, b| a.0 < b.0);
        for (subject, grant) in &holding.grants {
            self.held.entry(*subject).or_default().insert(range);
            self.bad_grant |=
                grant.access == Permission::None || grant.export > grant.access.level();
            if let Permission::SwitchGate { to } = grant.access {
                self.entries.entry(to).or_default().insert(range);
            }
        }
    }

    pub(crate) fn matches(mut self, state: &State) -> Result<(), &'static str> {
        let space = state.regions.space();
        if !state.regions.check(state.prepared.kept()) {
            return Err("the regions and their holdings do not agree");
        }
        if self.gap || self.end != Some(space.end()) {
            return Err("the regions do not cover the space once");
        }
        if self.bad_grant {
            return Err("a region has a grant of nothing, above itself, or twice");
        }
        for (id, domain) in state.domains.iter() {
            let id = &id;
            if self.owned.remove(id).unwrap_or_default() != domain.owned {
                return Err("a domain's owned words are not those of the regions");
            }
            let mut held = self.held.remove(&Subject::Domain(*id)).unwrap_or_default();
            held.insert_all(&domain.prepared);
            if held != domain.may_hold() {
                return Err("a domain's held words are not those of the regions");
            }
            if self.entries.remove(id).unwrap_or_default() != domain.entries {
                return Err("a domain's gates are not those of the regions");
            }
            let parent = domain.parent.map(|parent| state.domains.get(parent));
            if parent
                .is_some_and(|parent| parent.is_none_or(|parent| !parent.children.contains(id)))
            {
                return Err("a domain and its parent do not agree");
            }
            let joined = |group: &GroupId| {
                state
                    .groups
                    .get(group)
                    .is_some_and(|found| found.members.contains(id))
            };
            if !domain.groups.iter().all(joined) {
                return Err("a domain is in a group that does not know it");
            }
        }
        for (id, group) in &state.groups {
            if self.held.remove(&Subject::Group(*id)).unwrap_or_default() != group.held {
                return Err("a group's held words are not those of the regions");
            }
            if !group
                .members
                .iter()
                .all(|member| state.is_member(*member, *id))
            {
                return Err("a group has a member that does not know it");
            }
        }
        if !(self.owned.is_empty() && self.held.is_empty() && self.entries.is_empty()) {
            return Err("a region names a domain or a group that does not exist");
        }
        Ok(())
    }
}
