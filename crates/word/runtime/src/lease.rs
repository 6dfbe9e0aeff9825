//! Rights that last as long as something of the host: a pool, a connection, a transaction.

use crate::core::Domain;
use crate::gates::here;
use crate::holder::Holder;
use crate::instance::{self, Instance};
use crate::memory::lock;
use crate::rights::{GrantError, Raised, lower_all, raise, right, words};
use crate::world::world;
use std::sync::Mutex;

/// Who can be granted something.
#[derive(Clone, Copy, Debug)]
pub enum Grantee {
    /// A module, and so all of its instances.
    Module(Domain),
    /// One instance alone.
    Instance(Instance),
}

impl From<Domain> for Grantee {
    fn from(domain: Domain) -> Grantee {
        Grantee::Module(domain)
    }
}

impl From<&Domain> for Grantee {
    fn from(domain: &Domain) -> Grantee {
        Grantee::Module(*domain)
    }
}

impl From<Instance> for Grantee {
    fn from(instance: Instance) -> Grantee {
        Grantee::Instance(instance)
    }
}

impl From<&Instance> for Grantee {
    fn from(instance: &Instance) -> Grantee {
        Grantee::Instance(*instance)
    }
}

impl Grantee {
    pub(crate) fn with<T>(
        self,
        grant: impl FnOnce(&'static Holder) -> Result<T, GrantError>,
    ) -> Result<T, GrantError> {
        match self {
            Grantee::Module(domain) => grant(&domain.core.holder),
            Grantee::Instance(instance) => instance.with(|holder, _| grant(holder)),
        }
    }
}

/// Who has called the function of the host that runs, on the calling thread: the instance for which the module runs, or
/// the module.
#[must_use]
pub fn calling() -> Option<Grantee> {
    let module = caller()?;
    Some(instance::calling().map_or(module.into(), Grantee::Instance))
}

/// The module that has called the function of the host that runs, on the calling thread.
#[must_use]
pub fn caller() -> Option<Domain> {
    // SAFETY: `here` is the thread's own. While the host runs, the newest frame is of the module that has called it.
    unsafe {
        let here = here();
        let is_host = (*here).domain.is_null();
        let frame = (*here).frame.as_ref().filter(|_| is_host)?;
        let core = (*(*frame.seat).inner).core();
        Some(Domain { core })
    }
}

/// Grants that end together: when this is dropped, or by [`end`](Self::end). They may be to several modules, may overlap.
/// They may be made at any time, also by a function of the host that a module calls.
///
/// They count as those of [`Host::grant_for`](crate::Host::grant_for): a module has the most of what all of them give.
#[derive(Default)]
pub struct Lease {
    raised: Mutex<Vec<Raised>>,
}

impl Lease {
    /// One without grants.
    #[must_use]
    pub fn new() -> Lease {
        Lease::default()
    }

    /// Lets `to` read, or read and write, memory of the host until the lease ends.
    ///
    /// # Safety
    /// The host bears what it writes there.
    pub unsafe fn grant(
        &self,
        to: impl Into<Grantee>,
        address: usize,
        bytes: usize,
        write: bool,
    ) -> Result<(), GrantError> {
        let range = words(address as u64, bytes as u64)?;
        to.into().with(|holder| {
            let mut supervisor = world().supervisor();
            let raised = raise(&mut supervisor, holder, range, right(write))?;
            lock(&self.raised).push(raised);
            Ok(())
        })
    }

    /// How many grants are in it.
    #[must_use]
    pub fn count(&self) -> usize {
        lock(&self.raised).len()
    }

    /// Takes all of them back. When it returns, no access comes that was checked before, on any thread: it waits for
    /// threads once, however many grants there were. The lease can be used again.
    pub fn end(&self) {
        let raised = std::mem::take(&mut *lock(&self.raised));
        if !raised.is_empty() {
            lower_all(&mut world().supervisor(), raised.into_iter());
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if !lock(&self.raised).is_empty() {
            self.end();
        }
    }
}
