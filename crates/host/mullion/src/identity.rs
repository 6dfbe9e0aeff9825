//! Who a domain is: what stays the same about it, whatever becomes of it.

use crate::error::Error;
use crate::image::Image;
use mullion_runtime::{BadAddress, DomainNumber, Meter, WindowDomain};
use mullion_supervisor::DomainId;
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

/// Who a domain is: in questions to a [`Policy`](crate::Policy), and as the answer to
/// who has called ([`Caller::called_by`](crate::Caller::called_by)). It stays over
/// restarts.
pub struct Identity {
    name: String,
    image: Image,
    user: Option<Box<dyn Any + Send + Sync>>,
    place: OnceLock<Place>,
    meter: OnceLock<Arc<Meter>>,
}

/// Where the run time has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    number: DomainNumber,
    /// In the supervisor's records.
    pub(crate) record: DomainId,
    /// Where its window begins.
    pub(crate) base: u64,
}

impl Place {
    pub(crate) fn number(self) -> DomainNumber {
        self.number
    }
}

/// Those of the domains that there are, by the run time's number.
static ALIVE: Mutex<BTreeMap<DomainNumber, Weak<Identity>>> = Mutex::new(BTreeMap::new());

impl Identity {
    pub(crate) fn new(
        name: String,
        image: Image,
        user: Option<Box<dyn Any + Send + Sync>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            name,
            image,
            user,
            place: OnceLock::new(),
            meter: OnceLock::new(),
        })
    }

    /// The name of the domain.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The image that it came from.
    #[must_use]
    pub fn image(&self) -> &Image {
        &self.image
    }

    /// What the host attached to it by
    /// [`DomainBuilder::user`](crate::DomainBuilder::user), if it is a `T`.
    #[must_use]
    pub fn user<T: Any>(&self) -> Option<&T> {
        self.user.as_deref()?.downcast_ref()
    }

    /// From now on it is found by that domain's number.
    pub(crate) fn found_as(self: &Arc<Self>, domain: &WindowDomain) {
        let number = domain.number();
        self.meter.get_or_init(|| domain.meter().clone());
        self.place.get_or_init(|| Place {
            number,
            record: domain.recorded_as(),
            base: domain.memory().base(),
        });
        let mut alive = ALIVE.lock().unwrap_or_else(PoisonError::into_inner);
        alive.insert(number, Arc::downgrade(self));
    }

    /// The domain has no such memory.
    #[cold]
    #[inline(never)]
    pub(crate) fn has_no_memory(&self, bad: BadAddress) -> Error {
        Error::Memory {
            domain: self.name.clone(),
            address: bad.address.0,
            length: bad.length,
        }
    }

    /// The domain was restarted, and what is used was of the life before.
    #[cold]
    #[inline(never)]
    pub(crate) fn is_stale(&self) -> Error {
        Error::Stale {
            domain: self.name.clone(),
        }
    }

    /// What counts for it; `None` as long as it is being made.
    pub(crate) fn meter(&self) -> Option<&Meter> {
        self.meter.get().map(|meter| &**meter)
    }

    /// `None` as long as it is being made.
    pub(crate) fn place(&self) -> Option<Place> {
        self.place.get().copied()
    }
}

/// Whose number that is, if that domain is still there.
pub(crate) fn find(number: DomainNumber) -> Option<Arc<Identity>> {
    let alive = ALIVE.lock().unwrap_or_else(PoisonError::into_inner);
    alive.get(&number)?.upgrade()
}

/// All that somebody still speaks of, in the order in which they were made.
pub(crate) fn alive() -> Vec<Arc<Identity>> {
    let alive = ALIVE.lock().unwrap_or_else(PoisonError::into_inner);
    alive.values().filter_map(Weak::upgrade).collect()
}

impl Drop for Identity {
    fn drop(&mut self) {
        if let Some(place) = self.place.get() {
            let mut alive = ALIVE.lock().unwrap_or_else(PoisonError::into_inner);
            alive.remove(&place.number);
        }
    }
}

/// Whether it is the same domain, not an equal one.
impl PartialEq for Identity {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for Identity {}

impl fmt::Debug for Identity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Identity({})", self.name)
    }
}
