//! Grants of shared pages to domains.

use crate::domain::Domain;
use crate::domain_memory::DomainMemory;
use crate::error::Error;
use crate::identity::Identity;
use crate::pointer::Ptr;
use crate::policy::{Question, Wish};
use crate::shared::Shared;
use mullion_runtime::Access as Permission;
use std::ops::Range;

impl Shared {
    /// Gives `domain` these bytes, whole pages, with `permission` from now on, or takes
    /// them away ([`Permission::None`]), while it runs, if need be. `asker` is the domain
    /// on whose behalf that is done; `None`: the host wants it so.
    ///
    /// # Errors
    /// [`Error::NotAllowed`]: the policy; [`Error::Share`]: not whole pages, executable,
    /// or the domain has something else there; [`Error::Unloaded`]. Then nothing has
    /// changed.
    pub fn grant(
        &self,
        asker: Option<&Identity>,
        domain: &Domain,
        bytes: Range<u64>,
        permission: Permission,
    ) -> Result<(), Error> {
        let access = domain.hold()?;
        self.host.may(&Question {
            asker,
            domain: domain.identity(),
            wish: Wish::Pages {
                shared: self,
                bytes: bytes.clone(),
                permission,
            },
        })?;
        let granted = self.raw.grant(access.domain()?, bytes, permission);
        granted.map_err(|source| Error::Share {
            domain: domain.name().to_owned(),
            source,
        })
    }

    /// The byte at `offset` as a domain knows it, whether it has been given it or not.
    ///
    /// # Errors
    /// [`Error::Unloaded`], [`Error::NotOpen`].
    pub fn ptr<T>(&self, within: &impl DomainMemory, offset: u64) -> Result<Ptr<T>, Error> {
        let access = within.access()?;
        let start = access.memory().base() + self.raw.offset();
        Ok(Ptr::from_address(start.wrapping_add(offset)))
    }
}
