//! Prepared grants that any thread may switch, without a lock of their own: for handles of C.

use crate::host::PreparedGrant;
use crate::rights::GrantError;
use crate::world::world;
use std::cell::UnsafeCell;

/// A prepared grant that threads share. It can end while others have it: they are told.
pub struct SharedGrant {
    /// None once it has ended. Referred to only by a thread that holds the lock on the supervisor.
    grant: UnsafeCell<Option<PreparedGrant>>,
}

// SAFETY: `grant` is referred to by one thread at a time, which holds the lock on the supervisor; what it has may be
// sent to another thread.
unsafe impl Sync for SharedGrant where PreparedGrant: Send {}

impl SharedGrant {
    /// From a grant that is this value's alone from now on.
    #[must_use]
    pub fn new(grant: PreparedGrant) -> SharedGrant {
        SharedGrant {
            grant: UnsafeCell::new(Some(grant)),
        }
    }

    /// As [`PreparedGrant::grant`].
    ///
    /// # Errors
    /// It is refused, or has ended.
    #[inline]
    pub fn grant(&self) -> Result<(), GrantError> {
        let mut decider = world().supervisor();
        // SAFETY: this thread has the lock, and gives the reference up before it gives the lock up.
        let grant = unsafe { &mut *self.grant.get() };
        let grant = grant.as_mut().ok_or(GrantError::Ended)?;
        grant.grant_by(&mut decider)
    }

    /// As [`PreparedGrant::revoke`].
    ///
    /// # Errors
    /// It has ended.
    #[inline]
    pub fn revoke(&self) -> Result<(), GrantError> {
        let mut decider = world().supervisor();
        // SAFETY: this thread has the lock, as in `grant`.
        let grant = unsafe { &mut *self.grant.get() };
        let grant = grant.as_mut().ok_or(GrantError::Ended)?;
        grant.revoke_by(&mut decider);
        Ok(())
    }

    /// Nothing is granted by it from now on.
    pub fn end(&self) {
        let mut decider = world().supervisor();
        // SAFETY: this thread has the lock, as in `grant`.
        let place = unsafe { &mut *self.grant.get() };
        if let Some(grant) = place {
            grant.revoke_by(&mut decider);
        }
        // It has nothing in force, so its end takes no lock.
        *place = None;
    }
}
