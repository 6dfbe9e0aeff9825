//! The living domains, by number.

use crate::set::WordSet;
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use mullion_terms::domain::{DomainId, GroupId};

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
    /// Exactly the words on which it was granted something itself, but for those of `prepared`, about which
    /// this says nothing.
    pub(crate) held: WordSet,
    /// The words of the grants that are prepared for it: they come and go without `held`.
    pub(crate) prepared: WordSet,
    /// The numbers of these grants.
    pub(crate) handles: Vec<u32>,
    /// Exactly the words on which somebody has a switch gate into it.
    pub(crate) entries: WordSet,
}

impl Domain {
    /// All words on which it may have been granted something itself.
    pub(crate) fn may_hold(&self) -> WordSet {
        let mut words = self.held.clone();
        words.insert_all(&self.prepared);
        words
    }
}

/// One place for each number that was ever given out, so that a look-up is one load. A dead domain leaves
/// eight bytes behind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Domains {
    slots: Vec<Option<Box<Domain>>>,
}

impl Domains {
    pub(crate) fn get(&self, id: DomainId) -> Option<&Domain> {
        self.slots.get(id.get() as usize)?.as_deref()
    }

    pub(crate) fn get_mut(&mut self, id: DomainId) -> Option<&mut Domain> {
        self.slots.get_mut(id.get() as usize)?.as_deref_mut()
    }

    pub(crate) fn lives(&self, id: DomainId) -> bool {
        self.get(id).is_some()
    }

    pub(crate) fn insert(&mut self, id: DomainId, domain: Domain) {
        let at = id.get() as usize;
        if self.slots.len() <= at {
            self.slots.resize_with(at + 1, || None);
        }
        self.slots[at] = Some(Box::new(domain));
    }

    pub(crate) fn remove(&mut self, id: DomainId) -> Option<Domain> {
        let slot = self.slots.get_mut(id.get() as usize)?;
        slot.take().map(|domain| *domain)
    }

    /// In order of number.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (DomainId, &Domain)> {
        let numbered = (0u32..).map(DomainId::new).zip(&self.slots);
        numbered.filter_map(|(id, slot)| Some((id, slot.as_deref()?)))
    }

    /// In order of number.
    pub(crate) fn ids(&self) -> impl Iterator<Item = DomainId> {
        self.iter().map(|(id, _)| id)
    }
}
