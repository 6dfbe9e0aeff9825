//! A worker: one OS thread that runs the threads of its processes in turn.

use std::cell::Cell;
use std::io;
use std::ops::Deref;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering, compiler_fence};
use std::time::Duration;

use super::calls::Wait;
use super::inbox::{Bed, Inbox, Link, Links};
use super::run_queue::RunQueue;
use super::slot::{State, THREADS, Thread};
use super::stacks::Stacks;
use super::switch;
use super::timers::Timers;
use crate::heap::{Heap, Pool};
use crate::process::{Cause, Message, place};
use crate::system;
use crate::table::Table;
use crate::waiter::Waiter;

/// Has a worker look whether what it runs is to end. Ignored by default, and unused by nearly everybody, so a stray one
/// does no harm.
pub(super) const INTERRUPT: i32 = libc::SIGURG;

/// A worker. Every OS thread may use the fields up to `threads`, but for each `Cell`. The rest is reached through
/// `here::worker`, which only its own OS thread gets.
#[allow(missing_debug_implementations)]
pub struct Worker {
    index: u16,
    pub(crate) inbox: Inbox,
    survey_link: Link,
    /// What it looks for beside its inbox, once a crate above has such a thing.
    events: OnceLock<&'static Events>,
    /// The processor that it stays on, from 1; 0 if it stays on none.
    pub(super) processor: Cell<u32>,
    /// Whether the last peer in another OS process that was told something wants this very processor to answer.
    pub(super) neighbour: Cell<bool>,
    /// For how many waits more the processor is not given away, and for how many it was at the last loss.
    pub(super) stolen: Cell<(u32, u32)>,
    /// Grows with every switch to a thread.
    pub(super) switches: AtomicU64,
    /// What the system calls the OS thread; 0 before it runs.
    pub(super) os_thread: AtomicI32,
    /// The switch that the watch has found to last, and its processor time so far in nanoseconds.
    pub(super) lasting: AtomicU64,
    pub(super) lasted: AtomicU64,
    /// How often an interruption found a process in a call of the system that waited: for anything, and for its output.
    /// Only handlers on its own OS thread write it.
    pub(super) waits: [AtomicU64; 2],
    /// Who wakes a thread from afar reads where this is, and must not wait for what the worker writes all the time.
    pub(super) threads: Line<Table<Thread, THREADS>>,

    pub(crate) pool: Pool,
    /// A heap without memory, for who is to allocate no more.
    pub(super) nothing: Heap,
    pub(crate) stacks: Stacks,
    pub(super) run: RunQueue,
    pub(super) timers: Timers,
    /// The first free place of `threads`, and the first that was never used; slot + 1, 0 for none.
    pub(super) free: Cell<u32>,
    pub(super) unused: Cell<u32>,
    /// The top of the scheduler's stack, while a thread runs.
    pub(super) top: Cell<usize>,
    /// The thread that has run for the last time, and why its process is to end, if it is.
    pub(super) fate: Cell<Option<(&'static Thread, Option<Cause>)>>,
    /// What it said last.
    pub(super) message: Cell<Message>,
}

/// Events beside its inbox that a worker looks for and sleeps on. All functions but `wake` are called by the worker alone.
#[derive(Debug)]
pub struct Events {
    /// Whether there is anything to handle.
    pub pending: fn(&Worker) -> bool,
    /// Handles it, if there is anything.
    pub handle: fn(&Worker),
    /// What the worker is to sleep on.
    pub bed: fn(&Worker) -> Bed,
    /// Sleeps while the worker's own word says so and no event comes. False if there is nothing to wait for: then
    /// nothing was done.
    pub sleep: fn(&Worker, Bed, Option<Duration>) -> bool,
    /// Wakes the worker if it sleeps on [`Bed::Bell`]. For every OS thread.
    pub wake: fn(&Worker),
}

/// On a cache line of its own. (Without it a message between two workers takes 1.7 times as long.)
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Line<T>(T);

impl<T> Deref for Line<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

// SAFETY: up to `threads` all that is no `Cell` is atomic, set once, or a table of what is. Each `Cell`, and what is behind
// `threads`, is used by the worker's own OS thread alone, which `here::worker` gives it to.
unsafe impl Sync for Worker {}
// SAFETY: a worker is made by one OS thread before any other knows it.
unsafe impl Send for Worker {}

__state!(OnceLock<Box<[Worker]>> = OnceLock::new());

/// Has every OS thread find these workers from now on, or gives those that are found already.
pub(super) fn publish(workers: Box<[Worker]>) -> &'static [Worker] {
    state().get_or_init(|| workers)
}

