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
use crate::thread::{here, workers};

pub(crate) mod host;

use crate::waiter::HOST;
pub use crate::waiter::Waiter;

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
/// `std::thread::scope`, may be woken in its place. A caller of any such thing looks again before it parks.
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
    } else if let Some(worker) = workers::all().get(waiter.worker() as usize) {
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
