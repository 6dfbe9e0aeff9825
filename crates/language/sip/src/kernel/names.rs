//! Names, by path.

use crate::inner::EXCHANGE;
use crate::process::{self, names};
use mullion_sip_core::wait::{self, Waiter};

use super::read::{Out, text};
use super::refusal::answer;
use super::{Refusal, ends, offered, time};

/// # Safety
/// `length` bytes can be read at `path`, or it is null.
pub(super) unsafe extern "C" fn bind(path: *const u8, length: usize, contract: u32) -> u32 {
    let bound = || {
        // SAFETY: the caller promises a path of `length` bytes, which nobody writes until this call returns. A null is refused.
        let path = unsafe { text(path, length) }?;
        let contract = offered::contract(contract).ok_or(Refusal::Unknown)?;
        ends::process().ok_or(Refusal::NoProcess)?;
        Ok(process::bind_service(path, contract)?)
    };
    answer(bound())
}

/// # Safety
/// `length` bytes can be read at `path`, or it is null.
pub(super) unsafe extern "C" fn unbind(path: *const u8, length: usize) -> u32 {
    let unbound = || {
        // SAFETY: the caller promises a path of `length` bytes, which nobody writes until this call returns. A null is refused.
        let path = unsafe { text(path, length) }?;
        ends::process().ok_or(Refusal::NoProcess)?;
        names::unbind(path).map_err(|error| match error {
            // The caller learns no more of names that are another's.
            names::NameError::NotPermitted => Refusal::Unbound,
            error => error.into(),
        })
    };
    answer(unbound())
}

/// # Safety
/// `length` bytes can be read at `path`, and one number written at `channel`; or they are null.
pub(super) unsafe extern "C" fn accept(
    path: *const u8,
    length: usize,
    deadline: u64,
    channel: *mut u64,
) -> u32 {
    let accepted = || {
        // SAFETY: the caller promises a path of `length` bytes and room for a number. Nulls are refused by both.
        let (path, channel) = unsafe { (text(path, length)?, Out::new(channel)?) };
        loop {
            let last = time::has_passed(deadline);
            let waiter = if last { Waiter::NONE } else { wait::current() };
            let taken = ends::with(|ends| {
                let end = names::take_own(path, waiter)?;
                end.map(|end| {
                    let mut end = Some(EXCHANGE.open(end));
                    ends.add(&mut end)
                })
                .transpose()
            })?;
            match taken {
                Some(number) => {
                    channel.put(number);
                    return Ok(());
                }
                None if last => return Err(Refusal::Deadline),
                None => time::park_until(deadline),
            }
        }
    };
    answer(accepted())
}

/// # Safety
/// `length` bytes can be read at `path`, or it is null.
pub(super) unsafe extern "C" fn look_up(path: *const u8, length: usize, channel: u64) -> u32 {
    let opened = || {
        // SAFETY: the caller promises a path of `length` bytes, which nobody writes until this call returns. A null is refused.
        let path = unsafe { text(path, length) }?;
        // Lent, and not in a critical piece: a name in another OS process is waited for.
        let end = ends::with(|ends| ends.lend(channel))?;
        let opened = process::open(path, end);
        ends::with(|ends| match opened {
            Ok(()) => {
                ends.forget(channel);
                Ok(())
            }
            Err((error, end)) => {
                ends.give_back(channel, end);
                Err(error.into())
            }
        })
    };
    answer(opened())
}
