//! Where a pointer is used: in a domain, or in the one that has just called.

use crate::buffer::Buffer;
use crate::caller::{Caller, Context};
use crate::domain::{Domain, State};
use crate::error::Error;
use crate::heap::Heap;
use crate::held;
use crate::identity::Identity;
use crate::image::Image;
use crate::pointer::Data;
use crate::value::sealed::Sealed;
use mullion_runtime::{Arguments, BadAddress, CallLimits, Claimed, Entry, Memory, Returned, Using};
use std::sync::Arc;
use zerocopy::IntoBytes;

/// A domain whose memory is used: a [`Domain`], or a [`Caller`] in a host function.
pub trait Within: Sealed {
    #[doc(hidden)]
    fn access(&self) -> Result<Access<'_>, Error>;

    /// The domain, if it is used from outside.
    #[doc(hidden)]
    fn outside(&self) -> Option<&Domain> {
        None
    }

    /// Zeroed memory for `count` elements in the domain, given back when the
    /// buffer is dropped.
    ///
    /// The books of these allocations are the host's: nothing that the domain
    /// does to its own heap confuses them, and no code of the domain runs. The
    /// domain's `free` must not be given such memory.
    ///
    /// # Errors
    /// [`Error::NoMemory`]: the domain's limit.
    fn alloc<T: Data>(&self, count: u64) -> Result<Buffer<T>, Error> {
        let access = self.access()?;
        Buffer::new(&access, count)
    }

    /// A copy of `data` in the domain.
    ///
    /// # Errors
    /// As [`Within::alloc`].
    fn copy_in<T: Data>(&self, data: &[T]) -> Result<Buffer<T>, Error> {
        let access = self.access()?;
        let buffer = Buffer::new(&access, data.len() as u64)?;
        let written = access.memory().write(buffer.claimed(), data.as_bytes());
        access.check(written)?;
        Ok(buffer)
    }

    /// How often the domain was restarted.
    ///
    /// # Errors
    /// [`Error::Unloaded`]; [`Error::NotOpen`]: it is just being restarted.
    fn restarts(&self) -> Result<u64, Error> {
        Ok(self.access()?.heap().life())
    }

    /// A copy of `text` in the domain, with a terminating zero behind it, which
    /// [`Buffer::len`] counts. Zeros inside end the string early, as C has it.
    ///
    /// # Errors
    /// As [`Within::alloc`].
    fn string_in(&self, text: &str) -> Result<Buffer<u8>, Error> {
        let mut bytes = text.as_bytes().to_vec();
        bytes.push(0);
        self.copy_in(&bytes)
    }
}

/// The right to use a domain's memory: while there is one, the domain stays.
#[doc(hidden)]
pub struct Access<'a>(Kind<'a>);

enum Kind<'a> {
    /// From outside. The state is there.
    Held(Using<'a, Option<State>>, &'a Identity),
    /// During a call from the domain, which keeps it in place.
    Called(&'a mullion_runtime::Caller<'a>, &'a Context),
}

impl<'a> Access<'a> {
    #[expect(clippy::inline_always, reason = "as `Domain::hold`")]
    #[inline(always)]
    pub(crate) fn held(guard: Using<'a, Option<State>>, identity: &'a Identity) -> Self {
        Self(Kind::Held(guard, identity))
    }

    #[inline]
    pub(crate) fn called(caller: &'a mullion_runtime::Caller<'_>, context: &'a Context) -> Self {
        Self(Kind::Called(caller, context))
    }
}

