//! Control stacks: regions with the thread control block at the foot of each.
//!
//! ```text
//! 4 MiB  ->  +-----------------------+
//!            | control stack         |  grows down
//! 256 KiB    +-----------------------+
//!            | reserve, 192 KiB      |  closed, but for a handler of the host's that
//!  64 KiB    +-----------------------+  does not fit above (`reserve`)
//!            | guard, 8 KiB          |
//! 56 KiB     +-----------------------+
//!            | alternate stack for   |  signals arrive here, unless the host's
//!            | signals, 48 KiB       |  own handlers want it otherwise
//!  8 KiB     +-----------------------+
//!            | guard, 4 KiB          |
//!  4 KiB     +-----------------------+
//!            | thread control block  |
//! 0, aligned +-----------------------+
//! ```
//! Each thread that enters a domain gets one such region and keeps it until it
//! ends; then the region waits for the next thread.

use crate::access::{Access, protection};
use crate::records::{self, Decided};
use mullion_abi::CONTROL_REGION;
use mullion_report::error::Error;
use std::ops::Range;
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) const BLOCK: u64 = 0x1000;
/// Bytes of control stack that an invocation must have to begin.
pub(crate) const LEAST_ROOM: u64 = 0x1000;
pub(crate) const ALTERNATE: Range<u64> = 0x2000..0xe000;
/// Below the control stack, for handlers of the host's.
pub(crate) const RESERVE: Range<u64> = 0x1_0000..CONTROL_LOW;
/// Lowest offset of the control stack itself.
pub(crate) const CONTROL_LOW: u64 = 0x4_0000;

/// Greatest size of a control stack, in bytes.
pub const MAX_CONTROL_STACK: u64 = CONTROL_REGION - CONTROL_LOW - TOP;
/// Bytes left alone at its top.
pub(crate) const TOP: u64 = 64;
/// Greatest size in an invocation with limits: less than the greatest, so that `is_outside` tells the two
/// apart. Whoever leaves it by a jump leaves its limits behind.
pub(crate) const MAX_LIMITED: u64 = MAX_CONTROL_STACK - 64;
/// Smallest size that is kept to.
pub(crate) const MIN_CONTROL_STACK: u64 = 2 * LEAST_ROOM;

/// Regions of threads that have ended: the addresses of their feet.
static FREE: Mutex<Vec<u64>> = Mutex::new(Vec::new());

/// The foot of a region for a thread: one that waits, or a new one.
pub(crate) fn take() -> Result<u64, Error> {
    let waiting = free().pop();
    waiting.map_or_else(reserve, Ok)
}

/// Of a thread that has ended: what its control stack holds is dropped. Nothing runs there.
pub(crate) fn clear(foot: u64) {
    let stack: *mut libc::c_void = ptr::with_exposed_provenance_mut((foot + CONTROL_LOW) as usize);
    // SAFETY: the pages stay mapped, and no reference of Rust's points to a control stack. The block and the
    // alternate stack, which may still be in use, lie below it.
    unsafe {
        libc::madvise(
            stack,
            (CONTROL_REGION - CONTROL_LOW) as usize,
            libc::MADV_DONTNEED,
        )
    };
}

/// The region waits for the next thread: nobody uses any of it.
pub(crate) fn put_back(foot: u64) {
    free().push(foot);
}

fn free() -> MutexGuard<'static, Vec<u64>> {
    FREE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tests: regions that wait, put aside so that a new one is reserved.
#[cfg(test)]
pub(crate) fn take_free() -> Vec<u64> {
    std::mem::take(&mut *free())
}

#[cfg(test)]
pub(crate) fn put_free(aside: Vec<u64>) {
    free().extend(aside);
}

/// Tests: gives those that wait back to the kernel.
#[cfg(test)]
pub(crate) fn release_free() {
    take_free().into_iter().for_each(unreserve);
}

/// Gives a region back to the kernel that no thread has, or ever had.
#[expect(clippy::disallowed_methods, reason = "nobody loses anything")]
fn unreserve(foot: u64) {
    let region = ptr::with_exposed_provenance_mut(foot as usize);
    // SAFETY: a region that `reserve` has made, and of which nobody else knows.
    unsafe { libc::munmap(region, CONTROL_REGION as usize) };
}

const RESERVING: &str = "reserving a control stack";

/// A new region with its guards; the address of its foot. It is the host's, and domains have nothing of it:
/// the supervisor is asked for the whole.
#[expect(
    clippy::disallowed_methods,
    reason = "reserved without access; what was reserved goes back"
)]
fn reserve() -> Result<u64, Error> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let length = 2 * CONTROL_REGION;
    // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
    let start = unsafe {
        libc::mmap(
            ptr::null_mut(),
            length as usize,
            libc::PROT_NONE,
            flags,
            -1,
            0,
        )
    };
    if start == libc::MAP_FAILED {
        return Err(Error::last(RESERVING));
    }
    let start = start.expose_provenance() as u64;
    let foot = start.next_multiple_of(CONTROL_REGION);
    for (from, to) in [(start, foot), (foot + CONTROL_REGION, start + length)] {
        if from < to {
            // SAFETY: the part of the new mapping outside of the region.
            unsafe {
                libc::munmap(
                    ptr::with_exposed_provenance_mut(from as usize),
                    (to - from) as usize,
                )
            };
        }
    }
    let opened = records::for_the_host(foot..foot + CONTROL_REGION, |decided| {
        for part in [0..BLOCK, ALTERNATE, CONTROL_LOW..CONTROL_REGION] {
            open(decided, foot + part.start..foot + part.end)?;
        }
        Ok(())
    });
    if let Err(error) = opened {
        unreserve(foot);
        return Err(error);
    }
    Ok(foot)
}

/// Makes a part of a region readable and writable, by the supervisor's yes.
#[expect(clippy::disallowed_methods, reason = "by the supervisor's yes")]
fn open(decided: &Decided<'_>, part: Range<u64>) -> Result<(), Error> {
    let (start, end) = (part.start, part.end);
    if !decided.allows(&part, Access::ReadWrite) {
        return Err(Error::Undecided { start, end });
    }
    let writable = protection(Access::ReadWrite);
    let address = ptr::with_exposed_provenance_mut(start as usize);
    // SAFETY: the caller has just reserved it, and nobody knows of it.
    match unsafe { libc::mprotect(address, (end - start) as usize, writable) } {
        0 => Ok(()),
        _ => Err(Error::last(RESERVING)),
    }
}
