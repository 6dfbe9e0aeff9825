//! Threads that are ready to run, first come, first served.

use std::cell::Cell;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering, compiler_fence};

use crate::table::{Table, Zeroed};

// SAFETY: a number that may be zero.
unsafe impl Zeroed for AtomicU32 {}

/// As long as the worker's table of threads, each of which is in it at most once: it is never full, so
/// nothing is checked or allocated. Used by one OS thread; the entries are atomic for the type system only.
/// A thread may be ended between any two instructions of `push`: the entry counts once `tail` has moved.
#[derive(Debug)]
pub(crate) struct RunQueue {
    entries: Table<AtomicU32>,
    head: Cell<u32>,
    tail: Cell<u32>,
}

impl RunQueue {
    /// `capacity` is a power of two.
    pub(crate) fn new(capacity: usize) -> io::Result<RunQueue> {
        assert!(capacity.is_power_of_two());
        Ok(RunQueue {
            entries: Table::reserve(capacity)?,
            head: Cell::new(0),
            tail: Cell::new(0),
        })
    }

    #[inline]
    pub(crate) fn push(&self, slot: u32) {
        let tail = self.tail.get();
        if let Some(entry) = self.entry(tail) {
            entry.store(slot, Ordering::Relaxed);
        }
        compiler_fence(Ordering::SeqCst);
        self.tail.set(tail.wrapping_add(1));
    }

    #[inline]
    pub(crate) fn pop(&self) -> Option<u32> {
        let head = self.head.get();
        if head == self.tail.get() {
            return None;
        }
        self.head.set(head.wrapping_add(1));
        self.entry(head).map(|entry| entry.load(Ordering::Relaxed))
    }

    #[inline]
    fn entry(&self, position: u32) -> Option<&'static AtomicU32> {
        self.entries
            .get(position as usize & (self.entries.capacity() - 1))
    }
}
