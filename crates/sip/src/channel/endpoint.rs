//! Endpoints of a contract, below the types that name their states.

use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::time::{Duration, Instant};

use crate::critical::critical;
use crate::exchange::sendable::Handles;
use crate::exchange::walk::{Adopt, Visitor};
use crate::exchange::wire::{DecodeError, EncodeError, Reader, Writer};
use crate::exchange::{self, HeapError, ledger};
use crate::thread::here;
use crate::{owner, wait};

use super::contract::{Contract, Ring, Side};
use super::place::{self, Place};
use super::select::Port;
use super::{AnyEndpoint, ChannelClosed, Mismatch};

/// An endpoint of contract `C`: the client's (0) or the server's (1), as a side's index. The generated endpoint types wrap it, and know its state.
pub struct Endpoint<C: Contract, const SIDE: usize> {
    place: NonNull<Place>,
    _contract: PhantomData<C>,
}

/// A new channel: the client's and the server's endpoint.
///
/// # Errors
/// The caller's share, or the heap, is used up.
pub fn channel<C: Contract>() -> Result<(Endpoint<C, 0>, Endpoint<C, 1>), HeapError> {
    let _critical = critical();
    let [client, server] = place::create(C::INFO, ledger::of(owner::current()))?;
    Ok((Endpoint::at(client), Endpoint::at(server)))
}

impl<C: Contract, const SIDE: usize> Endpoint<C, SIDE> {
    /// What arrives here.
    const INCOMING: Ring = C::INFO.rings[SIDE];
    /// What arrives at the peer.
    const OUTGOING: Ring = C::INFO.rings[1 - SIDE];

    #[inline]
    fn at(place: NonNull<Place>) -> Self {
        Endpoint {
            place,
            _contract: PhantomData,
        }
    }

    #[inline]
    fn place(&self) -> &Place {
        // SAFETY: the endpoint has its place alone, on this thread.
        unsafe { self.place.as_ref() }
    }

    #[inline]
    fn place_mut(&mut self) -> &mut Place {
        // SAFETY: as above.
        unsafe { self.place.as_mut() }
    }

    /// Sends a message, and goes to state `next`. Inlined whatever its size: a call would take a tenth of the time of a
    /// message there and back.
    ///
    /// # Safety
    /// The contract has a message `number` with payload `T` that leads from this state to `next`.
    ///
    /// # Errors
    /// The peer has gone.
    #[inline(always)]
    pub unsafe fn send<T: Handles>(
        self,
        number: u16,
        next: u16,
        payload: T,
    ) -> Result<Self, ChannelClosed> {
        let mut place = ManuallyDrop::new(self).place;
        // SAFETY: by the caller; the endpoint has its place alone.
        let pushed = unsafe { Self::push(place.as_mut(), number, next, payload) };
        let endpoint = Endpoint::at(place);
        pushed.map(|()| endpoint)
    }

    /// Sends the last message.
    ///
    /// # Safety
    /// The contract has a message `number` with payload `T` that leads from this state to the end.
    ///
    /// # Errors
    /// The peer has gone.
    #[inline]
    pub unsafe fn send_last<T: Handles>(
        mut self,
        number: u16,
        payload: T,
    ) -> Result<(), ChannelClosed> {
        // SAFETY: by the caller.
        unsafe { Self::push(self.place_mut(), number, 0, payload) }
    }

