//! Messages as bytes, at an end whose contract the compiler of its holder does not know.
//!
//! A message is held against the contract as one from another OS process is (`remote::bridge`). This side may send
//! it in this state, and its bytes are a payload of it. What has arrived is written down as bytes, and dropped.

use std::mem::MaybeUninit;
use std::ops::Deref;

use crate::exchange::HeapError;
use crate::exchange::blocks::discard;
use crate::exchange::coding::{DecodeError, EncodeError, Reader, Step, Writer};
use crate::exchange::walk::{Adopt, Release};
use crate::inner::CORE;
use mullion_sip_core::wait::Waiter;

use super::contract::Ring;
use super::{AnyEndpoint, ChannelClosed};

/// Why a message was not sent. The end is as it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unsent {
    /// The contract has no such message of this side in this state.
    OutOfTurn,
    /// The peer has gone.
    Closed,
    /// The bytes are no payload of the message.
    Malformed(DecodeError),
    /// The sender may not hold so much.
    Limit(HeapError),
}

/// An end, as code that knows no types uses it.
#[derive(Debug)]
pub struct ByBytes<'a>(&'a mut AnyEndpoint);

impl<'a> ByBytes<'a> {
    #[inline]
    pub(crate) fn of(end: &'a mut AnyEndpoint) -> ByBytes<'a> {
        ByBytes(end)
    }

    fn incoming(&self) -> Ring {
        self.0.info().rings[self.0.side().index()]
    }

    /// The number of its state.
    #[inline]
    pub fn state_number(&self) -> u16 {
        self.0.number()
    }

    /// Whether its state is one in which it receives.
    #[inline]
    pub fn receives(&self) -> bool {
        let state = self.0.info().states.get(usize::from(self.0.number()));
        state.is_some_and(|(_, sender)| *sender != self.0.side())
    }

    /// Whether the last message of the contract has been sent or received: it is only to be dropped.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.0.number() == Step::END
    }

    /// Sends a message. In a critical piece, as the host.
    #[inline]
    pub fn send_bytes(&mut self, number: u16, bytes: &[u8]) -> Result<(), Unsent> {
        let (contract, side) = (self.0.info(), self.0.side());
        let step = (contract.step(self.0.number(), side, number)).ok_or(Unsent::OutOfTurn)?;
        let place = self.0.place_mut();
        if place.peer_gone() {
            return Err(Unsent::Closed);
        }
        let book = place.book();
        book.check(bytes.len() as u64).map_err(Unsent::Limit)?;
        let ring = contract.rings[side.peer().index()];
        // SAFETY: the contract allows a message, so the next slot is free; nobody reads there before it is shown.
        let room = unsafe { place.room(ring) }.as_ptr();
        let rest = CORE.on_large_stack(|| {
            let mut reader = Reader::new(bytes);
            // SAFETY: room for a payload of this message.
            unsafe { (contract.wire.decode)(number, room, &mut reader) }.map(|()| reader.finish())
        });
        let rest = rest.map_err(Unsent::Malformed)?;
        // Now it is the sender's, as if it had made it; then it is sent.
        let mut adopt = Adopt::new(book, place.here());
        // SAFETY: the payload was written, and its blocks are in flight.
        unsafe { (contract.visit)(number, room, &mut adopt) };
        adopt.finish();
        let fits = book.check(0).map_err(Unsent::Limit);
        if let Err(error) = rest.map_err(Unsent::Malformed).and(fits) {
            // SAFETY: as above; visited once, and not looked at again.
            discard(|discard| unsafe { (contract.visit)(number, room, discard) });
            return Err(error);
        }
        let mut release = Release::new(place.region());
        // SAFETY: as above. The payload is shown once, with its number.
        unsafe {
            (contract.visit)(number, room, &mut release);
            place.owe(release.finish());
            place.show(ring, number);
        }
        place.state = step.next;
        place.announce_elsewhere();
        Ok(())
    }

    /// The number of the next message, if there is one.
    ///
    /// # Errors
    /// There is none, and the peer has gone.
    #[inline]
    pub fn poll(&self) -> Result<Option<u16>, ChannelClosed> {
        let (place, ring) = (self.0.place(), self.incoming());
        if ring.slots == 0 {
            return if place.peer_gone() {
                Err(ChannelClosed)
            } else {
                Ok(None)
            };
        }
        if let Some(number) = place.next(ring) {
            return Ok(Some(number));
        }
        if place.peer_gone() {
            // It may have sent before it went.
            return place.next(ring).map(Some).ok_or(ChannelClosed);
        }
        Ok(None)
    }

    /// Has `waiter` woken by the next message, or the peer's end; it polls once more before it parks.
    #[inline]
    pub fn register(&self, waiter: Waiter) {
        self.0.place().register(waiter);
    }

    /// Nobody waits any more.
    #[inline]
    pub fn unregister(&self) {
        self.0.place().unregister();
    }

    /// Writes the payload of the next message, which [`poll`](ByBytes::poll) has found, and says how long it is.
    /// In a critical piece. The message stays.
    #[inline]
    pub fn read_bytes(
        &self,
        number: u16,
        to: &mut [MaybeUninit<u8>],
    ) -> Result<usize, EncodeError> {
        let (contract, ring) = (self.0.info(), self.incoming());
        CORE.on_large_stack(|| {
            let mut writer = Writer::new(&mut [], to);
            // SAFETY: the message is there, with this number; it is only looked at.
            unsafe {
                let payload = self.0.place().payload(ring).as_ptr();
                (contract.wire.encode)(number, payload, &mut writer)?;
            }
            Ok(writer.finish().0)
        })
    }

    /// Drops the next message, which [`poll`](ByBytes::poll) has found, and goes to the state that it leads to. In a
    /// critical piece.
    #[inline]
    pub fn drop_next(&mut self, number: u16) {
        let (contract, ring) = (self.0.info(), self.incoming());
        let place = self.0.place_mut();
        place.settle(place.book());
        // SAFETY: the message is there, with this number; it is visited once, and then counted.
        discard(|discard| unsafe {
            (contract.visit)(number, place.payload(ring).as_ptr(), discard);
        });
        place.count_received();
        let step = contract.wire.steps.get(usize::from(number));
        place.state = step.map_or(Step::END, |step| step.next);
    }
}

impl Deref for ByBytes<'_> {
    type Target = AnyEndpoint;

    fn deref(&self) -> &AnyEndpoint {
        self.0
    }
}
