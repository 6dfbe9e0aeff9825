//! A worker: one OS thread that runs the threads of its processes in turn. Each is two types: what every OS thread may use
//! of it, and what its own has.

use std::cell::Cell;
use std::io;
use std::ops::Deref;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering, compiler_fence};
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

/// What every OS thread may use of a worker. Its fields are atomic, are set once, or are tables of what is.
#[allow(missing_debug_implementations)]
pub struct SharedWorker {
    index: u16,
    /// Whether its own OS thread has it.
    taken: AtomicBool,
    pub(crate) inbox: Inbox,
    survey_link: Link,
    /// What it looks for beside its inbox, once a crate above has such a thing.
    events: OnceLock<&'static Events>,
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
    threads: Line<Table<Thread, THREADS>>,
}

/// A worker, as its own OS thread has it. That thread takes it once, from [`Workers`](super::workers::Workers). No reference to
/// it can go to another one: its cells make it `!Sync`.
#[allow(missing_debug_implementations)]
pub struct Worker {
    shared: SharedWorker,
    /// The processor that it stays on, from 1; 0 if it stays on none.
    pub(super) processor: Cell<u32>,
    /// Whether the last peer in another OS process that was told something wants this very processor to answer.
    pub(super) neighbour: Cell<bool>,
    /// For how many waits more the processor is not given away, and for how many it was at the last loss.
    pub(super) stolen: Cell<(u32, u32)>,
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

impl Deref for Worker {
    type Target = SharedWorker;

    #[inline(always)]
    fn deref(&self) -> &SharedWorker {
        &self.shared
    }
}

/// Events beside its inbox that a worker looks for and sleeps on.
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
    /// Wakes the worker if it sleeps on [`Bed::Bell`].
    pub wake: fn(&SharedWorker),
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

impl Links for SharedWorker {
    fn link(&self, entry: u32) -> Option<&Link> {
        match Request::from_entry(entry)? {
            Request::Unpark(slot) => Some(&self.threads.get(slot as usize)?.link),
            Request::Start(number) => Some(&place(number)?.start_link),
            Request::End(number) => Some(&place(number)?.end_link),
            Request::Survey => Some(&self.survey_link),
        }
    }
}

impl SharedWorker {
    fn new(index: u16) -> io::Result<SharedWorker> {
        Ok(SharedWorker {
            index,
            taken: AtomicBool::new(false),
            inbox: Inbox::default(),
            survey_link: Link::default(),
            events: OnceLock::new(),
            switches: AtomicU64::new(0),
            os_thread: AtomicI32::new(0),
            lasting: AtomicU64::new(0),
            lasted: AtomicU64::new(0),
            waits: [const { AtomicU64::new(0) }; 2],
            threads: Line(Table::reserve()?),
        })
    }

    /// Takes the worker for the calling OS thread; false if one has it.
    pub(super) fn take(&self) -> bool {
        !self.taken.swap(true, Ordering::AcqRel)
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
}

impl Worker {
    pub(super) fn new(index: u16) -> io::Result<Worker> {
        Ok(Worker {
            shared: SharedWorker::new(index)?,
            processor: Cell::new(0),
            neighbour: Cell::new(false),
            stolen: Cell::new((0, 0)),
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

    /// What every OS thread may use of it.
    #[inline]
    pub fn shared(&self) -> &SharedWorker {
        &self.shared
    }

    /// The processor that it stays on, from 1; 0 if it stays on none.
    pub fn processor(&self) -> u32 {
        self.processor.get()
    }

    /// Whether events are pending, if it looks for any.
    #[inline]
    pub(super) fn has_events(&self) -> bool {
        self.events().is_some_and(|events| (events.pending)(self))
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

    /// Its place for a thread; `None` beyond the last.
    #[inline]
    pub(super) fn place(&self, slot: u32) -> Option<&'static Thread> {
        self.threads.get(slot as usize)
    }

    pub(super) fn numbered(&self, number: u32) -> Option<&'static Thread> {
        self.place(number.checked_sub(1)?)
    }
}
