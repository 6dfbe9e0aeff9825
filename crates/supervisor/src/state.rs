//! What the supervisor knows: regions, the tree of domains, groups, and the indexes that make the cost of
//! a call follow the holders of what it touches.

use crate::region::{Holding, Regions};
use crate::set::WordSet;
use crate::{DomainId, Error, Grant, GroupId, Level, Mechanism, Permission, Range, Subject};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// A living domain.
#[derive(Clone, Debug, Default)]
pub(crate) struct Domain {
    /// `None` for the root alone.
    pub(crate) parent: Option<DomainId>,
    /// In order of number.
    pub(crate) children: BTreeSet<DomainId>,
    /// The groups it has joined; without the global group.
    pub(crate) groups: BTreeSet<GroupId>,
    /// Exactly the words that it owns.
    pub(crate) owned: WordSet,
    /// Exactly the words on which it was granted something itself.
    pub(crate) held: WordSet,
    /// Exactly the words on which somebody has a switch gate into it.
    pub(crate) entries: WordSet,
}

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
pub(crate) type Writes = Vec<(DomainId, Range, Permission)>;

#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) regions: Regions,
    pub(crate) domains: BTreeMap<DomainId, Domain>,
    pub(crate) groups: BTreeMap<GroupId, Group>,
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
        State {
            regions: Regions::new(space, DomainId::SUPERVISOR),
            domains: BTreeMap::from([(DomainId::SUPERVISOR, root)]),
            groups: BTreeMap::from([(GroupId::GLOBAL, global)]),
            next_domain: 1,
            next_group: 1,
        }
    }

    /// The living domain with this number.
    pub(crate) fn domain(&self, domain: DomainId) -> Result<&Domain, Error> {
        self.domains
            .get(&domain)
            .ok_or(if domain.get() < self.next_domain {
                Error::DeletedDomain { domain }
            } else {
                Error::UnknownDomain { domain }
            })
    }

    /// The living group with this number.
    pub(crate) fn group(&self, group: GroupId) -> Result<&Group, Error> {
        self.groups.get(&group).ok_or(Error::UnknownGroup { group })
    }

    /// Whether `ancestor` is above `domain` in the tree.
    pub(crate) fn is_above(&self, ancestor: DomainId, domain: DomainId) -> bool {
        let parent = |id: &DomainId| self.domains.get(id).and_then(|found| found.parent);
        core::iter::successors(parent(&domain), parent).any(|above| above == ancestor)
    }

    pub(crate) fn is_member(&self, domain: DomainId, group: GroupId) -> bool {
        group == GroupId::GLOBAL
            || self
                .domains
                .get(&domain)
                .is_some_and(|found| found.groups.contains(&group))
    }

    /// The members of `group`; all domains for the global one.
    pub(crate) fn members(&self, group: GroupId) -> Vec<DomainId> {
        match self.groups.get(&group) {
            Some(_) if group == GroupId::GLOBAL => self.domains.keys().copied().collect(),
            Some(found) => found.members.iter().copied().collect(),
            None => Vec::new(),
        }
    }

    /// The strongest that groups give `domain`, and the group that does; of equals, the lowest number.
    /// Groups give nothing to the owner, who alone sets what it has.
    pub(crate) fn through_groups(
        &self,
        holding: &Holding,
        domain: DomainId,
    ) -> Option<(GroupId, Permission)> {
        if holding.owner == domain {
            return None;
        }
        let mut best: Option<(GroupId, Permission)> = None;
        for (subject, grant) in &holding.grants {
            let Subject::Group(group) = *subject else {
                continue;
            };
            let more = best.is_none_or(|(_, found)| grant.access.level() > found.level());
            if more && self.is_member(domain, group) {
                best = Some((group, grant.access));
            }
        }
        best
    }

    /// What `domain` has: the stronger of its own grant and what groups give, its own of equals; and how
    /// far it may export, which is what any of these allows.
    pub(crate) fn effective(&self, holding: &Holding, domain: DomainId) -> Grant {
        let own = holding.direct(domain.into());
        match self.through_groups(holding, domain) {
            None => own,
            Some((_, through)) => {
                let access = if through.level() > own.access.level() {
                    through
                } else {
                    own.access
                };
                let export = holding
                    .grants
                    .iter()
                    .filter_map(|(subject, grant)| match subject {
                        Subject::Group(group) if self.is_member(domain, *group) => {
                            Some(grant.export)
                        }
                        _ => None,
                    });
                Grant::new(access, export.fold(own.export, Level::max))
            }
        }
    }

    /// Edits `range` and keeps every index true; what changes for living domains goes to `writes`.
    pub(crate) fn change(
        &mut self,
        range: Range,
        writes: &mut Writes,
        edit: impl FnMut(&mut Holding),
    ) {
        let mut changed: Vec<(Range, Holding, Holding)> = Vec::new();
        self.regions.change(range, edit, |piece, before, after| {
            changed.push((piece, before.clone(), after.clone()));
        });
        for (piece, before, after) in changed {
            for domain in self.affected(&before, &after) {
                let now = self.effective(&after, domain).access;
                if self.effective(&before, domain).access != now {
                    writes.push((domain, piece, now));
                }
            }
            self.index(piece, &before, &after);
        }
    }

    /// The living domains whose permission may differ between `before` and `after`, in order.
    fn affected(&self, before: &Holding, after: &Holding) -> Vec<DomainId> {
        let mut domains = Vec::new();
        if before.owner != after.owner {
            domains.extend([before.owner, after.owner]);
        }
        let subjects = before
            .grants
            .iter()
            .chain(&after.grants)
            .map(|(subject, _)| *subject);
        for subject in subjects.filter(|subject| before.direct(*subject) != after.direct(*subject))
        {
            match subject {
                Subject::Domain(domain) => domains.push(domain),
                Subject::Group(group) => domains.extend(self.members(group)),
            }
        }
        domains.sort_unstable();
        domains.dedup();
        domains.retain(|domain| self.domains.contains_key(domain));
        domains
    }

    /// Brings the indexes from `before` to `after`.
    fn index(&mut self, piece: Range, before: &Holding, after: &Holding) {
        if before.owner != after.owner {
            if let Some(domain) = self.domains.get_mut(&before.owner) {
                domain.owned.remove(piece);
            }
            if let Some(domain) = self.domains.get_mut(&after.owner) {
                domain.owned.insert(piece);
            }
        }
        self.index_entries(piece, before, WordSet::remove);
        self.index_entries(piece, after, WordSet::insert);
        for (subject, _) in &before.grants {
            if after.direct(*subject).access == Permission::None {
                self.index_held(*subject, piece, WordSet::remove);
            }
        }
        for (subject, _) in &after.grants {
            if before.direct(*subject).access == Permission::None {
                self.index_held(*subject, piece, WordSet::insert);
            }
        }
    }

    fn index_held(&mut self, subject: Subject, piece: Range, update: impl Fn(&mut WordSet, Range)) {
        let held = match subject {
            Subject::Domain(domain) => self.domains.get_mut(&domain).map(|found| &mut found.held),
            Subject::Group(group) => self.groups.get_mut(&group).map(|found| &mut found.held),
        };
        if let Some(set) = held {
            update(set, piece)
        }
    }

    fn index_entries(
        &mut self,
        piece: Range,
        holding: &Holding,
        update: impl Fn(&mut WordSet, Range),
    ) {
        for (_, grant) in &holding.grants {
            if let Permission::SwitchGate { to } = grant.access
                && let Some(domain) = self.domains.get_mut(&to)
            {
                update(&mut domain.entries, piece);
            }
        }
    }
}

