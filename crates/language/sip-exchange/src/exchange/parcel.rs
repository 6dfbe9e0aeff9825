//! Values on their way between threads without a channel: to a process that is about to start.

use std::fmt;
use std::mem::ManuallyDrop;

use crate::inner::CORE;
use mullion_sip_core::Refused;
use mullion_sip_core::owner::{self, Owner};

use super::region::Region;
use super::sendable::Handles;
use super::walk::{Adopt, Release};
use super::{accounts, blocks, worker};
use crate::channel::admit;

/// A value that is in flight: packed by one owner, opened by another, maybe on another OS thread.
///
/// Unlike a message it may hold endpoints in any state, as a process gets them when it starts. A parcel that is
/// dropped closes and frees what is in it. While packed, its blocks count for nobody.
pub struct Parcel<T: Handles>(ManuallyDrop<T>);

// SAFETY: what is packed is on no list and belongs to no thread; opening puts it on the opener's.
unsafe impl<T: Handles> Send for Parcel<T> {}

impl<T: Handles> Parcel<T> {
    /// Gives up a value.
    // For hosts alone: what is packed counts for nobody, so a process would hide blocks there from its limit.
    #[cfg(not(feature = "separate"))]
    pub fn pack(value: T) -> Parcel<T> {
        Parcel::packed(value).0
    }

    /// Takes the value, for the calling thread's owner.
    #[cfg(not(feature = "separate"))]
    pub fn open(self) -> T {
        self.open_for(owner::current())
    }

    /// Gives up a value, and says how much it has counted.
    pub(crate) fn packed(value: T) -> (Parcel<T>, u64) {
        let mut bytes = 0;
        if T::HOLDS {
            let _critical = CORE.critical_moving::<T>();
            let mut release = Release::new(Region::get());
            value.visit(&mut release);
            bytes = release.finish();
            accounts::of(owner::current()).subtract(bytes);
        }
        (Parcel(ManuallyDrop::new(value)), bytes)
    }

    /// Asks whether an owner may have the ends of channels in the value.
    ///
    /// # Errors
    /// It may not have one of them.
    #[inline]
    pub(crate) fn ask(&self, owner: Owner) -> Result<(), Refused> {
        if T::HOLDS && CORE.is_decided() {
            admit::ask(&*self.0, owner)?;
        }
        Ok(())
    }

    /// A value that is in flight already.
    pub(super) fn arrived(value: T) -> Parcel<T> {
        Parcel(ManuallyDrop::new(value))
    }

    /// Takes the value for an owner of this worker that does not run yet.
    pub(crate) fn open_for(mut self, owner: Owner) -> T {
        self.adopt(owner);
        // SAFETY: taken once; `forget` keeps the parcel from dropping it again.
        let value = unsafe { ManuallyDrop::take(&mut self.0) };
        std::mem::forget(self);
        value
    }

    fn adopt(&mut self, owner: Owner) {
        if T::HOLDS {
            let _critical = CORE.critical_moving::<T>();
            let mut adopt = Adopt::new(accounts::of(owner), worker::here());
            self.0.visit(&mut adopt);
            adopt.finish();
        }
    }
}

impl<T: Handles> Drop for Parcel<T> {
    fn drop(&mut self) {
        if T::HOLDS {
            blocks::discard(|visitor| self.0.visit(visitor));
        }
    }
}

impl<T: Handles> fmt::Debug for Parcel<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Parcel")
    }
}
