//! One domain calls another one, without the host in between.

use crate::domain::Domain;
use crate::error::Error;
use crate::function::{Export, Function, Signature};
use crate::identity::{self, Identity};
use crate::import::BoxedError;
use crate::policy::{Question, Wish};
use mullion_runtime::{CallError, CallLimits, LinkOptions, Returned};
use std::fmt;
use std::sync::Arc;

/// A function of a domain that another domain is to call in the place of a host
/// function: for [`Imports::link`](crate::Imports::link) and [`Domain::link`]. Made from a
/// [`Function`], by [`Function`]'s `or`, or from an [`Export`].
///
/// Arguments and results pass in registers, and two integers on the stack; nothing is
/// copied, and nobody looks at them. Pointers are the calling domain's, and mean
/// nothing to the called one, except those into pages that both have
/// ([`Shared`](crate::Shared)).
#[derive(Clone)]
pub struct Callee {
    pub(crate) domain: Domain,
    pub(crate) export: usize,
    doubles: bool,
    integers: usize,
    limits: Option<CallLimits>,
    failed: Option<Returned>,
}

/// A link of a domain, as [`Domain::links`] lists them: all of them are the graph of
/// who calls whom.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Link {
    /// The import that it stands behind.
    pub import: String,
    /// Who is called; `None` if that domain has gone.
    pub callee: Option<Arc<Identity>>,
    /// The export that is called; `None` as above.
    pub export: Option<String>,
    /// Calls so far; on several threads at once some may not be counted.
    pub calls: u64,
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

    fn options(&self) -> LinkOptions {
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

impl<F: Signature> From<&Function<F>> for Callee {
    fn from(function: &Function<F>) -> Self {
        Self {
            domain: function.domain().clone(),
            export: function.number(),
            doubles: F::VECTORS > 0,
            integers: F::INTEGERS,
            limits: function.limits(),
            failed: None,
        }
    }
}

/// What a link hands to the invocation that it ends.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) struct Failed(pub(crate) Error);

/// Puts `callee` behind an import of `caller`, if the policy of its host lets `asker`.
pub(crate) fn make(
    asker: Option<&Identity>,
    caller: (&Identity, &mullion_runtime::Domain),
    import: &str,
    callee: &Callee,
) -> Result<(), Error> {
    let (identity, domain) = caller;
    let index = identity.image().import(import)?;
    let called = callee.domain.identity();
    let export = &called.image().file().exports()[callee.export].name;
    called.image().host().may(&Question {
        asker,
        domain: identity,
        wish: Wish::Call {
            callee: called,
            export,
        },
    })?;
    let access = callee.domain.hold()?;
    let entry = access.export(callee.export)?;
    let made = domain.link(index, access.domain()?, entry, callee.options());
    made.map_err(|error| match error {
        mullion_runtime::Error::Linked => Error::Linked {
            domain: identity.name().to_owned(),
            import: import.to_owned(),
        },
        other => Error::Runtime(other),
    })?;
    tracing::debug!(
        domain = identity.name(),
        callee = called.name(),
        export,
        "linked"
    );
    Ok(())
}

/// The links of a domain, with names.
pub(crate) fn list(identity: &Identity, domain: &mullion_runtime::Domain) -> Vec<Link> {
    let imports = identity.image().file().imports();
    let links = domain.links().into_iter().map(|link| {
        let callee = identity::find(link.callee);
        // Windows are 4 GiB long, and begin at multiples of that.
        let offset = link.address & 0xffff_ffff;
        let exports = callee
            .iter()
            .flat_map(|callee| callee.image().file().exports());
        let mut exports = exports.filter(|export| export.offset == offset);
        Link {
            import: imports[link.import].clone(),
            export: exports.next().map(|export| export.name.clone()),
            callee,
            calls: link.calls,
        }
    });
    links.collect()
}

impl fmt::Debug for Callee {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let export = &self.domain.image().file().exports()[self.export].name;
        write!(formatter, "Callee({}, {export})", self.domain.name())
    }
}
