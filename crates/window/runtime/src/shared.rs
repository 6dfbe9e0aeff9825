//! Shared pages: the multi-protection page table.
//!
//! ```text
//! offset        host     window 1   window 2   window 3
//! 0x9000_0000   rw       rw         r          -
//! 0x9000_1000   rw       r          rw         -
//! 0x9000_2000   rw       -          r          r
//! ```
//! The pages of an object lie at the same offset of every window, in each with a protection of its
//! own, and in the host. So an offset means the same to all. Code in a domain uses the low 32 bits
//! of an address only. So a pointer into the object works in every domain that has the page,
//! whoever made it.

use crate::access::{Access, PAGE};
use crate::domain::WindowDomain;
use crate::object::Object;
use mullion_report::error::Error;
use mullion_report::refused::ShareError;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU8;

/// Memory that several domains and the host have. It lives as long as a handle or
/// a domain that has been given pages of it.
#[derive(Clone)]
pub struct SharedPages {
    object: Arc<Object>,
}

impl SharedPages {
    /// Zeroed pages, at least `length` bytes, that the host alone has at first.
    ///
    /// # Errors
    /// [`Error::Range`]: no room among the offsets; the kernel's.
    pub fn new(length: u64) -> Result<Self, Error> {
        let object = Object::of(length.max(1).next_multiple_of(PAGE))?;
        Ok(Self {
            object: Arc::new(object),
        })
    }

    /// Bytes: whole pages.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.object.length()
    }

    /// Where the object begins in every window.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.object.place().start
    }

    /// The host's view. Domains that may write change it at any time.
    #[must_use]
    pub fn bytes(&self) -> &[AtomicU8] {
        self.object.bytes()
    }

    /// Gives `target` these bytes of the object, whole pages, with `access` from
    /// now on, or takes them away ([`Access::None`]): while it runs, if need be. Who may
    /// have what is the caller's to decide: `crates/host/mullion` asks the host's policy.
    ///
    /// # Errors
    /// As [`ShareError`] says; then nothing has changed.
    pub fn grant(
        &self,
        target: &WindowDomain,
        bytes: Range<u64>,
        access: Access,
    ) -> Result<(), ShareError> {
        let whole = bytes.start.is_multiple_of(PAGE) && bytes.end.is_multiple_of(PAGE);
        if !whole
            || bytes.start >= bytes.end
            || bytes.end > self.length()
            || access == Access::ReadExecute
        {
            return Err(ShareError::Range);
        }
        target.memory().share(&self.object, bytes, access)?;
        Ok(())
    }
}