/// Hands the writes of one call to the mechanism: in order of domain and address, neighbours with the same
/// permission as one, then a flush for each connected piece.
pub(crate) fn carry_out(mechanism: &mut impl Mechanism, mut writes: Writes) {
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
) -> Writes {
    let mut joined: Writes = Vec::new();
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
#[derive(Default)]
pub(crate) struct Rebuilt {
    owned: BTreeMap<DomainId, WordSet>,
    held: BTreeMap<Subject, WordSet>,
    entries: BTreeMap<DomainId, WordSet>,
    end: Option<u64>,
    gap: bool,
    bad_grant: bool,
}

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
        if self.gap || self.end != Some(space.end()) {
            return Err("the regions do not cover the space once");
        }
        if self.bad_grant {
            return Err("a region has a grant of nothing, above itself, or twice");
        }
        for (id, domain) in &state.domains {
            if self.owned.remove(id).unwrap_or_default() != domain.owned {
                return Err("a domain's owned words are not those of the regions");
            }
            if self.held.remove(&Subject::Domain(*id)).unwrap_or_default() != domain.held {
                return Err("a domain's held words are not those of the regions");
            }
            if self.entries.remove(id).unwrap_or_default() != domain.entries {
                return Err("a domain's gates are not those of the regions");
            }
            let parent = domain.parent.map(|parent| state.domains.get(&parent));
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