impl Access<'_> {
    #[inline]
    pub(crate) fn memory(&self) -> &Memory {
        match &self.0 {
            Kind::Held(guard, _) => state(guard).domain().memory(),
            Kind::Called(caller, ..) => caller.memory(),
        }
    }

    #[inline]
    pub(crate) fn heap(&self) -> &Arc<Heap> {
        match &self.0 {
            Kind::Held(guard, _) => state(guard).heap(),
            Kind::Called(_, context) => &context.heap,
        }
    }

    #[inline]
    pub(crate) fn identity(&self) -> &Identity {
        match &self.0 {
            Kind::Held(_, identity) => identity,
            Kind::Called(_, context) => &context.identity,
        }
    }

    pub(crate) fn name(&self) -> &str {
        self.identity().name()
    }

    pub(crate) fn image(&self) -> &Image {
        self.identity().image()
    }

    /// The domain, from outside; who is just calling is not handed out.
    pub(crate) fn domain(&self) -> Result<&mullion_runtime::Domain, Error> {
        match &self.0 {
            Kind::Held(guard, _) => Ok(state(guard).domain()),
            Kind::Called(..) => Err(Error::InUse {
                domain: self.name().to_owned(),
            }),
        }
    }

    /// Whether the domain has ended; who is just calling has not.
    pub(crate) fn is_ended(&self) -> bool {
        match &self.0 {
            Kind::Held(guard, _) => state(guard).domain().has_ended(),
            Kind::Called(..) => false,
        }
    }

    /// Where an export is entered.
    #[inline]
    pub(crate) fn export(&self, export: usize) -> Result<Entry, Error> {
        let image = self.image();
        match &self.0 {
            Kind::Held(guard, _) => state(guard).entry(export, image),
            Kind::Called(caller, _) => {
                self.entry(caller.memory().base().wrapping_add(image.offset_of(export)))
            }
        }
    }

    pub(crate) fn entry(&self, address: u64) -> Result<Entry, Error> {
        let address = Claimed(address);
        let entry = match &self.0 {
            Kind::Held(guard, _) => state(guard).domain().entry(address),
            Kind::Called(caller, ..) => caller.entry(address),
        };
        entry.map_err(|_| Error::NotAFunction {
            domain: self.name().to_owned(),
            address: address.0,
        })
    }

    #[inline]
    pub(crate) fn call(
        &self,
        entry: Entry,
        arguments: &Arguments,
        limits: Option<&CallLimits>,
    ) -> Result<Returned, Error> {
        let called = held::invocation(|| match (&self.0, limits) {
            (Kind::Held(guard, _), None) => state(guard).domain().call(entry, arguments),
            (Kind::Held(guard, _), Some(limits)) => {
                state(guard).domain().call_limited(entry, arguments, limits)
            }
            (Kind::Called(caller, _), limits) => caller.call(entry, arguments, limits),
        });
        called.map_err(|error| self.identity().explain(*error))
    }

    /// The error of a copy, with the domain's name.
    #[expect(clippy::inline_always, reason = "as `Domain::hold`")]
    #[inline(always)]
    pub(crate) fn check<T>(&self, result: Result<T, BadAddress>) -> Result<T, Error> {
        match result {
            Ok(value) => Ok(value),
            // Not by a method of this one: who has its address has it in memory.
            Err(bad) => Err(self.identity().has_no_memory(bad)),
        }
    }
}

#[inline]
fn state<'a>(guard: &'a Using<'_, Option<State>>) -> &'a State {
    guard
        .as_ref()
        .expect("looked at when the guard was made, and nobody has written since")
}

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
impl Within for Target<'_> {
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

impl Sealed for Domain {}
impl Within for Domain {
    #[inline]
    fn outside(&self) -> Option<&Domain> {
        Some(self)
    }
    #[expect(clippy::inline_always, reason = "as `Domain::hold`")]
    #[inline(always)]
    fn access(&self) -> Result<Access<'_>, Error> {
        self.hold()
    }
}

impl Sealed for Caller<'_> {}
impl Within for Caller<'_> {
    #[expect(clippy::inline_always, reason = "as `Domain::hold`")]
    #[inline(always)]
    fn access(&self) -> Result<Access<'_>, Error> {
        Ok(self.as_access())
    }
}
