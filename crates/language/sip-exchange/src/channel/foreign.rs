//! An end of a channel that the kernel holds for a peer in another OS process.
//!
//! The process's endpoint is as ever. It finds its peer elsewhere, and where it would wake it there is a
//! bridge instead, which takes messages out and puts others in.

use std::ptr::NonNull;
use std::sync::atomic::Ordering;

use crate::exchange::HeapError;
use crate::exchange::region::Region;
use crate::exchange::sendable::Handles;
use crate::exchange::walk::{Discard, Release};
use crate::inner::CORE;

use super::AnyEndpoint;
use super::contract::{Info, Side};
use super::place::{EndpointPlace, Hook};
use crate::exchange::blocks::discard;
use crate::exchange::coding::{DecodeError, ENDS, EncodeError, Reader, Writer};
use crate::exchange::ends::Foreign;
use crate::exchange::sizes::SMALLEST;
use crate::exchange::visitor::Visitor;

impl Foreign {
    /// Takes an end from its owner.
    pub(crate) fn take(end: AnyEndpoint) -> Foreign {
        let _critical = CORE.critical();
        let mut release = Release::new(Region::get());
        end.visit(&mut release);
        let bytes = release.finish();
        crate::exchange::accounts::of(mullion_sip_core::owner::current()).subtract(bytes);
        Foreign(end.into_place().cast())
    }

    /// Takes an end that is in flight out of the message that it is in, which is to be dropped without it.
    ///
    /// # Safety
    /// It is there, and the caller's alone.
    pub(crate) unsafe fn lend(end: NonNull<EndpointPlace>) -> Foreign {
        let record = Region::around(end).record(Region::id(end));
        // SAFETY: the end's block has a record, and the caller promises that the end is its alone.
        unsafe { (*record).holder = (*record).holder.lent() };
        Foreign(end.cast())
    }

    /// The message keeps it after all.
    pub fn stay(self) {
        let record = Region::around(self.0).record(Region::id(self.0));
        // SAFETY: the end is this value's alone.
        unsafe { (*record).holder = (*record).holder.in_flight() };
    }

    /// A new channel in a state: one side's end in flight, and the other one.
    ///
    /// # Errors
    /// The heap is used up.
    pub(crate) fn pair(
        contract: &'static Info,
        side: Side,
        state: u16,
    ) -> Result<(NonNull<EndpointPlace>, Foreign), HeapError> {
        let [client, server] = super::place::create_in_flight(contract, state)?;
        Ok(match side {
            Side::Client => (client, Foreign(server.cast())),
            Side::Server => (server, Foreign(client.cast())),
        })
    }

    fn place(&self) -> &EndpointPlace {
        // SAFETY: the end is this value's alone.
        unsafe { self.0.cast().as_ref() }
    }

    fn place_mut(&mut self) -> &mut EndpointPlace {
        // SAFETY: the end is this value's alone, which is borrowed alone.
        unsafe { self.0.cast().as_mut() }
    }

