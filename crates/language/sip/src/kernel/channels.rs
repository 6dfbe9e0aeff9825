//! Channels by number, and their messages as bytes.

use std::mem::MaybeUninit;

use crate::inner::EXCHANGE;
use mullion_sip_core::wait;
use mullion_sip_exchange::channel::Side;

use super::ends::{self, Ends};
use super::read::{Out, slice};
use super::refusal::answer;
use super::{Refusal, offered, time};

/// Channels that one call may wait for.
pub const WAITS: usize = 64;

/// What is known of an end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Channel {
    /// The number of its contract; 0 if the host has not offered it.
    pub contract: u32,
    /// 0 for the client's end, 1 for the server's.
    pub side: u32,
    /// The number of its state, in the contract's order.
    pub state: u32,
    /// 1 if this end sends in this state, else 0.
    pub sends: u32,
}

/// # Safety
/// `digest` points to 32 bytes, `number` to room for one; either may be null.
pub(super) unsafe extern "C" fn contract(digest: *const u8, number: *mut u32) -> u32 {
    let found = || {
        // SAFETY: the caller promises 32 bytes at `digest` and room for a number. Nulls are refused by both.
        let (digest, number) = unsafe { (slice(digest, 32)?, Out::new(number)?) };
        let digest = <[u8; 32]>::try_from(digest).map_err(|_| Refusal::Malformed)?;
        number.put(offered::contract_of(digest).ok_or(Refusal::Unknown)?);
        Ok(())
    };
    answer(found())
}

/// # Safety
/// `client` and `server` point to room for one number each, or are null.
pub(super) unsafe extern "C" fn create_channel(
    contract: u32,
    client: *mut u64,
    server: *mut u64,
) -> u32 {
    let made = || {
        // SAFETY: the caller promises room for a number at each. A null is refused.
        let places = unsafe { (Out::new(client)?, Out::new(server)?) };
        let contract = offered::contract(contract).ok_or(Refusal::Unknown)?;
        let (client, server) = ends::with(|ends| {
            let [client, server] = EXCHANGE.channel(contract)?;
            let (mut client, mut server) = (Some(client), Some(server));
            let first = ends.add(&mut client)?;
            match ends.add(&mut server) {
                Ok(second) => Ok((first, second)),
                Err(refusal) => {
                    drop(ends.remove(first)?);
                    Err(refusal)
                }
            }
        })?;
        places.0.put(client);
        places.1.put(server);
        Ok(())
    };
    answer(made())
}

/// # Safety
/// `about` points to room for one, or is null.
pub(super) unsafe extern "C" fn channel(channel: u64, about: *mut Channel) -> u32 {
    let told = || {
        // SAFETY: the caller promises room for a `Channel`. A null is refused.
        let about = unsafe { Out::new(about) }?;
        let known = ends::with(|ends| {
            let end = ends.look(channel)?;
            Ok(Channel {
                contract: offered::contract_of(end.info().digest.0).unwrap_or(0),
                side: (end.side() == Side::Server).into(),
                state: end.state_number().into(),
                sends: (!end.receives()).into(),
            })
        })?;
        about.put(known);
        Ok(())
    };
    answer(told())
}

/// # Safety
/// `length` bytes can be read at `bytes`, or it is null.
pub(super) unsafe extern "C" fn send(
    channel: u64,
    message: u32,
    bytes: *const u8,
    length: usize,
) -> u32 {
    let sent = || {
        // SAFETY: the caller promises `length` bytes there, which nobody writes until this call returns. A null is refused.
        let bytes = unsafe { slice(bytes, length) }?;
        let message = u16::try_from(message).map_err(|_| Refusal::OutOfTurn)?;
        ends::with(|ends| {
            ends.get(channel)?.send_bytes(message, bytes)?;
            close_if_over(ends, channel)
        })
    };
    answer(sent())
}

