//! The address space as one map: each word has an owner and the grants on it.

use crate::{DomainId, GroupId, Level, Permission, Range};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
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

/// What a subject holds on a word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Grant {
    /// What it may do.
    pub access: Permission,
    /// Up to which level it may grant to others; never above the level of `access`. An owner may grant
    /// everything, whatever stands here.
    pub export: Level,
}

impl Grant {
    /// `access`, exportable up to `export` or to its own level, whichever is less.
    pub fn new(access: Permission, export: Level) -> Grant {
        Grant {
            access,
            export: export.min(access.level()),
        }
    }
}

/// What is the same for all words of a region.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Holding {
    /// The one owner.
    pub owner: DomainId,
    /// What was granted, in order of subject, each subject at most once, never [`Permission::None`].
    pub grants: Vec<(Subject, Grant)>,
}

impl Holding {
    /// What `subject` was granted itself.
    pub fn direct(&self, subject: Subject) -> Grant {
        match self.grants.binary_search_by_key(&subject, |(s, _)| *s) {
            Ok(index) => self.grants[index].1,
            Err(_) => Grant::default(),
        }
    }

    /// Replaces what `subject` holds.
    pub(crate) fn set(&mut self, subject: Subject, grant: Grant) {
        let found = self.grants.binary_search_by_key(&subject, |(s, _)| *s);
        match (found, grant.access) {
            (Ok(index), Permission::None) => {
                self.grants.remove(index);
            }
            (Ok(index), _) => self.grants[index].1 = grant,
            (Err(_), Permission::None) => {}
            (Err(index), _) => self.grants.insert(index, (subject, grant)),
        }
    }
}

/// The whole space, cut where something changes. Every word is in exactly one region by construction:
/// a region ends where the next begins. Neighbours that are alike are one region.
#[derive(Clone, Debug)]
pub(crate) struct Regions {
    space: Range,
    by_start: BTreeMap<u64, Holding>,
}

impl Regions {
    pub(crate) fn new(space: Range, owner: DomainId) -> Regions {
        let all = Holding {
            owner,
            grants: Vec::new(),
        };
        Regions {
            space,
            by_start: BTreeMap::from([(space.start(), all)]),
        }
    }

    pub(crate) fn space(&self) -> Range {
        self.space
    }

    pub(crate) fn count(&self) -> usize {
        self.by_start.len()
    }

    /// The region around `word`, which lies in the space.
    pub(crate) fn at(&self, word: u64) -> Option<&Holding> {
        let inside = self.space.holds(word);
        self.by_start
            .range(..=word)
            .next_back()
            .filter(|_| inside)
            .map(|(_, holding)| holding)
    }

    /// The pieces of `range`, each of one region, in order.
    pub(crate) fn pieces(&self, range: Range) -> impl Iterator<Item = (Range, &Holding)> {
        let first = self.by_start.range(..=range.start()).next_back();
        let rest = self.by_start.range(range.start() + 1..range.end());
        let mut starts = first.into_iter().chain(rest).peekable();
        core::iter::from_fn(move || {
            let (start, holding) = starts.next()?;
            let end = starts.peek().map_or(range.end(), |(next, _)| **next);
            Some((Range::between(*start, end)?.overlap(range)?, holding))
        })
    }

    /// Edits every piece of `range`, tells `note` what became of those that changed, and joins neighbours
    /// that have become alike.
    pub(crate) fn change(
        &mut self,
        range: Range,
        mut edit: impl FnMut(&mut Holding),
        mut note: impl FnMut(Range, &Holding, &Holding),
    ) {
        self.split(range.start());
        self.split(range.end());
        let mut starts: Vec<u64> = Vec::new();
        let mut pieces = self
            .by_start
            .range_mut(range.start()..range.end())
            .peekable();
        while let Some((start, holding)) = pieces.next() {
            let end = pieces.peek().map_or(range.end(), |(next, _)| **next);
            starts.push(*start);
            let before = holding.clone();
            edit(holding);
            if let Some(piece) = Range::between(*start, end).filter(|_| before != *holding) {
                note(piece, &before, holding);
            }
        }
        starts.push(range.end());
        for start in starts {
            self.join(start);
        }
    }

    /// Makes `word` the start of a region.
    fn split(&mut self, word: u64) {
        if !self.space.holds(word) {
            return;
        }
        if let Some((start, holding)) = self.by_start.range(..=word).next_back()
            && *start != word
        {
            let copy = holding.clone();
            self.by_start.insert(word, copy);
        }
    }

    /// Joins the region that starts at `word` to the one before it when they are alike.
    fn join(&mut self, word: u64) {
        let before = self.by_start.range(..word).next_back();
        if let (Some((_, before)), Some(here)) = (before, self.by_start.get(&word))
            && before == here
        {
            self.by_start.remove(&word);
        }
    }
}
