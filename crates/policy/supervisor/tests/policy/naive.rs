//! The policy once more, slow and obvious: one cell for each subject and word, every word judged alone,
//! every answer computed from scratch. It shares no code with the supervisor but the names of things.

use mullion_supervisor::{
    Call, DomainId, GroupId, Level, Order, Permission, Range, Reply, Rule, Subject,
};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone)]
pub(crate) struct Naive {
    order: Order,
    owner: Vec<DomainId>,
    /// Only what is not `None`.
    cells: BTreeMap<(Subject, usize), (Permission, Level)>,
    /// The parent of every domain that lives.
    parents: BTreeMap<DomainId, Option<DomainId>>,
    /// The creator of every group that lives, and its members.
    groups: BTreeMap<GroupId, (DomainId, BTreeSet<DomainId>)>,
    next: (u32, u32),
}

impl Naive {
    pub(crate) fn new(word_count: usize, order: Order) -> Naive {
        Naive {
            order,
            owner: vec![DomainId::SUPERVISOR; word_count],
            cells: BTreeMap::new(),
            parents: BTreeMap::from([(DomainId::SUPERVISOR, None)]),
            groups: BTreeMap::from([(GroupId::GLOBAL, (DomainId::SUPERVISOR, BTreeSet::new()))]),
            next: (1, 1),
        }
    }

    pub(crate) fn owner(&self, word: usize) -> DomainId {
        self.owner[word]
    }

    pub(crate) fn domains(&self) -> Vec<DomainId> {
        self.parents.keys().copied().collect()
    }

    pub(crate) fn groups(&self) -> Vec<GroupId> {
        self.groups.keys().copied().collect()
    }

    pub(crate) fn parent(&self, domain: DomainId) -> Option<DomainId> {
        self.parents[&domain]
    }

    pub(crate) fn members(&self, group: GroupId) -> Vec<DomainId> {
        if group == GroupId::GLOBAL {
            return self.domains();
        }
        self.groups[&group].1.iter().copied().collect()
    }

    pub(crate) fn cell(&self, subject: impl Into<Subject>, word: usize) -> (Permission, Level) {
        self.cells
            .get(&(subject.into(), word))
            .copied()
            .unwrap_or_default()
    }

    fn put(&mut self, subject: impl Into<Subject>, word: usize, access: Permission, export: Level) {
        let key = (subject.into(), word);
        if access == Permission::None {
            self.cells.remove(&key);
        } else {
            self.cells.insert(key, (access, export.min(access.level())));
        }
    }

    /// What groups give a domain that is not the owner.
    fn group_cells(&self, domain: DomainId, word: usize) -> Vec<(Permission, Level)> {
        let mut given = Vec::new();
        for (group, (_, members)) in &self.groups {
            let member = *group == GroupId::GLOBAL || members.contains(&domain);
            if member && self.owner[word] != domain {
                given.push(self.cell(*group, word));
            }
        }
        given
    }

    /// The strongest of all sources, the first of equals; own before groups.
    pub(crate) fn access(&self, domain: DomainId, word: usize) -> Permission {
        let mut best = self.cell(domain, word).0;
        for (access, _) in self.group_cells(domain, word) {
            if access.level() > best.level() {
                best = access;
            }
        }
        best
    }

    pub(crate) fn export(&self, domain: DomainId, word: usize) -> Level {
        let mut best = self.cell(domain, word).1;
        for (_, export) in self.group_cells(domain, word) {
            best = best.max(export);
        }
        best
    }

    fn ancestors(&self, domain: DomainId) -> Vec<DomainId> {
        let mut found = Vec::new();
        let mut next = self.parents.get(&domain).copied().flatten();
        while let Some(above) = next {
            found.push(above);
            next = self.parents[&above];
        }
        found
    }

    fn exists(&self, target: Subject) -> Result<(), Rule> {
        let lives = match target {
            Subject::Domain(domain) => self.parents.contains_key(&domain),
            Subject::Group(group) => self.groups.contains_key(&group),
        };
        lives.then_some(()).ok_or(Rule::Existence)
    }

    fn span(&self, range: Range) -> Result<Vec<usize>, Rule> {
        if range.end() > self.owner.len() as u64 {
            return Err(Rule::Ranges);
        }
        Ok((range.start() as usize..range.end() as usize).collect())
    }

