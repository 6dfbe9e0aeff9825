//! States and messages as types, so that an endpoint can do nothing but what its contract allows.
//!
//! ```text
//!   Contract::Messages = (Ask, (Reply, ()))      every message once, in the order of the numbers
//!   Endpoint<C, SIDE, S>::send::<M>(payload)     compiles if M is of C, leaves from S, and SIDE sends in S
//!   Info::of::<C>()                              digest, room and visitors, from the same payload types
//! ```
//! [`contract!`](crate::contract) writes implementations of the traits below and nothing else that is unsafe. A program
//! can give the name `mullion_sip` to a crate of its own. Then some names in the macro's code are not ours. So each
//! fact is stated once, and in a place where a trait of this crate says what types are allowed. A payload's type is
//! [`Message::Payload`], and sending, receiving, digest and room follow from it. If the trait that the program names is
//! another one, no [`Endpoint`](super::endpoint::Endpoint) of ours has anything to do with it.

use std::marker::PhantomData;

use crate::exchange::coding::{COPIED, DecodeError, EncodeError, Reader, Writer};
use crate::exchange::visitor::Visitor;
use crate::exchange::{Exchange, Handles};
use mullion_sip_digest::Digest;

use super::contract::{Contract, Slot, slot};

/// A state of a contract.
///
/// # Safety
/// `INDEX` is its place in [`Contract::STATES`], and `SENDER` the index of the side that sends in it. The type has
/// [`Sends`] for that side, [`Receives`] for the other one, and neither for any other.
pub unsafe trait State: 'static {
    /// Whose.
    type Contract: Contract;
    /// Its place.
    const INDEX: u16;
    /// The index of the side that sends.
    const SENDER: usize;
}

/// A state in which a side sends.
///
/// # Safety
/// See [`State`].
pub unsafe trait Sends<const SIDE: usize>: State {}

/// A state in which a side receives.
///
/// # Safety
/// See [`State`].
pub unsafe trait Receives<const SIDE: usize>: State {}

/// After the last message.
#[derive(Debug)]
pub enum End {}

/// A message of a contract.
///
/// # Safety
/// The contract has it, between these states and with this number, which is its place in [`Contract::Messages`].
/// `COVERED` is by `Payload` with a marker in the place of each endpoint of the contract itself.
pub unsafe trait Message: 'static {
    /// Whose.
    type Contract: Contract;
    /// The state that it is sent in.
    type From: State<Contract = Self::Contract>;
    /// The next one, or [`End`].
    type Next: 'static;
    /// What it carries.
    type Payload: Exchange;
    /// What the digest covers. (No type: a program could name the markers by it, and implement its own traits for them.)
    const COVERED: Covered<Self::Payload> = Covered::by::<Self::Payload>();
    /// By which it travels.
    const NUMBER: u16;
}

/// The digest that a payload has in its contract's digest.
#[derive(Debug)]
pub struct Covered<P> {
    digest: Digest,
    _payload: PhantomData<fn() -> P>,
}

impl<P: Exchange> Covered<P> {
    /// By a type that is laid out as the payload is.
    pub const fn by<D: Exchange>() -> Self {
        assert!(size_of::<P>() == size_of::<D>() && align_of::<P>() == align_of::<D>());
        Covered {
            digest: D::DIGEST,
            _payload: PhantomData,
        }
    }
}

/// The messages of a contract: a list of types. Only pairs and the empty list are lists.
pub trait Messages<C> {
    /// How many.
    const COUNT: u16;
    /// Of all payloads, in order.
    const DIGEST: Digest;
    /// The largest size and alignment of payloads, by the index of the receiving side.
    const ROOM: [Slot; 2];

    /// How many bytes the payload of a message is, if these are what is written of it and any bytes are one
    /// ([`Copied`](crate::exchange::coding::Copied)).
    fn copied(number: u16) -> Option<usize>;

    /// Visits the payload of a message.
    ///
    /// # Safety
    /// `payload` points to the payload of the message with this number.
    unsafe fn visit(number: u16, payload: *const u8, visitor: &mut dyn Visitor);

