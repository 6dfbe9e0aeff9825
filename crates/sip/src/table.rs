//! Tables whose entries never move and are never freed, so that a stale number finds a valid entry.

use std::io;
use std::marker::PhantomData;

use crate::system;

/// # Safety
/// All-zero bytes are a valid value, and dropping one does nothing.
pub(crate) unsafe trait Zeroed {}

/// `capacity` entries in reserved address space; an entry costs memory once it is used.
#[derive(Debug)]
pub(crate) struct Table<T: 'static> {
    base: *mut T,
    capacity: usize,
    entries: PhantomData<&'static T>,
}

// SAFETY: a table gives out shared references only, which may cross threads if the entries are `Sync`.
unsafe impl<T: Sync> Send for Table<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Table<T> {}

impl<T: Zeroed> Table<T> {
    /// # Panics
    /// `capacity` is no power of two.
    pub(crate) fn reserve(capacity: usize) -> io::Result<Table<T>> {
        assert!(capacity.is_power_of_two());
        let align = align_of::<T>().max(system::PAGE);
        Ok(Table {
            base: system::reserve(capacity * size_of::<T>(), align)?.cast(),
            capacity,
            entries: PhantomData,
        })
    }

    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<&'static T> {
        // SAFETY: within the reservation, which is zeroed, aligned for T and lives for ever.
        (index < self.capacity).then(|| unsafe { &*self.base.add(index) })
    }

    /// The entry at `index`, counted round and round. `reserve` was asked for a power of two.
    #[inline]
    pub(crate) fn around(&self, index: usize) -> &'static T {
        // SAFETY: as above; the mask makes the index less than the capacity.
        unsafe { &*self.base.add(index & (self.capacity - 1)) }
    }
}
