//! Functions of domains that other domains are to call.

use crate::domain::Domain;
use crate::error::{BoxedError, Error, Failed};
use crate::export::Export;
use mullion_runtime::{CallError, CallLimits, LinkOptions, Returned};
use std::fmt;
use std::sync::Arc;

/// A function of a domain that another domain is to call in the place of a host
/// function: for [`Imports::link`](crate::Imports::link) and [`Domain::link`]. Made from a
/// [`Function`](crate::Function), by [`Function`](crate::Function)'s `or`, or from an [`Export`].
///
/// Arguments and results pass in registers, and two integers on the stack; nothing is
/// copied, and nobody looks at them. Pointers are the calling domain's, and mean
/// nothing to the called one, except those into pages that both have
/// ([`Shared`](crate::Shared)).
#[derive(Clone)]
pub struct Callee {
    pub(crate) domain: Domain,
    pub(crate) export: usize,
    pub(crate) doubles: bool,
    pub(crate) integers: usize,
    pub(crate) limits: Option<CallLimits>,
    pub(crate) failed: Option<Returned>,
}

impl Callee {
    /// An export, for hosts that learn its type only when they run.
    ///
    /// # Errors
    /// [`Error::NoExport`]: the domain is of another image.
    pub fn new(domain: &Domain, export: &Export) -> Result<Self, Error> {
        Ok(Self {
            export: export.number_in(domain.image())?,
            domain: domain.clone(),
            doubles: true,
            integers: 0,
            limits: None,
            failed: None,
        })
    }

    /// Passes so many integers and pointers on, if more than the six in registers.
    #[must_use]
    pub fn integers(mut self, count: usize) -> Self {
        self.integers = count;
        self
    }

    /// Whether floating-point arguments are passed on: without, a call is a little
    /// faster.
    #[must_use]
    pub fn doubles(mut self, wanted: bool) -> Self {
        self.doubles = wanted;
        self
    }

    /// Limits of each call, beside those of the called domain.
    #[must_use]
    pub fn limited(mut self, limits: CallLimits) -> Self {
        self.limits = Some(limits);
        self
    }

    /// What the calling domain finds if the called one faults, takes no calls, or has
    /// gone. Without it, that ends the call into the calling domain, with
    /// [`Error::Callee`].
    #[must_use]
    pub fn or(mut self, failed: Returned) -> Self {
        self.failed = Some(failed);
        self
    }

    pub(crate) fn options(&self) -> LinkOptions {
        let identity = Arc::downgrade(self.domain.identity());
        let name = self.domain.name().to_owned();
        let default = self.failed;
        LinkOptions {
            doubles: self.doubles,
            stacked: self.integers.saturating_sub(6),
            limits: self.limits,
            failed: Some(Arc::new(move |error: CallError| {
                let error = match identity.upgrade() {
                    Some(identity) => identity.explain(error),
                    None => Error::Unloaded {
                        domain: name.clone(),
                    },
                };
                default.ok_or_else(|| Box::new(Failed(error)) as BoxedError)
            })),
        }
    }
}

impl fmt::Debug for Callee {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let export = &self.domain.image().file().exports()[self.export].name;
        write!(formatter, "Callee({}, {export})", self.domain.name())
    }
}