/// All of them; none before the start.
pub(crate) fn all() -> &'static [Worker] {
    state().get().map_or(&[], |workers| workers)
}

/// What another OS thread asks of a worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Request {
    /// Wake the thread in this slot.
    Unpark(u32),
    /// Begin the process in this place.
    Start(u32),
    /// End the process in this place.
    End(u32),
    /// Answer to a survey.
    Survey,
}

impl Request {
    fn entry(self) -> u32 {
        match self {
            Request::Unpark(slot) => (slot + 1) << 2,
            Request::Start(place) => place << 2 | 1,
            Request::End(place) => place << 2 | 2,
            Request::Survey => 3,
        }
    }

    pub(super) fn from_entry(entry: u32) -> Option<Request> {
        match entry & 3 {
            0 => Some(Request::Unpark((entry >> 2).checked_sub(1)?)),
            1 => Some(Request::Start(entry >> 2)),
            2 => Some(Request::End(entry >> 2)),
            _ => Some(Request::Survey),
        }
    }
}

impl Links for Worker {
    fn link(&self, entry: u32) -> Option<&Link> {
        match Request::from_entry(entry)? {
            Request::Unpark(slot) => Some(&self.threads.get(slot as usize)?.link),
            Request::Start(number) => Some(&place(number)?.start_link),
            Request::End(number) => Some(&place(number)?.end_link),
            Request::Survey => Some(&self.survey_link),
        }
    }
}

// For every OS thread.
impl Worker {
    pub(super) fn new(index: u16) -> io::Result<Worker> {
        Ok(Worker {
            index,
            inbox: Inbox::default(),
            survey_link: Link::default(),
            events: OnceLock::new(),
            processor: Cell::new(0),
            neighbour: Cell::new(false),
            stolen: Cell::new((0, 0)),
            switches: AtomicU64::new(0),
            os_thread: AtomicI32::new(0),
            lasting: AtomicU64::new(0),
            lasted: AtomicU64::new(0),
            waits: [const { AtomicU64::new(0) }; 2],
            threads: Line(Table::reserve()?),
            pool: Pool::default(),
            nothing: Heap::empty(),
            stacks: Stacks::default(),
            run: RunQueue::new()?,
            timers: Timers::default(),
            free: Cell::new(0),
            unused: Cell::new(0),
            top: Cell::new(0),
            fate: Cell::new(None),
            message: Cell::new(Message::EMPTY),
        })
    }

    /// Counted from 0.
    #[inline]
    pub fn index(&self) -> u16 {
        self.index
    }

    /// Has the worker call what is registered for surveys ([`Hooks::survey`](crate::hooks::Hooks)).
    pub fn survey(&self) {
        self.ask(Request::Survey);
    }

    /// The word on which it sleeps in a bed of its own, and the value of that word until it is roused.
    pub fn sleeping_word(&self) -> (&AtomicU32, u32) {
        self.inbox.word()
    }

    /// Whether it was roused and has not risen.
    pub fn is_roused(&self) -> bool {
        self.inbox.is_roused()
    }

    /// The processor that it stays on, from 1; 0 if it stays on none. For the worker itself.
    pub fn processor(&self) -> u32 {
        self.processor.get()
    }

    /// Has the worker do it soon.
    pub(crate) fn ask(&self, request: Request) {
        let bed = self.inbox.push(request.entry(), self);
        self.get_up(bed);
    }

    /// Events that the worker looks for from now on; the first that are given stay.
    pub fn look_for(&self, events: &'static Events) {
        let _ = self.events.set(events);
    }

