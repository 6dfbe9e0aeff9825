//! Endpoints of a contract, below the types that name their states.

use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::time::{Duration, Instant};

use crate::exchange::blocks::discard;
use crate::exchange::coding::{DecodeError, EncodeError, Reader, Writer};
use crate::exchange::sendable::Handles;
use crate::exchange::shape::{Part, part, start};
use crate::exchange::visitor::Visitor;
use crate::exchange::walk::Adopt;
use crate::exchange::{Exchange, HeapError, Shape, accounts};
use crate::inner::CORE;
use mullion_sip_core::{owner, wait};

use super::contract::{Contract, Ring, Side};
use super::message::{End, Message, Receives, Sends, State};
use super::place::{self, EndpointPlace};
use super::select::Port;
use super::{AnyEndpoint, ChannelClosed, Mismatch, admit};

/// An endpoint of contract `C`: the client's (0) or the server's (1), as a side's index, in state `S`. The place is in that
/// state. The generated endpoint types wrap it.
#[must_use = "dropping an endpoint closes the channel"]
pub struct Endpoint<C: Contract, const SIDE: usize, S> {
    place: NonNull<EndpointPlace>,
    _of: PhantomData<(C, fn() -> S)>,
}

/// An endpoint that has a message. `number` is the number of the next message in its queue.
#[must_use = "dropping an endpoint closes the channel"]
#[derive(Debug)]
pub struct Arrived<C: Contract, const SIDE: usize, S> {
    endpoint: Endpoint<C, SIDE, S>,
    number: u16,
}

/// Both endpoints of a channel that nobody has used.
type Fresh<C> = (
    Endpoint<C, 0, <C as Contract>::Start>,
    Endpoint<C, 1, <C as Contract>::Start>,
);

/// What there is without waiting, or without waiting for long: a message, or the endpoint again.
type Found<C, const SIDE: usize, S> = Result<Arrived<C, SIDE, S>, Endpoint<C, SIDE, S>>;

/// A new channel: the client's and the server's endpoint.
///
/// # Errors
/// The caller's share, or the heap, is used up.
pub fn channel<C: Contract>() -> Result<Fresh<C>, HeapError> {
    let _critical = CORE.critical();
    let [client, server] = place::create(C::INFO, accounts::of(owner::current()))?;
    Ok((Endpoint::at(client), Endpoint::at(server)))
}

impl<C: Contract, const SIDE: usize, S> Endpoint<C, SIDE, S> {
    /// What arrives here.
    const INCOMING: Ring = C::INFO.rings[SIDE];
    /// What arrives at the peer.
    const OUTGOING: Ring = C::INFO.rings[1 - SIDE];

    #[inline]
    fn at(place: NonNull<EndpointPlace>) -> Self {
        Endpoint {
            place,
            _of: PhantomData,
        }
    }

    #[inline]
    fn place(&self) -> &EndpointPlace {
        // SAFETY: the endpoint has its place alone, on this thread.
        unsafe { self.place.as_ref() }
    }

    #[inline]
    fn place_mut(&mut self) -> &mut EndpointPlace {
        // SAFETY: the endpoint has its place alone, on this thread, and is borrowed alone.
        unsafe { self.place.as_mut() }
    }

    /// Sends a message, and goes on to the next state. Inlined whatever its size: a call would take a tenth of the time of a
    /// message there and back.
    ///
    /// # Errors
    /// The peer has gone.
    #[inline(always)]
    pub fn send<M>(self, payload: M::Payload) -> Result<Endpoint<C, SIDE, M::Next>, ChannelClosed>
    where
        M: Message<Contract = C, From = S>,
        M::Next: State<Contract = C>,
        S: Sends<SIDE>,
    {
        let mut place = ManuallyDrop::new(self).place;
        let next = <M::Next as State>::INDEX;
        // SAFETY: the types say that the contract has the message here; the endpoint has its place alone.
        let pushed = unsafe { Self::push(place.as_mut(), M::NUMBER, next, payload) };
        let endpoint = Endpoint::at(place);
        pushed.map(|()| endpoint)
    }

    /// Sends the last message.
    ///
    /// # Errors
    /// The peer has gone.
    #[inline]
    pub fn send_last<M>(mut self, payload: M::Payload) -> Result<(), ChannelClosed>
    where
        M: Message<Contract = C, From = S, Next = End>,
        S: Sends<SIDE>,
    {
        // SAFETY: the types say that the contract has the message here; the endpoint has its place alone.
        unsafe { Self::push(self.place_mut(), M::NUMBER, 0, payload) }
    }