/// # Safety
/// `room` bytes can be written at `bytes`, and one value at `message` and `length` each; or they are null.
pub(super) unsafe extern "C" fn receive(
    channel: u64,
    deadline: u64,
    message: *mut u32,
    bytes: *mut u8,
    room: usize,
    length: *mut usize,
) -> u32 {
    let received = || {
        // SAFETY: the caller promises room for `room` bytes, which nobody else uses until this call returns: so they may be
        // written through, and as `MaybeUninit` they may hold anything before. `slice` has refused what no slice may be.
        // For both numbers the caller promises room; nulls are refused.
        let (message, length, bytes) = unsafe {
            let bytes = slice(bytes.cast::<MaybeUninit<u8>>(), room)?;
            let bytes = std::slice::from_raw_parts_mut(bytes.as_ptr().cast_mut(), bytes.len());
            (Out::new(message)?, Out::new(length)?, bytes)
        };
        wait_for(&[channel], deadline)?;
        let (number, written) = ends::with(|ends| {
            let mut end = ends.get(channel)?;
            let number = end.poll()?.ok_or(Refusal::Deadline)?;
            let written = end.read_bytes(number, bytes)?;
            end.drop_next(number);
            close_if_over(ends, channel)?;
            Ok((number, written))
        })?;
        message.put(number.into());
        length.put(written);
        Ok(())
    };
    answer(received())
}

/// After the last message of its contract an end is nobody's.
fn close_if_over(ends: &mut Ends, channel: u64) -> Result<(), Refusal> {
    if ends.get(channel)?.is_over() {
        drop(ends.remove(channel)?);
    }
    Ok(())
}

pub(super) extern "C" fn close(channel: u64) -> u32 {
    answer(ends::with(|ends| {
        drop(ends.remove(channel)?);
        Ok(())
    }))
}

/// # Safety
/// `count` numbers can be read at `channels`, and one written at `index`; or they are null.
pub(super) unsafe extern "C" fn wait_any(
    channels: *const u64,
    count: usize,
    deadline: u64,
    index: *mut usize,
) -> u32 {
    let found = || {
        // SAFETY: the caller promises `count` numbers and room for one. Nulls are refused by both.
        let (channels, index) = unsafe { (slice(channels, count)?, Out::new(index)?) };
        if channels.len() > WAITS {
            return Err(Refusal::TooLong);
        }
        // Of our own, since other threads of the process may run meanwhile.
        let mut numbers = [0; WAITS];
        let numbers = &mut numbers[..channels.len()];
        numbers.copy_from_slice(channels);
        index.put(wait_for(numbers, deadline)?);
        Ok(())
    };
    answer(found())
}

/// Waits until one of the ends has a message or has lost its peer, and says which.
fn wait_for(numbers: &[u64], deadline: u64) -> Result<usize, Refusal> {
    loop {
        let ready = ends::with(|ends| match ready(ends, numbers)? {
            None if time::has_passed(deadline) => Err(Refusal::Deadline),
            None => Ok(note(ends, numbers)),
            ready => Ok(ready),
        })?;
        if let Some(ready) = ready {
            return Ok(ready);
        }
        time::park_until(deadline);
        ends::with(|ends| {
            forget(ends, numbers);
            Ok(())
        })?;
    }
}

/// The first end that need not be waited for. All must be ends that receive, where no other thread waits.
fn ready(ends: &mut Ends, numbers: &[u64]) -> Result<Option<usize>, Refusal> {
    let mut first = None;
    for (index, number) in numbers.iter().enumerate() {
        let end = ends.get(*number)?;
        if !end.receives() {
            return Err(Refusal::OutOfTurn);
        }
        if first.is_none() && end.poll() != Ok(None) {
            first = Some(index);
        }
    }
    Ok(first)
}

/// Has this thread woken by all of them, unless one of them is ready by now.
fn note(ends: &mut Ends, numbers: &[u64]) -> Option<usize> {
    for number in numbers {
        if let Ok(end) = ends.look(*number) {
            end.register(wait::current());
        }
        ends.wait_at(*number, true);
    }
    let ready = numbers
        .iter()
        .position(|number| ends.look(*number).is_ok_and(|end| end.poll() != Ok(None)));
    if ready.is_some() {
        forget(ends, numbers);
    }
    ready
}

fn forget(ends: &mut Ends, numbers: &[u64]) {
    for number in numbers {
        if let Ok(end) = ends.look(*number) {
            end.unregister();
        }
        ends.wait_at(*number, false);
    }
}
