//! Lists that are nearly always of one entry.

use alloc::vec::Vec;

/// A list whose first entry needs no allocation.
#[derive(Clone, Debug)]
pub(crate) struct Few<T> {
    first: Option<T>,
    /// Empty while `first` is.
    rest: Vec<T>,
}

impl<T> Few<T> {
    pub(crate) const fn new() -> Few<T> {
        Few {
            first: None,
            rest: Vec::new(),
        }
    }

    /// A list of one.
    pub(crate) const fn of(entry: T) -> Few<T> {
        Few {
            first: Some(entry),
            rest: Vec::new(),
        }
    }

    pub(crate) fn push(&mut self, entry: T) {
        match self.first {
            None => self.first = Some(entry),
            Some(_) => self.rest.push(entry),
        }
    }

    /// The only entry, if there is exactly one.
    pub(crate) fn only(&self) -> Option<&T> {
        self.first.as_ref().filter(|_| self.rest.is_empty())
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        u64::from(self.first.is_some()) + self.rest.len() as u64
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// All entries as a list that can be sorted.
    pub(crate) fn into_vec(self) -> Vec<T> {
        self.into_iter().collect()
    }
}

impl<T> IntoIterator for Few<T> {
    type Item = T;
    type IntoIter = core::iter::Chain<core::option::IntoIter<T>, alloc::vec::IntoIter<T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.first.into_iter().chain(self.rest)
    }
}

impl<T> FromIterator<T> for Few<T> {
    fn from_iter<I: IntoIterator<Item = T>>(entries: I) -> Few<T> {
        let mut entries = entries.into_iter();
        Few {
            first: entries.next(),
            rest: entries.collect(),
        }
    }
}
