//! The right to use a domain: from outside, or in a host function.

use crate::context::Context;
use crate::error::Error;
use crate::heap::Heap;
use crate::held;
use crate::identity::Identity;
use crate::image::Image;
use crate::state::State;
use mullion_runtime::{
    BadAddress, CallArguments, CallLimits, Claimed, Entry, Memory, Returned, Using,
};
use std::sync::Arc;

/// The right to use a domain's memory: while there is one, the domain stays.
#[doc(hidden)]
pub struct Access<'a>(Kind<'a>);

enum Kind<'a> {
    /// From outside. The state is there.
    Held(Using<'a, Option<State>>, &'a Identity),
    /// During a call from the domain, which keeps it in place.
    Called(&'a mullion_runtime::GateCall<'a>, &'a Context),
}

impl<'a> Access<'a> {
    #[expect(clippy::inline_always, reason = "as `Domain::hold`")]
    #[inline(always)]
    pub(crate) fn held(guard: Using<'a, Option<State>>, identity: &'a Identity) -> Self {
        Self(Kind::Held(guard, identity))
    }

    #[inline]
    pub(crate) fn called(caller: &'a mullion_runtime::GateCall<'_>, context: &'a Context) -> Self {
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
    pub(crate) fn domain(&self) -> Result<&mullion_runtime::WindowDomain, Error> {
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
        arguments: &CallArguments,
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
