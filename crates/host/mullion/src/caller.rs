//! A domain that has called a host function.

use crate::access::Access;
use crate::callback::Callback;
use crate::context::Context;
use crate::domain_memory::DomainMemory;
use crate::error::Error;
use crate::held::{self, Held, Owner};
use crate::identity::{self, Identity};
use crate::image::Image;
use crate::signature::Signature;
use crate::value::sealed::Sealed;
use mullion_runtime::CallEnd;
use std::any::Any;
use std::sync::Arc;

/// The domain that has called a host function, for the time of that call: its
/// memory, its functions, what its host said about it.
///
/// It belongs to the thread of the call:
///
/// ```compile_fail,E0277
/// fn elsewhere(caller: &mullion::Caller<'_>) {
///     std::thread::scope(|scope| {
///         scope.spawn(|| caller.name().len());
///     });
/// }
/// ```
pub struct Caller<'a> {
    raw: &'a mullion_runtime::GateCall<'a>,
    context: &'a Context,
}

impl<'a> Caller<'a> {
    pub(crate) fn new(raw: &'a mullion_runtime::GateCall<'a>, context: &'a Context) -> Self {
        Self { raw, context }
    }

    /// The name of the domain.
    #[must_use]
    pub fn name(&self) -> &str {
        self.context.identity.name()
    }

    /// The image that the domain came from.
    #[must_use]
    pub fn image(&self) -> &Image {
        self.context.identity.image()
    }

    /// What the host attached to the domain by
    /// [`DomainBuilder::user`](crate::DomainBuilder::user), if it is a `T`.
    #[must_use]
    pub fn user<T: Any>(&self) -> Option<&T> {
        self.context.identity.user()
    }

    /// Who the domain is.
    #[must_use]
    pub fn identity(&self) -> &Arc<Identity> {
        &self.context.identity
    }

    /// The domain that has called this one, by a link; `None`: the host has.
    #[must_use]
    pub fn called_by(&self) -> Option<Arc<Identity>> {
        identity::find(self.raw.called_by()?)
    }

    /// The integer or pointer argument with this index, from 0: those beyond the six
    /// in registers as well, from the domain's stack.
    ///
    /// # Errors
    /// [`Error::Memory`]: the domain has no such stack.
    pub fn argument(&self, index: u32) -> Result<u64, Error> {
        self.as_access().check(self.raw.argument(index))
    }

    /// The domain's export of that name, to call back into it on top of what it
    /// is doing.
    ///
    /// # Errors
    /// [`Error::NoExport`]; [`Error::WrongType`].
    pub fn export<F: Signature>(&self, name: &str) -> Result<Callback<F>, Error> {
        let image = self.context.identity.image();
        let offset = image.offset_of(image.export_as::<F>(name)?);
        Ok(Callback::from_address(
            self.raw.memory().base().wrapping_add(offset),
        ))
    }

    /// Keeps `resource` (a lock's guard, a file) with the invocation that called this host
    /// function. It is dropped when that ends, however it ends, unless [`Caller::release`] takes it
    /// back before.
    pub fn hold<T: Any>(&self, resource: T) -> Held<T> {
        held::hold(Owner::of(&self.context.identity), resource)
    }

    /// Takes back what is held; `None` if it is not: it was released already, its
    /// invocation has ended, or it is another domain's.
    pub fn release<T: Any>(&self, held: Held<T>) -> Option<T> {
        held::release(Owner::of(&self.context.identity), held)
    }

    /// The domain is about to hand out so many bytes by this host function. This counts
    /// them as its output, with those that it writes to its streams.
    ///
    /// # Errors
    /// [`Error::OutputLimit`]: they are more than [`Limits::output`](crate::Limits) lets it.
    /// To be returned by the host function, which makes a fault of it.
    pub fn charge_output(&self, bytes: u64) -> Result<(), Error> {
        self.raw.charge_output(bytes).map_err(|end| match end {
            CallEnd::OutputLimit { granted } => Error::OutputLimit {
                domain: self.name().to_owned(),
                granted,
            },
            CallEnd::Exit(status) => Error::Exit {
                domain: self.name().to_owned(),
                status,
            },
            other => Error::Refused {
                domain: self.name().to_owned(),
                source: Box::new(other),
            },
        })
    }

    /// Whether the invocation's time is up, so that it ends when this host
    /// function returns. What waits for something looks here when a signal has
    /// interrupted it.
    #[must_use]
    pub fn is_out_of_time(&self) -> bool {
        self.raw.is_out_of_time()
    }

    #[inline]
    pub(crate) fn as_access(&self) -> Access<'_> {
        Access::called(self.raw, self.context)
    }
}

impl Sealed for Caller<'_> {}
impl DomainMemory for Caller<'_> {
    #[expect(clippy::inline_always, reason = "as `Domain::hold`")]
    #[inline(always)]
    fn access(&self) -> Result<Access<'_>, Error> {
        Ok(self.as_access())
    }
}
