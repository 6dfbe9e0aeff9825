//! What a module has ever done that makes its calls need a closer look from then on. Most modules have done nothing of it, so a
//! call of theirs looks at one byte.

use std::sync::atomic::{AtomicU8, Ordering};

/// Bits that are set and never taken back. The thread that does something sets its bit before the call goes on, so that very
/// call's return sees it.
#[derive(Default)]
pub(crate) struct Deeds(AtomicU8);

/// A filter of the module was stopped.
pub(crate) const STOPPED: u8 = 1;
/// It has written a field of a connection or a filter.
pub(crate) const WROTE: u8 = 2;
/// It was granted a word that the core follows (`swaps.rs`).
pub(crate) const SWAPPED: u8 = 4;
/// It has taken something out of a list (`pooled.rs`).
pub(crate) const BORROWED: u8 = 8;
/// It has locked something (`locks.rs`).
pub(crate) const LOCKED: u8 = 32;
/// It may use memory that processes share (`segments.rs`). A call as such needs no look for that.
pub(crate) const SEGMENTS: u8 = 64;
/// mod_proxy has given it a connection to a backend.
pub(crate) const BACKENDS: u8 = 16;

/// Deeds for which each call of the module is looked at, before its code runs or behind it. Locks are given back when a call was ended, and
/// memory that processes share is looked at where it is used.
pub(crate) const CLOSELY: u8 = STOPPED | SWAPPED | BORROWED | BACKENDS;

impl Deeds {
    /// Whether it has done one of these.
    #[inline(always)]
    pub(crate) fn has(&self, any: u8) -> bool {
        self.0.load(Ordering::Relaxed) & any != 0
    }

    /// Whether it has done nothing of all this that calls are looked at for.
    #[inline(always)]
    pub(crate) fn none(&self) -> bool {
        self.0.load(Ordering::Relaxed) & !SEGMENTS == 0
    }

    pub(crate) fn add(&self, deed: u8) {
        self.0.fetch_or(deed, Ordering::Relaxed);
    }
}
