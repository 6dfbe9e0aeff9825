//! A value of which it is known whether it may have changed.

/// A value that counts how often somebody could change it. There is no other way to change it than [`Counted::change`].
#[derive(Debug)]
pub(crate) struct Counted<T> {
    value: T,
    changes: u64,
}

impl<T> Counted<T> {
    pub(crate) fn new(value: T) -> Counted<T> {
        Counted { value, changes: 0 }
    }

    pub(crate) fn change(&mut self) -> &mut T {
        self.changes += 1;
        &mut self.value
    }

    /// While this is the same, so is the value.
    #[inline]
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }
}

impl<T> std::ops::Deref for Counted<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.value
    }
}