    /// # Safety
    /// The contract has a message `number` with payload `T` that leads from this state to `next`, or is the last.
    #[inline(always)]
    unsafe fn push<T: Handles>(
        place: &mut EndpointPlace,
        number: u16,
        next: u16,
        payload: T,
    ) -> Result<(), ChannelClosed> {
        // Nothing unwinds here: no way out for which it would have to lie in memory.
        let payload = ManuallyDrop::new(payload);
        if place.is_elsewhere(1 - SIDE) {
            let payload = ManuallyDrop::into_inner(payload);
            // SAFETY: the caller promises the same: the contract allows this message now, which leads to that state.
            return unsafe { Self::push_elsewhere(place, number, next, payload) };
        }
        // Who is ended half-way with plain data has sent it or not, and wakes its peer once more as it ends.
        let _critical = T::HOLDS.then(|| CORE.critical_moving::<T>());
        if T::HOLDS {
            place.release(&*payload);
        }
        // SAFETY: by the caller. A peer that is here has not closed.
        unsafe { place.push(Self::OUTGOING, number, payload) };
        place.state = next;
        place.announce_here(1 - SIDE);
        Ok(())
    }

    /// # Safety
    /// As for [`Endpoint::push`].
    #[inline(never)]
    unsafe fn push_elsewhere<T: Handles>(
        place: &mut EndpointPlace,
        number: u16,
        next: u16,
        payload: T,
    ) -> Result<(), ChannelClosed> {
        let _critical = CORE.critical_moving::<T>();
        if place.peer_gone() {
            return Err(ChannelClosed);
        }
        if T::HOLDS {
            place.release(&payload);
        }
        // SAFETY: the caller promises that the contract allows this message now, so the next slot is free and has
        // its size.
        unsafe { place.push(Self::OUTGOING, number, payload) };
        place.state = next;
        place.announce_elsewhere();
        Ok(())
    }

    /// The next message, if there is one; else the endpoint again.
    ///
    /// # Errors
    /// There is none, and the peer has gone.
    #[inline]
    pub fn poll(self) -> Result<Found<C, SIDE, S>, ChannelClosed>
    where
        S: Receives<SIDE>,
    {
        let found = self.look()?;
        Ok(self.with(found))
    }

    #[inline]
    fn with(self, found: Option<u16>) -> Found<C, SIDE, S> {
        match found {
            Some(number) => Ok(Arrived {
                endpoint: self,
                number,
            }),
            None => Err(self),
        }
    }

    /// The number of the next message, if there is one.
    #[inline]
    fn look(&self) -> Result<Option<u16>, ChannelClosed> {
        let place = self.place();
        if let Some(number) = place.next(Self::INCOMING) {
            return Ok(Some(number));
        }
        if place.peer_gone() {
            // It may have sent before it went.
            return place.next(Self::INCOMING).map(Some).ok_or(ChannelClosed);
        }
        Ok(None)
    }

    /// Waits for the next message.
    ///
    /// # Errors
    /// There is none, and the peer has gone.
    // Inlined whatever its size: a processor predicts where a `ret` goes by the `call`s before it, which after a
    // switch are those of another thread, so each frame between a switch and its caller costs a wrong guess.
    #[inline(always)]
    pub fn wait(self) -> Result<Arrived<C, SIDE, S>, ChannelClosed>
    where
        S: Receives<SIDE>,
    {
        let number = self.wait_here()?;
        Ok(Arrived {
            endpoint: self,
            number,
        })
    }

    #[inline(always)]
    fn wait_here(&self) -> Result<u16, ChannelClosed> {
        loop {
            if let Some(number) = self.place().next(Self::INCOMING) {
                return Ok(number);
            }
            match CORE.running() {
                Some(running) if !self.place().is_elsewhere(1 - SIDE) => {
                    // Nothing can come between the look and the park.
                    self.place().register_here(SIDE, running.waiter());
                    running.park();
                }
                _ => return self.wait_elsewhere(),
            }
        }
    }

    /// Waits for a message from a peer that may be on another OS thread, or gone.
    #[inline(never)]
    fn wait_elsewhere(&self) -> Result<u16, ChannelClosed> {
        let mut found = self.look()?;
        loop {
            if let Some(number) = found {
                return Ok(number);
            }
            found = self.wait_until(None)?;
        }
    }

