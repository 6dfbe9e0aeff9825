//! Parking and unparking, the one way in which threads wait for each other.
//!
//! ```text
//!   a receiver                           its peer
//!   endpoint.waiter = current()          push the message
//!   look again; still empty?             unpark(endpoint.waiter)
//!   park(); look again ...
//! ```
//! An unpark before the park makes the park return at once, so nothing is lost between looking and parking.
//! Every park may also return for no reason; callers look again.

use std::time::Instant;

use host::HostThread;
pub(crate) use host::HostThreads;

use crate::critical::critical;
use crate::thread::{here, worker};

mod host;

/// A thread to wake: which worker, which of its threads, and which life of that place.
/// To wake one that has ended does nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(transparent)]
pub struct Waiter(u64);

const WORKER_BITS: u32 = 16;
const SLOT_BITS: u32 = 24;
const GENERATION_BITS: u32 = 64 - WORKER_BITS - SLOT_BITS;
/// The worker number of plain OS threads.
const HOST: u64 = (1 << WORKER_BITS) - 1;

impl Waiter {
    /// Nobody. Waking nobody does nothing.
    pub const NONE: Waiter = Waiter(0);

    /// For an atomic word; [`Waiter::NONE`] is 0.
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// The inverse of [`Waiter::to_bits`]. Any bits are harmless: what names no thread wakes none, and a
    /// thread woken for no reason looks again.
    pub const fn from_bits(bits: u64) -> Waiter {
        Waiter(bits)
    }

    /// Whether it is [`Waiter::NONE`].
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    #[inline]
    pub(crate) const fn thread(worker: u16, slot: u32, generation: u32) -> Waiter {
        let (generation, slot) = (generation as u64, slot as u64);
        Waiter(generation << (WORKER_BITS + SLOT_BITS) | slot << WORKER_BITS | worker as u64)
    }

    const fn host(slot: usize, generation: u32) -> Waiter {
        Waiter(
            (generation as u64) << (WORKER_BITS + SLOT_BITS) | (slot as u64) << WORKER_BITS | HOST,
        )
    }

    /// The generation after this one; never 0, which only [`Waiter::NONE`] has.
    pub(crate) const fn next_generation(generation: u32) -> u32 {
        if generation >= (1 << GENERATION_BITS) - 1 {
            1
        } else {
            generation + 1
        }
    }

    const fn worker(self) -> u64 {
        self.0 & HOST
    }

    #[inline]
    pub(crate) const fn slot(self) -> usize {
        (self.0 >> WORKER_BITS) as usize & ((1 << SLOT_BITS) - 1)
    }

    pub(crate) const fn generation(self) -> u32 {
        (self.0 >> (WORKER_BITS + SLOT_BITS)) as u32
    }
}

/// The calling thread: a process's thread, or a plain OS thread of the host.
#[inline]
pub fn current() -> Waiter {
    match here::running() {
        Some((_, thread)) => thread.waiter(),
        None => HostThread::current(),
    }
}

/// Waits until somebody unparks this thread; returns at once if somebody has since the last return.
///
/// Whatever else waits in between, a call of this crate or, on a plain OS thread, `std::sync::mpsc` and
/// `std::thread::scope`, may be woken in its place: who has called any such thing looks again before it parks.
#[inline]
pub fn park() {
    match here::running() {
        Some((worker, thread)) => worker.park(thread),
        None => host::park(None),
    }
}

/// [`park`], but not beyond `deadline`.
pub fn park_until(deadline: Instant) {
    match here::running() {
        Some((worker, thread)) => worker.park_until(thread, deadline),
        None => host::park(Some(deadline)),
    }
}

/// Wakes a thread, from any worker or plain OS thread. Everything written before is seen by the woken.
#[inline]
pub fn unpark(waiter: Waiter) {
    match here::worker() {
        Some(worker) if u64::from(worker.index()) == waiter.worker() => {
            let _whole = critical();
            worker.unpark(waiter);
        }
        _ => unpark_from_afar(waiter),
    }
}

/// [`unpark`] for one who may be ended in the middle of it, and is then unparked for again by its end.
/// Mostly the thread is one of this worker and waits.
#[inline]
pub(crate) fn unpark_again(waiter: Waiter) {
    match here::worker() {
        Some(worker) if worker.unpark_parked(waiter) => {}
        _ => unpark_any(waiter),
    }
}

#[cold]
#[inline(never)]
fn unpark_any(waiter: Waiter) {
    unpark(waiter);
}

fn unpark_from_afar(waiter: Waiter) {
    let _whole = critical();
    if waiter.worker() == HOST {
        host::unpark(waiter);
    } else if let Some(worker) = worker::all().get(waiter.worker() as usize) {
        worker.unpark_from_afar(waiter);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    #[test]
    fn a_host_thread_is_woken() {
        let seen = AtomicU64::new(0);
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(|| {
                seen.store(current().to_bits(), Ordering::Release);
                while seen.load(Ordering::Acquire) != 0 {
                    park();
                }
            });
            let waiter = loop {
                let bits = seen.load(Ordering::Acquire);
                if bits != 0 {
                    break Waiter::from_bits(bits);
                }
            };
            assert_ne!(waiter, current());
            seen.store(0, Ordering::Release);
            unpark(waiter);
            sleeper.join().expect("woken");
            unpark(waiter);
        });
    }

    #[test]
    fn an_unpark_before_the_park_is_kept() {
        unpark(current());
        park();
    }

    #[test]
    fn a_deadline_ends_the_wait() {
        let deadline = Instant::now() + Duration::from_millis(5);
        while Instant::now() < deadline {
            park_until(deadline);
        }
    }

    #[test]
    fn no_bits_are_dangerous() {
        for bits in [0, 1, u64::MAX, HOST, 1 << 40 | HOST, 1 << 63] {
            unpark(Waiter::from_bits(bits));
        }
    }
}
