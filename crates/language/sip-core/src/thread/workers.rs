//! All workers: each is taken by its own OS thread once, and others get what they may use.

use std::sync::OnceLock;

use super::worker::{SharedWorker, Worker};

/// Their places.
#[allow(missing_debug_implementations)]
pub(crate) struct Published(Box<[Worker]>);

// SAFETY: other OS threads get a `SharedWorker`, which is `Sync`. `Workers::take` gives a whole worker to the first that asks for
// it, and to nobody else. That one cannot pass it on, since a reference to a `Worker` is not `Send`.
unsafe impl Sync for Published {}
// SAFETY: workers are made by one OS thread before any other knows them. Nothing in them is bound to it.
unsafe impl Send for Published {}

__state!(OnceLock<Published> = OnceLock::new());

/// Has every OS thread find these workers from now on, unless there are some already.
pub(super) fn publish(workers: Box<[Worker]>) {
    let _ = state().set(Published(workers));
}

/// All of them; none before the start.
#[inline]
pub(crate) fn all() -> Workers {
    Workers(state().get())
}

/// All workers, as every OS thread may use them; none before the start.
#[derive(Clone, Copy)]
#[allow(missing_debug_implementations)]
pub struct Workers(Option<&'static Published>);

impl Workers {
    fn places(self) -> &'static [Worker] {
        self.0.map_or(&[], |published| &published.0)
    }

    /// How many there are.
    pub fn len(self) -> usize {
        self.places().len()
    }

    /// Whether there are none: nobody has started them.
    pub fn is_empty(self) -> bool {
        self.places().is_empty()
    }

    /// The one of this number, from 0.
    #[inline]
    pub fn get(self, index: usize) -> Option<&'static SharedWorker> {
        self.places().get(index).map(Worker::shared)
    }

    /// One after the other.
    pub fn iter(self) -> impl Iterator<Item = &'static SharedWorker> {
        self.places().iter().map(Worker::shared)
    }

    /// The one of this number, for the calling OS thread to be; `None` if there is none, or another OS thread has taken it.
    pub(super) fn take(self, index: usize) -> Option<&'static Worker> {
        self.places().get(index).filter(|worker| worker.take())
    }
}