    /// Waits for the next message, but not longer than `timeout`.
    ///
    /// # Errors
    /// There is none, and the peer has gone.
    pub fn wait_for(self, timeout: Duration) -> Result<Found<C, SIDE, S>, ChannelClosed>
    where
        S: Receives<SIDE>,
    {
        let found = match self.look()? {
            Some(number) => Some(number),
            None => self.wait_until(super::deadline(timeout))?,
        };
        Ok(self.with(found))
    }

    /// Parks until there is a message, or `deadline` has passed.
    fn wait_until(&self, deadline: Option<Instant>) -> Result<Option<u16>, ChannelClosed> {
        loop {
            self.place().register(wait::current());
            let found = self.look();
            if !matches!(found, Ok(None)) {
                self.place().unregister();
                return found;
            }
            match deadline {
                None => wait::park(),
                Some(deadline) if Instant::now() < deadline => wait::park_until(deadline),
                Some(_) => {
                    self.place().unregister();
                    return self.look();
                }
            }
        }
    }

    /// Ends the process if it is to receive blocks and holds more than it may, or an end of a channel that it may not have. In
    /// no critical piece: a panic there would be the kernel's, and end the host.
    ///
    /// # Safety
    /// The next message is there and carries a `T`.
    #[inline(always)]
    unsafe fn demand<T: Handles>(&mut self) {
        if T::HOLDS {
            let place = self.place_mut();
            let book = place.book();
            place.settle_and_demand(book);
            if CORE.is_decided() {
                // SAFETY: the caller promises that the message carries a `T`, which stays where it is.
                unsafe { self.ask::<T>() };
            }
        }
    }

    /// # Safety
    /// As for [`Endpoint::demand`].
    #[cold]
    unsafe fn ask<T: Handles>(&self) {
        // SAFETY: the caller promises that a `T` is there. Until this side counts it, nobody takes or changes it.
        let payload = unsafe { self.place().payload(Self::INCOMING).cast::<T>().as_ref() };
        if let Err(refused) = admit::ask(payload, owner::current()) {
            std::panic::panic_any(HeapError::Refused(refused));
        }
    }

    /// # Safety
    /// The next message is there and carries a `T`.
    #[inline(always)]
    unsafe fn pull<T: Handles>(&mut self) -> T {
        let place = self.place_mut();
        let book = place.book();
        if !T::HOLDS {
            place.settle(book);
        }
        // SAFETY: the message is there and carries a `T`; counting it makes it be read once.
        let payload = unsafe { place.payload(Self::INCOMING).cast::<T>().read() };
        place.count_received();
        if T::HOLDS {
            let mut adopt = Adopt::new(book, place.here());
            payload.visit(&mut adopt);
            adopt.finish();
        }
        payload
    }

    /// Forgets contract and state.
    pub fn into_any(self) -> AnyEndpoint {
        AnyEndpoint::at(ManuallyDrop::new(self).place)
    }

    /// What `select` needs of it.
    pub fn port(&self) -> Port<'_> {
        Port::of(self.place(), Self::INCOMING)
    }
}

impl<C: Contract, const SIDE: usize, S: Receives<SIDE>> Arrived<C, SIDE, S> {
    /// The number of the message.
    #[inline(always)]
    pub fn number(&self) -> u16 {
        self.number
    }

    /// Takes the message's payload, and goes on to the next state.
    ///
    /// # Panics
    /// It is another message. Or, with [`HeapError::Limit`], the payload has blocks and the process holds more than it
    /// may already. Or, with [`HeapError::Refused`], the payload has an end of a channel that the process may not have.
    #[inline(always)]
    pub fn take<M>(self) -> (M::Payload, Endpoint<C, SIDE, M::Next>)
    where
        M: Message<Contract = C, From = S>,
        M::Next: State<Contract = C>,
    {
        let mut endpoint = self.endpoint_with(M::NUMBER);
        // SAFETY: the next message has the number of `M`, and so carries its payload.
        unsafe { endpoint.demand::<M::Payload>() };
        // Who is ended half-way with plain data leaves nothing that its end does not put right.
        let _critical =
            <M::Payload as Handles>::HOLDS.then(|| CORE.critical_moving::<M::Payload>());
        // SAFETY: the next message has the number of `M`, and so carries its payload.
        let payload = unsafe { endpoint.pull() };
        endpoint.place_mut().state = <M::Next as State>::INDEX;
        (payload, Endpoint::at(ManuallyDrop::new(endpoint).place))
    }

