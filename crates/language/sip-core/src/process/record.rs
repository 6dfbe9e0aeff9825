//! The place of a process.

use std::cell::Cell;
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use std::time::Duration;

use super::limits::Limits;
use crate::heap::Heap;
use crate::owners::Owner;
use crate::table::{Table, Zeroed};
use crate::thread::inbox::Link;

/// Places, number 0 (the host) included.
pub(crate) const PLACES: usize = 1 << 17;

/// All zero is a place that no process has had.
#[repr(C, align(64))]
#[allow(missing_debug_implementations)]
pub(crate) struct Process {
    // For every OS thread.
    /// From 1; grows at the end of each life.
    generation: AtomicU32,
    index: AtomicU32,
    home: AtomicU32,
    doomed: AtomicBool,
    thread_count: AtomicU32,
    pub(crate) start_link: Link,
    pub(crate) end_link: Link,
    // For the home worker only.
    /// The first of its threads, and its main thread; slot + 1, 0 for none.
    pub(crate) threads: Cell<u32>,
    pub(crate) main: Cell<u32>,
    pub(crate) alive: Cell<bool>,
    thread_limit: Cell<u32>,
    slice: Cell<u64>,
    pub(crate) heap: Heap,
}

// SAFETY: zero is no generation, no threads, an empty heap.
unsafe impl Zeroed for Process {}
// SAFETY: other OS threads touch the first, atomic part only; the cells are reached by way of the home worker.
unsafe impl Sync for Process {}

__state!(OnceLock<Table<Process, PLACES>> = OnceLock::new());

/// Reserves the table, once.
pub(crate) fn reserve() -> io::Result<()> {
    let table = state();
    if table.get().is_none() {
        // A second caller's table is dropped, and its address space with the program.
        let _ = table.set(Table::reserve()?);
    }
    Ok(())
}

/// The place with this number.
#[inline]
pub(crate) fn place(index: u32) -> Option<&'static Process> {
    state().get()?.get(index as usize)
}

/// How many places there are.
pub(crate) fn capacity() -> u32 {
    PLACES as u32
}

impl Process {
    /// A new life begins. The caller holds the tree, and nobody knows of this life yet.
    pub(super) fn prepare(&self, index: u32, home: u16) -> Owner {
        self.index.store(index, Ordering::Relaxed);
        if self.generation.load(Ordering::Relaxed) == 0 {
            self.generation.store(1, Ordering::Relaxed);
        }
        self.home.store(home.into(), Ordering::Relaxed);
        self.doomed.store(false, Ordering::Relaxed);
        self.owner()
    }

    /// On the home worker: what its threads may use. It has its heap.
    pub(super) fn open(&self, limits: &Limits) {
        self.thread_limit.set(limits.threads);
        self.slice
            .set(limits.slice.as_nanos().try_into().unwrap_or(u64::MAX));
        self.alive.set(true);
    }

    /// The life is over: its owner is nobody any more.
    pub(super) fn close(&self) {
        self.alive.set(false);
        self.main.set(0);
        let generation = self
            .generation
            .load(Ordering::Relaxed)
            .wrapping_add(1)
            .max(1);
        self.generation.store(generation, Ordering::Release);
        // Whoever reads something of the next life sees that this one is over: `exchange::share_of`.
        fence(Ordering::Release);
    }

    #[inline]
    pub(crate) fn owner(&self) -> Owner {
        let index = self.index.load(Ordering::Relaxed);
        Owner::new(index, self.generation.load(Ordering::Relaxed))
    }

    /// The number of its home worker.
    pub(crate) fn home(&self) -> u16 {
        self.home.load(Ordering::Relaxed) as u16
    }

    /// Marks it to be ended; its home worker does it.
    pub(super) fn doom(&self) {
        self.doomed.store(true, Ordering::Release);
    }

    pub(crate) fn is_doomed(&self) -> bool {
        self.doomed.load(Ordering::Relaxed)
    }

    pub(crate) fn slice_limit(&self) -> Duration {
        Duration::from_nanos(self.slice.get())
    }

    /// Whether it may have another thread.
    #[inline]
    pub(crate) fn may_start_thread(&self) -> bool {
        self.thread_count() < self.thread_limit.get()
    }

    pub(crate) fn thread_count(&self) -> u32 {
        self.thread_count.load(Ordering::Relaxed)
    }

    /// Only the home worker writes.
    #[inline]
    pub(crate) fn count_thread(&self, change: i32) {
        let count = self.thread_count().wrapping_add_signed(change);
        self.thread_count.store(count, Ordering::Relaxed);
    }
}