    #[inline]
    pub(super) fn events(&self) -> Option<&'static Events> {
        self.events.get().copied()
    }

    /// Whether events are pending, if it looks for any.
    #[inline]
    pub(super) fn has_events(&self) -> bool {
        self.events().is_some_and(|events| (events.pending)(self))
    }

    /// Has the worker look at its inbox and for events.
    pub fn rouse(&self) {
        let bed = self.inbox.rouse();
        self.get_up(bed);
    }

    /// Wakes it, after [`Inbox::rouse`].
    fn get_up(&self, bed: Option<Bed>) {
        match bed {
            None => {}
            Some(Bed::Own) => system::futex_wake(self.inbox.word().0),
            Some(Bed::Bell) => self.wake_by_events(),
        }
    }

    /// Wakes it once more if it was roused from a bell and has not risen: see [`Inbox`]. For the watch.
    pub(super) fn get_up_again(&self) {
        if self.inbox.is_roused() {
            self.wake_by_events();
        }
    }

    fn wake_by_events(&self) {
        if let Some(events) = self.events() {
            (events.wake)(self);
        }
    }

    /// Wakes a thread of this worker, from any other OS thread.
    pub(crate) fn unpark_from_afar(&self, waiter: Waiter) {
        if self.threads.around(waiter.slot()).waiter() == waiter {
            self.ask(Request::Unpark(waiter.slot() as u32));
        }
    }

    /// Has the thread that runs looked at, if it is of an ended process.
    pub(crate) fn interrupt(&self) {
        let os_thread = self.os_thread.load(Ordering::Relaxed);
        if os_thread != 0 {
            // SAFETY: a signal that is handled or ignored.
            unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), os_thread, INTERRUPT) };
        }
    }

    /// An interruption has found a process that waits. For the signal handler.
    pub(super) fn count(&self, wait: Wait) {
        let waits = &self.waits[wait as usize];
        waits.store(waits.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

// For processes' threads that run on it.
impl Worker {
    /// Wakes a thread of this worker. The caller is in a critical piece, or is the scheduler.
    pub(crate) fn unpark(&self, waiter: Waiter) {
        let thread = self.threads.around(waiter.slot());
        if thread.waiter() == waiter {
            self.wake(thread);
        }
    }

    /// Wakes a thread that is of this worker and parked; false if it is not so.
    #[inline]
    pub(crate) fn unpark_parked(&self, waiter: Waiter) -> bool {
        let thread = self.threads.around(waiter.slot());
        let parked = thread.waiter() == waiter && thread.state.get() == State::Parked;
        if parked {
            self.make_ready(thread);
        }
        parked
    }

    pub(super) fn wake(&self, thread: &'static Thread) {
        match thread.state.get() {
            State::Parked => self.make_ready(thread),
            State::Ready | State::Running => thread.token.set(true),
            State::Free | State::Gone => {}
        }
    }

    /// Who is ended in the middle leaves at most an entry in the queue for a thread that is not ready.
    #[inline]
    pub(super) fn make_ready(&self, thread: &'static Thread) {
        self.run.push(thread);
        compiler_fence(Ordering::SeqCst);
        thread.state.set(State::Ready);
    }

    pub(super) fn forget_deadline(&self, thread: &Thread) {
        if let Some(deadline) = thread.deadline.take() {
            self.timers.remove(deadline, thread.slot.get());
        }
    }

    /// The running thread never runs again, and its process ends if there is a cause.
    pub(super) fn leave_for_good(&self, thread: &'static Thread, cause: Option<Cause>) -> ! {
        self.fate.set(Some((thread, cause)));
        // SAFETY: a thread runs, so the scheduler is suspended.
        unsafe { switch::jump(self.top.get()) }
    }

    /// The same for a signal handler that has interrupted the thread: where it is to return to, and the stack
    /// pointer there.
    pub(super) fn abandon(&self, thread: &'static Thread, cause: Cause) -> (usize, usize) {
        self.fate.set(Some((thread, Some(cause))));
        // SAFETY: the thread that was interrupted ran, so the scheduler is suspended. The handler goes on with what this gives
        // and with nothing else, so it does once.
        unsafe { switch::registers(self.top.get()) }
    }

    /// Runs something small on the scheduler's stack, which has room.
    ///
    /// # Safety
    /// A thread of this worker runs, and calls this.
    #[inline]
    pub(crate) unsafe fn on_scheduler_stack(&self, body: extern "sysv64" fn()) {
        // SAFETY: the scheduler is suspended, and nobody goes on with it meanwhile.
        unsafe { switch::call_on(self.top.get(), body) };
    }

    /// The last words of the running process.
    pub(crate) fn set_message(&self, message: Message) {
        self.message.set(message);
    }

    pub(super) fn numbered(&self, number: u32) -> Option<&'static Thread> {
        self.threads.get((number as usize).checked_sub(1)?)
    }
}
