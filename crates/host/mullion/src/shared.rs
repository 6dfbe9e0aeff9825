//! Pages that several domains and the host have, each with a protection of its own.

use crate::error::Error;
use crate::host::Host;
use mullion_runtime::PAGE;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Memory of the host that domains are given pages of: for reading and writing here,
/// for reading there, not at all elsewhere. Nothing is copied: they are the same pages.
///
/// They lie at the same offset of every window. So a pointer into them works in
/// every domain that has the page, whoever made it; [`Shared::ptr`] makes one. A domain
/// that is restarted has none of them, as when it was loaded: grant them again.
///
/// Cheap to clone. The memory lives as long as a handle, or a domain that has pages
/// of it.
#[derive(Clone)]
pub struct Shared {
    pub(crate) raw: mullion_runtime::SharedPages,
    name: Arc<str>,
    pub(crate) host: Host,
}

/// Where the host has memory that it has a handle of, for the records.
static NAMED: Mutex<Vec<(Weak<str>, Range<u64>)>> = Mutex::new(Vec::new());

/// Names and the host's addresses of what there is.
pub(crate) fn named() -> Vec<(Arc<str>, Range<u64>)> {
    let named = NAMED.lock().unwrap_or_else(PoisonError::into_inner);
    let alive = named
        .iter()
        .filter_map(|(name, place)| Some((name.upgrade()?, place.clone())));
    alive.collect()
}

impl Shared {
    /// Bytes in a page: what is granted is whole pages.
    pub const PAGE: u64 = PAGE;

    pub(crate) fn new(host: &Host, name: &str, length: u64) -> Result<Self, Error> {
        let shared = Self {
            raw: mullion_runtime::SharedPages::new(length)?,
            name: name.into(),
            host: host.clone(),
        };
        let start = shared.bytes().as_ptr().addr() as u64;
        let mut named = NAMED.lock().unwrap_or_else(PoisonError::into_inner);
        named.retain(|(name, _)| name.strong_count() > 0);
        named.push((Arc::downgrade(&shared.name), start..start + shared.len()));
        Ok(shared)
    }

    /// Its name, for the policy.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many bytes it has: whole pages.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.raw.length()
    }

    /// Never: it has a page at least.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The bytes themselves. Domains that may write change them at any time: what
    /// matters is read once, and the copy checked.
    #[must_use]
    pub fn bytes(&self) -> &[AtomicU8] {
        self.raw.bytes()
    }

    /// Copies bytes from `offset` on to `to`.
    ///
    /// # Errors
    /// [`Error::Index`]: there are not so many.
    pub fn read(&self, offset: u64, to: &mut [u8]) -> Result<(), Error> {
        let part = self.part(offset, to.len())?;
        for (to, from) in to.iter_mut().zip(part) {
            *to = from.load(Ordering::Relaxed);
        }
        Ok(())
    }

    /// Copies `from` to the bytes from `offset` on.
    ///
    /// # Errors
    /// As [`Shared::read`].
    pub fn write(&self, offset: u64, from: &[u8]) -> Result<(), Error> {
        for (to, from) in self.part(offset, from.len())?.iter().zip(from) {
            to.store(*from, Ordering::Relaxed);
        }
        Ok(())
    }

    fn part(&self, offset: u64, length: usize) -> Result<&[AtomicU8], Error> {
        let end = offset.saturating_add(length as u64);
        let part = self.bytes().get(offset as usize..end as usize);
        part.ok_or_else(|| Error::Index {
            index: end.saturating_sub(1),
            length: self.len(),
        })
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Shared({}, {} bytes)", self.name, self.len())
    }
}
