//! Threads that are ready to run, first come, first served.

use std::cell::Cell;
use std::io;
use std::sync::atomic::{Ordering, compiler_fence};

use super::slot::{THREADS, Thread};
use crate::table::{Table, Zeroed};

type Entry = Cell<Option<&'static Thread>>;
// SAFETY: no thread.
unsafe impl Zeroed for Entry {}

/// So many are moved rather than followed through the table.
const FEW: u32 = 16;

/// Twice as long as the worker's table of threads, each of which is in it once (or twice, if its first wake was
/// by a process that ended in the middle of it): it is never full, so nothing is checked or allocated. Used by
/// one OS thread. A process may be ended between any two instructions of `push`: the entry counts once `tail`
/// has moved.
#[allow(missing_debug_implementations)]
pub(crate) struct RunQueue {
    entries: Table<Entry, { 2 * THREADS }>,
    head: Cell<u32>,
    tail: Cell<u32>,
}

impl RunQueue {
    pub(crate) fn new() -> io::Result<RunQueue> {
        Ok(RunQueue {
            entries: Table::reserve()?,
            head: Cell::new(0),
            tail: Cell::new(0),
        })
    }

    #[inline]
    pub(crate) fn push(&self, thread: &'static Thread) {
        let tail = self.tail.get();
        self.entries.around(tail as usize).set(Some(thread));
        compiler_fence(Ordering::SeqCst);
        self.tail.set(tail.wrapping_add(1));
    }

    #[inline]
    pub(crate) fn first(&self) -> Option<&'static Thread> {
        let head = self.head.get();
        if head == self.tail.get() {
            return None;
        }
        let first = self.entries.around(head as usize).get();
        // SAFETY: `push` has written it before it moved `tail` beyond it.
        Some(unsafe { first.unwrap_unchecked() })
    }

    /// Has the queue begin at the front of its table again, if few are in it: who goes round through all of it
    /// (4 MiB) meets no entry that is still in the cache. To be called now and then, and not while a process runs.
    #[cold]
    #[inline(never)]
    pub(crate) fn rewind(&self) {
        let (head, tail) = (self.head.get(), self.tail.get());
        let count = tail.wrapping_sub(head);
        if count > FEW {
            return;
        }
        let mut waiting = [None; FEW as usize];
        for (index, entry) in (0..count).zip(&mut waiting) {
            let from = head.wrapping_add(index) as usize;
            *entry = self.entries.around(from).get();
        }
        for (index, entry) in waiting.into_iter().enumerate() {
            self.entries.around(index).set(entry);
        }
        self.head.set(0);
        self.tail.set(count);
    }

    /// Takes the first, if there is one.
    #[inline]
    pub(crate) fn pop(&self) -> Option<&'static Thread> {
        let first = self.first()?;
        self.head.set(self.head.get().wrapping_add(1));
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    #[test]
    fn a_queue_that_begins_anew_keeps_everybody_in_turn() {
        let threads = Table::<Thread, 64>::reserve().expect("address space");
        let queue = RunQueue::new().expect("address space");
        // The counts wrap, and so does the table.
        queue.head.set(u32::MAX - 100);
        queue.tail.set(u32::MAX - 100);
        let mut model = VecDeque::new();
        for step in 0..20_000usize {
            // Up to 40 wait, more than are moved, and down to none.
            let grows = (step / 40).is_multiple_of(2);
            for _ in 0..if grows { 2 } else { 1 } {
                let thread = threads.around(step * 7);
                queue.push(thread);
                model.push_back(thread);
            }
            for _ in 0..if grows { 1 } else { 2 } {
                let taken = queue.pop().map(std::ptr::from_ref);
                assert_eq!(taken, model.pop_front().map(std::ptr::from_ref));
            }
            if step.is_multiple_of(3) {
                queue.rewind();
                assert!(queue.head.get() == 0 || model.len() > FEW as usize);
            }
        }
        while let Some(thread) = model.pop_front() {
            assert!(queue.pop().is_some_and(|first| std::ptr::eq(first, thread)));
        }
        assert!(queue.pop().is_none());
    }
}
