//! Endpoints whose contract is not known to the compiler: what a name server hands out.

use std::fmt;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use crate::exchange::sendable::Handles;
use crate::exchange::visitor::Visitor;
use crate::exchange::{HeapError, accounts};
use crate::inner::CORE;
use mullion_sip_core::owner;

use super::contract::{Info, Side};
use super::place::{self, EndpointPlace};

/// An endpoint of some contract, on some side, in some state. `Client::from_any` and `Server::from_any` of a
/// contract's module make it typed again, if digest, side and state are theirs.
///
/// It cannot be sent, since nobody knows whether it is to send; a [`Parcel`](crate::interior::Parcel) can hold it.
pub struct AnyEndpoint(NonNull<EndpointPlace>);

/// The endpoint was of another contract, side or state: here it is again.
#[derive(Debug)]
pub struct Mismatch(pub AnyEndpoint);

impl fmt::Display for Mismatch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "this is another endpoint: {:?}", self.0)
    }
}

impl std::error::Error for Mismatch {}

/// A new channel of a contract: the client's and the server's endpoint, of the calling thread's owner.
pub(crate) fn untyped(contract: &'static Info) -> Result<[AnyEndpoint; 2], HeapError> {
    let _critical = CORE.critical();
    let ends = place::create(contract, accounts::of(owner::current()))?;
    Ok(ends.map(AnyEndpoint))
}

impl AnyEndpoint {
    pub(super) fn at(place: NonNull<EndpointPlace>) -> AnyEndpoint {
        AnyEndpoint(place)
    }

    pub(super) fn into_place(self) -> NonNull<EndpointPlace> {
        ManuallyDrop::new(self).0
    }

    #[inline]
    pub(super) fn place(&self) -> &EndpointPlace {
        // SAFETY: the endpoint has its place alone, on this thread.
        unsafe { self.0.as_ref() }
    }

    #[inline]
    pub(super) fn place_mut(&mut self) -> &mut EndpointPlace {
        // SAFETY: the endpoint has its place alone, on this thread, and is borrowed alone.
        unsafe { self.0.as_mut() }
    }

    /// Its contract.
    #[inline]
    pub fn info(&self) -> &'static Info {
        self.place().contract
    }

    /// Its side.
    #[inline]
    pub fn side(&self) -> Side {
        self.place().side
    }

    /// The name of its state.
    pub fn state(&self) -> &'static str {
        self.place().state_name()
    }

    /// The number of its state.
    #[inline]
    pub(crate) fn number(&self) -> u16 {
        self.place().state
    }
}

impl Drop for AnyEndpoint {
    fn drop(&mut self) {
        crate::exchange::blocks::discard(|visitor| self.visit(visitor));
    }
}

// SAFETY: it is one handle, of its place.
unsafe impl Handles for AnyEndpoint {
    const HOLDS: bool = true;
    fn visit<V: Visitor + ?Sized>(&self, visitor: &mut V) {
        visitor.endpoint(self.0.cast());
    }
}

impl fmt::Debug for AnyEndpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.place().fmt(formatter)
    }
}

impl EndpointPlace {
    pub(super) fn state_name(&self) -> &'static str {
        let states = self.contract.states;
        states
            .get(usize::from(self.state))
            .map_or("", |state| state.0)
    }
}

impl fmt::Debug for EndpointPlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, side, state) = (self.contract.name, self.side, self.state_name());
        write!(formatter, "{side} of {name} in {state}")
    }
}