    fn gate_is_legal(
        &self,
        caller: DomainId,
        words: &[usize],
        asked: Permission,
    ) -> Result<(), Rule> {
        if let Permission::SwitchGate { to } = asked {
            self.exists(to.into())?;
            let has_a_say = to == caller || self.ancestors(to).contains(&caller);
            if !has_a_say && words.iter().any(|word| self.access(caller, *word) != asked) {
                return Err(Rule::Gates);
            }
        }
        Ok(())
    }

    /// Makes the call, or says which rule refuses it, on a copy that replaces this only if nothing does.
    pub(crate) fn call(
        &mut self,
        caller: DomainId,
        previous: Option<DomainId>,
        call: Call,
    ) -> Result<Reply, Rule> {
        let mut after = self.clone();
        let reply = after.attempt(caller, previous, call)?;
        *self = after;
        Ok(reply)
    }

    fn attempt(
        &mut self,
        caller: DomainId,
        previous: Option<DomainId>,
        call: Call,
    ) -> Result<Reply, Rule> {
        self.exists(caller.into())?;
        match call {
            Call::Mprot { range, permission } => self.mprot(caller, range, permission)?,
            Call::MprotExport {
                target,
                range,
                permission,
                export,
            } => self.mprot_export(caller, target, range, permission, export)?,
            Call::PdSubdivide { range, permission } => {
                return self.subdivide(caller, range, permission);
            }
            Call::PdFree { target } => self.pd_free(caller, target)?,
            Call::PermAlloc { range } => self.perm_alloc(caller, previous, range)?,
            Call::PermFree { range } => return self.perm_free(caller, range),
            Call::Chown { range, target } => self.chown(caller, range, target)?,
            Call::GroupCreate => {
                let group = GroupId::new(self.next.1);
                self.next.1 += 1;
                self.groups.insert(group, (caller, BTreeSet::new()));
                return Ok(Reply::Group(group));
            }
            Call::GroupFree { group } => {
                self.exists(group.into())?;
                if group == GroupId::GLOBAL || self.groups[&group].0 != caller {
                    return Err(Rule::Groups);
                }
                self.groups.remove(&group);
                self.cells
                    .retain(|(subject, _), _| *subject != group.into());
            }
            Call::GroupJoin { group } => {
                self.exists(group.into())?;
                let creator = self.groups[&group].0;
                let family = creator == caller || self.ancestors(caller).contains(&creator);
                if group == GroupId::GLOBAL
                    || !family
                    || !self.groups.get_mut(&group).unwrap().1.insert(caller)
                {
                    return Err(Rule::Groups);
                }
            }
            Call::GroupLeave { group } => {
                self.exists(group.into())?;
                if group == GroupId::GLOBAL
                    || !self.groups.get_mut(&group).unwrap().1.remove(&caller)
                {
                    return Err(Rule::Groups);
                }
            }
            Call::StackGrant { .. } => return Err(Rule::Existence),
        }
        Ok(Reply::Done)
    }

    fn mprot(&mut self, caller: DomainId, range: Range, asked: Permission) -> Result<(), Rule> {
        let words = self.span(range)?;
        self.gate_is_legal(caller, &words, asked)?;
        for word in words {
            if self.owner[word] == caller {
                self.put(caller, word, asked, Level::Full);
                continue;
            }
            let (own, export) = self.cell(caller, word);
            if !self.order.at_most(asked, self.access(caller, word)) {
                return Err(Rule::Row(2));
            }
            if asked != self.access(caller, word) {
                if !self.order.at_most(asked, own) {
                    return Err(Rule::Groups);
                }
                self.put(caller, word, asked, export);
                if self.access(caller, word) != asked {
                    return Err(Rule::Groups);
                }
            }
        }
        Ok(())
    }

    fn mprot_export(
        &mut self,
        caller: DomainId,
        target: Subject,
        range: Range,
        asked: Permission,
        export: Level,
    ) -> Result<(), Rule> {
        let words = self.span(range)?;
        if target == caller.into() {
            return Err(Rule::Existence);
        }
        self.exists(target)?;
        self.gate_is_legal(caller, &words, asked)?;
        for word in words {
            if self.owner[word] == caller {
                self.put(target, word, asked, export);
                if let Subject::Domain(domain) = target
                    && self.access(domain, word) != asked
                {
                    return Err(Rule::Groups);
                }
            } else {
                self.give(5, caller, target, word, (asked, export))?;
            }
        }
        Ok(())
    }

