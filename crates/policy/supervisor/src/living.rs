//! The living domains, by number.

use crate::DomainId;
use crate::state::Domain;
use alloc::boxed::Box;
use alloc::vec::Vec;

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