    /// # Safety
    /// As for [`Endpoint::send`].
    #[inline(always)]
    unsafe fn push<T: Handles>(
        place: &mut Place,
        number: u16,
        next: u16,
        payload: T,
    ) -> Result<(), ChannelClosed> {
        // Nothing unwinds here: no way out for which it would have to lie in memory.
        let payload = ManuallyDrop::new(payload);
        if place.is_elsewhere(1 - SIDE) {
            let payload = ManuallyDrop::into_inner(payload);
            // SAFETY: by the caller.
            return unsafe { Self::push_elsewhere(place, number, next, payload) };
        }
        // Who is ended half-way with plain data has sent it or not, and wakes its peer once more as it ends.
        let _critical = T::HOLDS.then(critical);
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
    /// As for [`Endpoint::send`].
    #[inline(never)]
    unsafe fn push_elsewhere<T: Handles>(
        place: &mut Place,
        number: u16,
        next: u16,
        payload: T,
    ) -> Result<(), ChannelClosed> {
        let _critical = critical();
        if place.peer_gone() {
            return Err(ChannelClosed);
        }
        if T::HOLDS {
            place.release(&payload);
        }
        // SAFETY: by the caller.
        unsafe { place.push(Self::OUTGOING, number, payload) };
        place.state = next;
        place.announce_elsewhere();
        Ok(())
    }

    /// The number of the next message, if there is one.
    ///
    /// # Errors
    /// There is none, and the peer has gone.
    #[inline]
    pub fn poll(&self) -> Result<Option<u16>, ChannelClosed> {
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
    pub fn wait(&self) -> Result<u16, ChannelClosed> {
        loop {
            if let Some(number) = self.place().next(Self::INCOMING) {
                return Ok(number);
            }
            match here::running() {
                Some((worker, thread)) if !self.place().is_elsewhere(1 - SIDE) => {
                    // Nothing can come between the look and the park.
                    self.place().register_here(SIDE, thread.waiter());
                    worker.park(thread);
                }
                _ => return self.wait_elsewhere(),
            }
        }
    }

    /// Waits for a message from a peer that may be on another OS thread, or gone.
    #[inline(never)]
    fn wait_elsewhere(&self) -> Result<u16, ChannelClosed> {
        let mut found = self.poll()?;
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
    pub fn wait_for(&self, timeout: Duration) -> Result<Option<u16>, ChannelClosed> {
        match self.poll()? {
            Some(number) => Ok(Some(number)),
            None => self.wait_until(super::deadline(timeout)),
        }
    }

    /// Parks until there is a message, or `deadline` has passed.
    fn wait_until(&self, deadline: Option<Instant>) -> Result<Option<u16>, ChannelClosed> {
        loop {
            self.place().register(wait::current());
            let found = self.poll();
            if !matches!(found, Ok(None)) {
                self.place().unregister();
                return found;
            }
            match deadline {
                None => wait::park(),
                Some(deadline) if Instant::now() < deadline => wait::park_until(deadline),
                Some(_) => {
                    self.place().unregister();
                    return self.poll();
                }
            }
        }
    }

    /// Takes the next message's payload, and goes to state `next`.
    ///
    /// # Safety
    /// The next message is there, carries a `T` and leads to `next`.
    ///
    /// # Panics
    /// [`HeapError::Limit`] if the payload has blocks and the process holds more than it may already.
    #[inline(always)]
    pub unsafe fn take<T: Handles>(mut self, next: u16) -> (T, Self) {
        // Who is ended half-way with plain data leaves nothing that its end does not put right.
        let _critical = T::HOLDS.then(critical);
        // SAFETY: by the caller.
        let payload = unsafe { self.pull() };
        self.place_mut().state = next;
        (payload, self)
    }

    /// Takes the last message's payload.
    ///
    /// # Safety
    /// The next message is there, carries a `T` and leads to the end.
    ///
    /// # Panics
    /// As for [`Endpoint::take`].
    #[inline(always)]
    pub unsafe fn take_last<T: Handles>(mut self) -> T {
        // As in `take`.
        let _critical = T::HOLDS.then(critical);
        // SAFETY: by the caller.
        unsafe { self.pull() }
    }

    /// # Safety
    /// As for [`Endpoint::take`].
    #[inline(always)]
    unsafe fn pull<T: Handles>(&mut self) -> T {
        let place = self.place_mut();
        let book = place.book();
        if T::HOLDS {
            place.settle_and_demand(book);
        } else {
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

    /// The peer has sent what the contract does not allow: the channel ends.
    #[cold]
    pub fn violated(self) -> ChannelClosed {
        ChannelClosed
    }

    /// Forgets contract and state.
    pub fn into_any(self) -> AnyEndpoint {
        AnyEndpoint::at(ManuallyDrop::new(self).place)
    }

    /// Writes that it goes along, for a peer in another OS process.
    ///
    /// # Errors
    /// It cannot.
    pub fn encode(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.endpoint(self.place)
    }

    /// An endpoint in a state, that has come along from another OS process.
    ///
    /// # Errors
    /// None has.
    pub fn decode(state: u16, from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let side = if SIDE == 0 {
            Side::Client
        } else {
            Side::Server
        };
        from.endpoint(C::INFO, side, state).map(Self::at)
    }

    /// What `select` needs of it.
    pub fn port(&self) -> Port<'_> {
        Port::of(self.place(), Self::INCOMING)
    }
}

impl AnyEndpoint {
    /// An endpoint of contract `C`, if it is one on that side and in that state.
    ///
    /// # Errors
    /// It is another's.
    pub fn narrow<C: Contract, const SIDE: usize>(
        self,
        state: u16,
    ) -> Result<Endpoint<C, SIDE>, Mismatch> {
        let same_contract = self.info().digest == C::INFO.digest;
        if same_contract && self.side().index() == SIDE && self.number() == state {
            Ok(Endpoint::at(self.into_place()))
        } else {
            Err(Mismatch(self))
        }
    }
}

impl<C: Contract, const SIDE: usize> Drop for Endpoint<C, SIDE> {
    #[inline]
    fn drop(&mut self) {
        exchange::discard(|visitor| self.visit(visitor));
    }
}

// SAFETY: it is one handle, of its place.
unsafe impl<C: Contract, const SIDE: usize> Handles for Endpoint<C, SIDE> {
    const HOLDS: bool = true;
    #[inline]
    fn visit<V: Visitor + ?Sized>(&self, visitor: &mut V) {
        visitor.endpoint(self.place.cast());
    }
}

impl<C: Contract, const SIDE: usize> fmt::Debug for Endpoint<C, SIDE> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.place().fmt(formatter)
    }
}
