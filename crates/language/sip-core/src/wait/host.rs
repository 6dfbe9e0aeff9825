//! Plain OS threads, that may hold endpoints too: a table of them, and the standard library's parking.

use std::sync::{Mutex, MutexGuard};
use std::thread::{self, Thread};
use std::time::Instant;

use crate::waiter::Waiter;

/// The table.
pub(crate) struct HostThreads(Vec<Place>);

impl HostThreads {
    const fn new() -> HostThreads {
        HostThreads(Vec::new())
    }
}

__state!(Mutex<HostThreads> = Mutex::new(HostThreads::new()));

/// A place of the table; its generation grows with each thread that leaves it.
struct Place {
    generation: u32,
    thread: Option<Thread>,
}

/// The calling thread's entry in the table, taken at its first wait and left at its end.
pub(super) struct HostThread(Waiter);

impl HostThread {
    pub(super) fn current() -> Waiter {
        thread_local!(static SELF: HostThread = HostThread::enter());
        SELF.with(|own| own.0)
    }

    fn enter() -> HostThread {
        let threads = &mut threads().0;
        let slot = threads
            .iter()
            .position(|place| place.thread.is_none())
            .unwrap_or_else(|| {
                threads.push(Place {
                    generation: 1,
                    thread: None,
                });
                threads.len() - 1
            });
        let place = &mut threads[slot];
        place.thread = Some(thread::current());
        HostThread(Waiter::host(slot, place.generation))
    }
}

impl Drop for HostThread {
    fn drop(&mut self) {
        let place = &mut threads().0[self.0.slot()];
        place.thread = None;
        place.generation = Waiter::next_generation(place.generation);
    }
}

pub(super) fn park(deadline: Option<Instant>) {
    match deadline {
        None => thread::park(),
        Some(deadline) => thread::park_timeout(deadline.saturating_duration_since(Instant::now())),
    }
}

pub(super) fn unpark(waiter: Waiter) {
    let thread = threads().0.get(waiter.slot()).and_then(|place| {
        (place.generation == waiter.generation()).then(|| place.thread.clone())?
    });
    if let Some(thread) = thread {
        thread.unpark();
    }
}

fn threads() -> MutexGuard<'static, HostThreads> {
    state()
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}
