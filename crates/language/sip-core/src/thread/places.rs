//! What a process's thread has of its worker, a place and a stack: how it comes by them, and how they go back.

use super::fiber::NewFiber;
use super::slot::{State, Thread};
use super::stacks::{Stack, ThreadError};
use super::worker::Worker;
use crate::decide;
use crate::owners::Owner;
use crate::process::Process;

impl Worker {
    /// A new thread for a process of this worker, ready to run. The caller is in a critical piece, or is the
    /// scheduler, and allocates as the host.
    #[inline]
    pub(crate) fn add(
        &self,
        process: &'static Process,
        fiber: NewFiber,
    ) -> Result<&'static Thread, NewFiber> {
        let Some(thread) = self.free_place() else {
            return Err(fiber);
        };
        thread.renew(self.index());
        thread.token.set(false);
        thread.deadline.set(None);
        thread.locals.set(std::ptr::null_mut());
        thread.process.set(Some(process));
        thread.heap.set(Some(&process.heap));
        thread.fiber.fill(fiber);
        self.join(process, thread);
        self.make_ready(thread);
        Ok(thread)
    }

    #[inline]
    fn free_place(&self) -> Option<&'static Thread> {
        let free = self.free.get();
        if free != 0 {
            let thread = self.numbered(free)?;
            self.free.set(thread.next.get());
            return Some(thread);
        }
        let slot = self.unused.get();
        let thread = self.place(slot)?;
        self.unused.set(slot + 1);
        thread.slot.set(slot);
        Some(thread)
    }

    fn join(&self, process: &Process, thread: &Thread) {
        let number = thread.slot.get() + 1;
        let next = process.threads.replace(number);
        thread.next.set(next);
        thread.previous.set(0);
        if let Some(next) = self.numbered(next) {
            next.previous.set(number);
        }
        process.count_thread(1);
    }

    fn part(&self, process: &Process, thread: &Thread) {
        let (previous, next) = (thread.previous.get(), thread.next.get());
        match self.numbered(previous) {
            Some(previous) => previous.next.set(next),
            None => process.threads.set(next),
        }
        if let Some(next) = self.numbered(next) {
            next.previous.set(previous);
        }
        process.count_thread(-1);
    }

    /// Shows where the stacks of a process of this worker are: first address and bytes.
    pub(crate) fn each_stack(&self, process: &Process, mut show: impl FnMut(usize, usize)) {
        let mut thread = self.numbered(process.threads.get());
        while let Some(current) = thread {
            if let Some((start, bytes)) = current.fiber.range() {
                show(start, bytes);
            }
            thread = self.numbered(current.next.get());
        }
    }

    /// A thread of a process that lives on has run for the last time.
    pub(super) fn end_thread(&self, process: &Process, thread: &Thread) {
        self.part(process, thread);
        self.vacate(thread);
        self.release(thread);
    }

    /// Ends all threads of a process of this worker. None of them runs.
    pub(crate) fn end_threads(&self, process: &'static Process) {
        while let Some(thread) = self.numbered(process.threads.get()) {
            self.part(process, thread);
            self.forget_deadline(thread);
            let ready = thread.state.get() == State::Ready;
            self.vacate(thread);
            if ready {
                thread.state.set(State::Gone);
            } else {
                self.release(thread);
            }
        }
    }

    /// Takes the coroutine from a place. Waiters that name its thread wake nobody from now on.
    fn vacate(&self, thread: &Thread) {
        thread.renew(self.index());
        let process = thread.process.take();
        thread.heap.set(None);
        if let Some(stack) = thread.fiber.empty() {
            match process {
                Some(process) => self.take_back(process.owner(), stack),
                None => self.stacks.give(stack),
            }
        }
    }

    /// A stack that is to be a thread's of the process.
    #[inline]
    pub(crate) fn stack_for(&self, process: Owner) -> Result<Stack, ThreadError> {
        let stack = self.stacks.take().map_err(|_| ThreadError::NoStack)?;
        let (start, bytes) = stack.range();
        if let Err(refused) = decide::give(process, start, bytes) {
            self.stacks.give(stack);
            return Err(refused.into());
        }
        Ok(stack)
    }

    /// A stack of the process's is nobody's again.
    #[inline]
    pub(crate) fn take_back(&self, process: Owner, stack: Stack) {
        let (start, bytes) = stack.range();
        decide::take_back(process, start, bytes);
        self.stacks.give(stack);
    }

    /// The place is free for another thread.
    pub(super) fn release(&self, thread: &Thread) {
        thread.state.set(State::Free);
        thread.next.set(self.free.replace(thread.slot.get() + 1));
    }
}