    /// Takes the last message's payload.
    ///
    /// # Panics
    /// As for [`Arrived::take`].
    #[inline(always)]
    pub fn take_last<M>(self) -> M::Payload
    where
        M: Message<Contract = C, From = S, Next = End>,
    {
        let mut endpoint = self.endpoint_with(M::NUMBER);
        // SAFETY: the next message has the number of `M`, and so carries its payload.
        unsafe { endpoint.demand::<M::Payload>() };
        // As in `take`.
        let _critical =
            <M::Payload as Handles>::HOLDS.then(|| CORE.critical_moving::<M::Payload>());
        // SAFETY: the next message carries `M::Payload`, and its word was seen by `demand`.
        unsafe { endpoint.pull() }
    }

    /// The endpoint, if the message is the one with this number. The macro's code has compared the two just before, so the
    /// compiler leaves out this comparison.
    #[inline(always)]
    fn endpoint_with(self, number: u16) -> Endpoint<C, SIDE, S> {
        assert!(self.number == number, "another message has arrived");
        self.endpoint
    }

    /// The peer has sent what the contract does not allow: the channel ends.
    #[cold]
    pub fn violated(self) -> ChannelClosed {
        ChannelClosed
    }
}

impl AnyEndpoint {
    /// An endpoint of contract `C`, if it is one on that side and in that state.
    ///
    /// # Errors
    /// It is another's.
    pub fn narrow<C: Contract, const SIDE: usize, S: State<Contract = C>>(
        self,
    ) -> Result<Endpoint<C, SIDE, S>, Mismatch> {
        let same_contract = self.info().digest == C::INFO.digest;
        if same_contract && self.side().index() == SIDE && self.number() == S::INDEX {
            Ok(Endpoint::at(self.into_place()))
        } else {
            Err(Mismatch(self))
        }
    }
}

impl<C: Contract, const SIDE: usize, S> Drop for Endpoint<C, SIDE, S> {
    #[inline]
    fn drop(&mut self) {
        discard(|visitor| visitor.endpoint(self.place.cast()));
    }
}

// SAFETY: it is one handle, of its place.
unsafe impl<C: Contract, const SIDE: usize, S: 'static> Handles for Endpoint<C, SIDE, S> {
    const HOLDS: bool = true;
    #[inline]
    fn visit<V: Visitor + ?Sized>(&self, visitor: &mut V) {
        visitor.endpoint(self.place.cast());
    }
}

// SAFETY: in this state its peer waits, so nothing is on its way to it (see `channel`); the shape covers contract, side and
// state.
unsafe impl<C: Contract, const SIDE: usize, S> Exchange for Endpoint<C, SIDE, S>
where
    S: State<Contract = C> + Sends<SIDE>,
{
    const SHAPE: Shape<Self> = Shape::end::<C, SIDE, S>();

    fn encode(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.endpoint(self.place)
    }

    fn decode(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let side = if SIDE == 0 {
            Side::Client
        } else {
            Side::Server
        };
        from.endpoint(C::INFO, side, S::INDEX).map(Self::at)
    }
}

impl<C: Contract, const SIDE: usize, S> fmt::Debug for Endpoint<C, SIDE, S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.place().fmt(formatter)
    }
}

impl<T> Shape<T> {
    /// Of an endpoint of a contract, on a side and in a state.
    pub(crate) const fn end<C: Contract, const SIDE: usize, S: State<Contract = C>>() -> Shape<T> {
        let name = C::STATES[S::INDEX as usize].0;
        let hasher = start::<T>("end", name).number(SIDE as u64);
        Shape::new(part(hasher, Part::Element, C::INFO.digest), false, true)
    }

    /// Of an endpoint of the contract around it, of which the type is a marker. The function finds the endpoint in it.
    pub const fn own_end<C: Contract, const SIDE: usize, S: State<Contract = C>>(
        _find: fn(&T) -> &Endpoint<C, SIDE, S>,
    ) -> Shape<T> {
        let name = C::STATES[S::INDEX as usize].0;
        let hasher = start::<T>("own end", name).number(SIDE as u64);
        Shape::new(hasher, false, true)
    }
}