    /// Its contract.
    #[inline]
    pub fn contract(&self) -> &'static Info {
        self.place().contract
    }

    /// Its side.
    #[inline]
    pub fn side(&self) -> Side {
        self.place().side
    }

    /// The state that it was in when the kernel took it.
    #[inline]
    pub fn state(&self) -> u16 {
        self.place().state
    }

    /// As [`EndpointPlace::channel_address`].
    pub fn channel_address(&self) -> usize {
        self.place().channel_address()
    }

    /// Whom the peer's end tells, if the kernel has that too.
    pub fn peers_hook(&self) -> *const Hook {
        self.place().peers_hook()
    }

    /// Whether the process's endpoint has closed.
    #[inline]
    pub fn peer_gone(&self) -> bool {
        self.place().peer_gone()
    }

    /// From now on the process's endpoint calls the hook. What it did before is to be looked for.
    pub fn attach(&self, hook: *const Hook) {
        self.place()
            .mine()
            .bridge
            .store(hook.cast_mut(), Ordering::Release);
        super::line::order();
    }

    /// The process's next message.
    #[inline]
    pub fn next(&self) -> Option<u16> {
        let place = self.place();
        let ring = place.contract.rings[place.side.index()];
        if ring.slots == 0 {
            return None;
        }
        place.next(ring)
    }

    /// Where the payload of the process's next message is.
    ///
    /// # Safety
    /// There is one.
    #[inline]
    pub unsafe fn payload(&self) -> NonNull<u8> {
        let place = self.place();
        // SAFETY: the ring is this side's.
        unsafe { place.payload(place.contract.rings[place.side.index()]) }
    }

    /// The process's next message has gone: its payload is not looked at again.
    #[inline]
    pub fn count_received(&mut self) {
        self.place_mut().count_received();
    }

    /// Drops the process's next message, which has this number.
    ///
    /// # Safety
    /// It is there, and was not read out.
    #[inline]
    pub unsafe fn drop_next(&mut self, number: u16) {
        discard(|discard| {
            // SAFETY: by the caller; it is visited once, and then counted.
            unsafe { (self.contract().visit)(number, self.payload().as_ptr(), discard) };
            self.count_received();
        });
    }

    /// Where the payload of the next message to the process is to be written.
    ///
    /// # Safety
    /// The contract allows a message now.
    #[inline]
    pub unsafe fn room(&self) -> NonNull<u8> {
        let place = self.place();
        // SAFETY: by the caller the slot is free.
        unsafe { place.room(place.contract.rings[place.side.peer().index()]) }
    }

    /// Shows the process the message whose payload was written.
    ///
    /// # Safety
    /// It was, and the contract allows a message with this number now.
    #[inline]
    pub unsafe fn show(&mut self, number: u16) {
        let ring = self.contract().rings[self.side().peer().index()];
        // SAFETY: the payload of this message lies in the slot, and the bridge has this side's place alone.
        unsafe { self.place_mut().show(ring, number) };
        super::line::order();
        self.place().wake_peer();
    }

    /// Closes the end.
    pub fn close(self) {
        discard(|discard: &mut Discard| {
            discard.endpoint(self.0.cast());
        });
    }
}

impl Writer<'_> {
    /// An endpoint of the message, which goes along: all that is written is its number.
    pub(crate) fn endpoint(&mut self, end: NonNull<EndpointPlace>) -> Result<(), EncodeError> {
        let leaving = self.leaving.as_deref_mut().ok_or(EncodeError::Endpoint)?;
        if leaving.ends.len() == ENDS {
            return Err(EncodeError::TooManyEnds);
        }
        let ticket = leaving.next;
        leaving.next = ticket.wrapping_add(1);
        // SAFETY: it is in a message that is being sent, whose writer has it alone.
        leaving.ends.push((ticket, unsafe { Foreign::lend(end) }));
        self.bytes(&ticket.to_le_bytes())
    }
}

impl Reader<'_> {
    /// An endpoint of that side in that state: of a new channel, whose other end is for the kernel to join to wherever
    /// the peer is. Whoever sends endpoints numbers them, so that each comes once.
    pub(crate) fn endpoint(
        &mut self,
        contract: &'static Info,
        side: Side,
        state: u16,
    ) -> Result<NonNull<EndpointPlace>, DecodeError> {
        let ticket = u32::from_le_bytes(self.array()?);
        for bytes in [contract.size, SMALLEST, SMALLEST] {
            self.block(bytes)?;
        }
        let arriving = self.arriving.as_deref_mut();
        let arriving = arriving.ok_or(DecodeError::Invalid("endpoint: none can come here"))?;
        if ticket != arriving.next {
            return Err(DecodeError::Invalid("number of an endpoint"));
        }
        if arriving.ends.len() == ENDS {
            return Err(DecodeError::TooManyEnds);
        }
        let (end, peer) = Foreign::pair(contract, side, state)?;
        arriving.next = ticket.wrapping_add(1);
        arriving.ends.push((ticket, peer));
        Ok(end)
    }
}