    /// Rows 4, 5 and 11 for one word.
    fn give(
        &mut self,
        row: u8,
        caller: DomainId,
        target: Subject,
        word: usize,
        (asked, export): (Permission, Level),
    ) -> Result<(), Rule> {
        if target == self.owner[word].into() {
            return Err(Rule::Row(4));
        }
        let limit = self.export(caller, word);
        let target_has = match target {
            Subject::Domain(domain) => self.access(domain, word),
            Subject::Group(_) => self.cell(target, word).0,
        };
        let fits = self.order.at_most(asked, self.access(caller, word)) && asked.level() <= limit;
        if !fits || !self.order.at_most(target_has, asked) {
            return Err(Rule::Row(row));
        }
        let kept = self.cell(target, word).1;
        self.put(target, word, asked, export.min(limit).max(kept));
        Ok(())
    }

    fn subdivide(
        &mut self,
        caller: DomainId,
        range: Range,
        asked: Permission,
    ) -> Result<Reply, Rule> {
        let words = self.span(range)?;
        self.gate_is_legal(caller, &words, asked)?;
        let child = DomainId::new(self.next.0);
        for word in words {
            if self.owner[word] != caller {
                return Err(Rule::Row(7));
            }
            self.put(caller, word, Permission::None, Level::None);
            if self.cells.keys().any(|(_, shared)| *shared == word) {
                return Err(Rule::Row(6));
            }
            self.owner[word] = child;
            self.put(child, word, asked, Level::Full);
        }
        self.next.0 += 1;
        self.parents.insert(child, Some(caller));
        Ok(Reply::Domain(child))
    }

    fn pd_free(&mut self, caller: DomainId, target: DomainId) -> Result<(), Rule> {
        self.exists(target.into())?;
        let ancestors = self.ancestors(target);
        let Some(parent) = ancestors.first().copied() else {
            return Err(Rule::Tree);
        };
        if caller != target && !ancestors.contains(&caller) {
            return Err(Rule::Tree);
        }
        for word in 0..self.owner.len() {
            if self.owner[word] == target {
                self.owner[word] = parent;
                self.cells.retain(|(_, held), _| *held != word);
            }
        }
        let gate = Permission::SwitchGate { to: target };
        self.cells
            .retain(|(subject, _), (access, _)| *subject != target.into() && *access != gate);
        self.parents.remove(&target);
        for above in self
            .parents
            .values_mut()
            .filter(|above| **above == Some(target))
        {
            *above = Some(parent);
        }
        for (creator, members) in self.groups.values_mut() {
            members.remove(&target);
            if *creator == target {
                *creator = parent;
            }
        }
        Ok(())
    }

    fn perm_alloc(
        &mut self,
        caller: DomainId,
        previous: Option<DomainId>,
        range: Range,
    ) -> Result<(), Rule> {
        let target = previous.ok_or(Rule::Existence)?;
        self.exists(target.into())?;
        for word in self.span(range)? {
            if self.owner[word] == target {
                return Err(Rule::Row(10));
            } else if self.owner[word] == caller {
                self.put(target, word, Permission::ReadWrite, Level::Full);
            } else {
                let asked = (self.access(caller, word), self.export(caller, word));
                self.give(11, caller, target.into(), word, asked)?;
            }
        }
        Ok(())
    }

    fn perm_free(&mut self, caller: DomainId, range: Range) -> Result<Reply, Rule> {
        let words = self.span(range)?;
        if words.iter().any(|word| self.owner[*word] != caller) {
            return Err(Rule::Row(13));
        }
        let before = self.cells.len();
        self.cells
            .retain(|(subject, word), _| !words.contains(word) || *subject == caller.into());
        Ok(match self.cells.len() < before {
            true => Reply::Done,
            false => Reply::NothingToFree,
        })
    }

    fn chown(&mut self, caller: DomainId, range: Range, target: DomainId) -> Result<(), Rule> {
        let words = self.span(range)?;
        if target == caller {
            return Err(Rule::Existence);
        }
        self.exists(target.into())?;
        for word in words {
            self.put(caller, word, Permission::None, Level::None);
            let others = self
                .cells
                .keys()
                .any(|(subject, held)| *held == word && *subject != target.into());
            if self.owner[word] != caller || others {
                return Err(Rule::Ownership);
            }
            self.owner[word] = target;
        }
        Ok(())
    }
}
