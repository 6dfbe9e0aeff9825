//! Tables whose entries never move and are never freed, so that a stale number finds a valid entry.

use std::io;
use std::marker::PhantomData;
use std::sync::atomic::AtomicU32;

use crate::system;

/// What a table may hold.
///
/// # Safety
/// All-zero bytes are a valid value, and dropping one does nothing.
pub unsafe trait Zeroed {}

// SAFETY: zero is a number.
unsafe impl Zeroed for AtomicU32 {}

/// `CAPACITY` entries, a power of two, in reserved address space; an entry costs memory once it is used.
#[derive(Debug)]
pub struct Table<T: 'static, const CAPACITY: usize> {
    base: *mut T,
    entries: PhantomData<&'static T>,
}

// SAFETY: a table gives out shared references only, which may cross threads if the entries are `Sync`.
unsafe impl<T: Sync, const CAPACITY: usize> Send for Table<T, CAPACITY> {}
// SAFETY: shared references to entries are all that a shared table gives out, and the entries are `Sync`.
unsafe impl<T: Sync, const CAPACITY: usize> Sync for Table<T, CAPACITY> {}

impl<T: Zeroed, const CAPACITY: usize> Table<T, CAPACITY> {
    pub(crate) fn reserve() -> io::Result<Self> {
        const { assert!(CAPACITY.is_power_of_two()) };
        let align = align_of::<T>().max(system::PAGE);
        Ok(Table {
            base: system::reserve(CAPACITY * size_of::<T>(), align)?.cast(),
            entries: PhantomData,
        })
    }

    /// The entry at `index`, if the table is as long.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&'static T> {
        // SAFETY: within the reservation, which is zeroed, aligned for T and lives for ever.
        (index < CAPACITY).then(|| unsafe { &*self.base.add(index) })
    }

    /// The entry at `index`, counted round and round.
    #[inline]
    pub(crate) fn around(&self, index: usize) -> &'static T {
        // SAFETY: as above; the mask makes the index less than the capacity.
        unsafe { &*self.base.add(index & (CAPACITY - 1)) }
    }
}