    /// Writes the payload of a message.
    ///
    /// # Safety
    /// As for [`Messages::visit`].
    ///
    /// # Errors
    /// It cannot leave.
    unsafe fn encode(
        number: u16,
        payload: *const u8,
        to: &mut Writer<'_>,
    ) -> Result<(), EncodeError>;

    /// Reads the payload of a message.
    ///
    /// # Safety
    /// `payload` points to room for the payload of the message with this number.
    ///
    /// # Errors
    /// It is none, or there is no such message.
    unsafe fn decode(
        number: u16,
        payload: *mut u8,
        from: &mut Reader<'_>,
    ) -> Result<(), DecodeError>;
}

impl<C: Contract> Messages<C> for () {
    const COUNT: u16 = 0;
    const DIGEST: Digest = Digest::new().finish();
    const ROOM: [Slot; 2] = [(0, 1); 2];

    fn copied(_: u16) -> Option<usize> {
        None
    }

    // SAFETY: a contract without messages has none to look at, and these three touch none of their pointers.
    unsafe fn visit(_: u16, _: *const u8, _: &mut dyn Visitor) {}

    unsafe fn encode(_: u16, _: *const u8, _: &mut Writer<'_>) -> Result<(), EncodeError> {
        Ok(())
    }

    unsafe fn decode(_: u16, _: *mut u8, _: &mut Reader<'_>) -> Result<(), DecodeError> {
        Err(DecodeError::Invalid("message of the contract"))
    }
}

impl<C: Contract, M: Message<Contract = C>, Rest: Messages<C>> Messages<C> for (M, Rest) {
    const COUNT: u16 = 1 + Rest::COUNT;
    const DIGEST: Digest = Digest::new()
        .digest(M::COVERED.digest)
        .digest(Rest::DIGEST)
        .finish();
    const ROOM: [Slot; 2] = {
        let mut room = Rest::ROOM;
        let receiver = 1 - <M::From as State>::SENDER;
        let (size, align) = slot::<M::Payload>();
        let (most, strictest) = room[receiver];
        room[receiver] = (
            if size > most { size } else { most },
            if align > strictest { align } else { strictest },
        );
        room
    };

    #[inline]
    fn copied(number: u16) -> Option<usize> {
        if number != M::NUMBER {
            return Rest::copied(number);
        }
        let size = size_of::<M::Payload>();
        (<M::Payload as Exchange>::PLAIN && size <= COPIED).then_some(size)
    }

    unsafe fn visit(number: u16, payload: *const u8, visitor: &mut dyn Visitor) {
        if number == M::NUMBER {
            // SAFETY: the caller promises a payload of the message with this number, and `Message` that it is of this type.
            unsafe { &*payload.cast::<M::Payload>() }.visit(visitor);
        } else {
            // SAFETY: the caller promises a payload of the message with this number, which is one of the rest.
            unsafe { Rest::visit(number, payload, visitor) }
        }
    }

    unsafe fn encode(
        number: u16,
        payload: *const u8,
        to: &mut Writer<'_>,
    ) -> Result<(), EncodeError> {
        if number == M::NUMBER {
            // SAFETY: the caller promises a payload of the message with this number, and `Message` that it is of this type.
            unsafe { &*payload.cast::<M::Payload>() }.encode(to)
        } else {
            // SAFETY: the caller promises a payload of the message with this number, which is one of the rest.
            unsafe { Rest::encode(number, payload, to) }
        }
    }

    unsafe fn decode(
        number: u16,
        payload: *mut u8,
        from: &mut Reader<'_>,
    ) -> Result<(), DecodeError> {
        if number == M::NUMBER {
            let decoded = <M::Payload as Exchange>::decode(from)?;
            // SAFETY: the caller promises room for a payload of the message with this number, and `Message` that it is of this type.
            unsafe { payload.cast::<M::Payload>().write(decoded) };
            Ok(())
        } else {
            // SAFETY: the caller promises room for a payload of the message with this number, which is one of the rest.
            unsafe { Rest::decode(number, payload, from) }
        }
    }
}
