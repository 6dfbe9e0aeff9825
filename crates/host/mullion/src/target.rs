//! A domain, or the one that has just called.

use crate::access::Access;
use crate::caller::Caller;
use crate::domain::Domain;
use crate::domain_memory::DomainMemory;
use crate::error::Error;
use crate::image::Image;
use crate::value::sealed::Sealed;

/// A domain from outside or in a host function, for hosts that do not know which
/// before they run.
pub enum Target<'a> {
    /// From outside.
    Domain(&'a Domain),
    /// In a host function that it has called.
    Caller(&'a Caller<'a>),
}

impl Target<'_> {
    /// The image that the domain came from.
    #[must_use]
    pub fn image(&self) -> &Image {
        match self {
            Self::Domain(domain) => domain.image(),
            Self::Caller(caller) => caller.image(),
        }
    }
}

impl Sealed for Target<'_> {}
impl DomainMemory for Target<'_> {
    #[inline]
    fn outside(&self) -> Option<&Domain> {
        match self {
            Self::Domain(domain) => Some(domain),
            Self::Caller(_) => None,
        }
    }
    #[expect(clippy::inline_always, reason = "as `Domain::hold`")]
    #[inline(always)]
    fn access(&self) -> Result<Access<'_>, Error> {
        match self {
            Self::Domain(domain) => domain.access(),
            Self::Caller(caller) => caller.access(),
        }
    }
}
