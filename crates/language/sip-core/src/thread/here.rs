//! What runs on this OS thread.

use std::cell::Cell;
use std::mem::MaybeUninit;
use std::ptr;
#[cfg(feature = "separate")]
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering, compiler_fence};

use super::slot::Thread;
use super::worker::Worker;
use crate::heap::Heap;
use crate::process::Cause;

/// One per OS thread. All empty outside of workers, but for `kept`. While a worker schedules, `heap` and
/// `floor` may still be those of the thread that ran last: see [`leave`].
pub(crate) struct Here {
    /// What a crate above keeps of this OS thread: whatever it says, and nothing that the core looks at.
    kept: Cell<*const ()>,
    worker: Cell<Option<&'static Worker>>,
    thread: Cell<Option<&'static Thread>>,
    heap: Cell<Option<&'static Heap>>,
    /// Below this stack address no critical piece begins.
    floor: Cell<usize>,
    /// How many values there are on this OS thread that give the power of the host.
    hosts: Cell<u32>,
    /// How many critical pieces are open; read by signal handlers.
    depth: AtomicU32,
    /// The cause of an end that waits for the last of them to close; 0 for none.
    pending: AtomicU8,
    /// A panic has said its words: the process ends at its next allocation, and nothing else ends it.
    leaving: AtomicBool,
}

impl Here {
    /// Where the running thread is in it.
    #[cfg(feature = "separate")]
    pub(crate) const THREAD: usize = std::mem::offset_of!(Here, thread);
}

thread_local! {
    static SELF: Here = const {
        Here {
            kept: Cell::new(ptr::null()),
            worker: Cell::new(None),
            thread: Cell::new(None),
            heap: Cell::new(None),
            floor: Cell::new(0),
            hosts: Cell::new(0),
            depth: AtomicU32::new(0),
            pending: AtomicU8::new(0),
            leaving: AtomicBool::new(false),
        }
    };
}

#[cfg(feature = "separate")]
/// From the thread pointer to the program's `Here`, the same on each OS thread; 0 before the library is attached. The
/// library's own code reads it, and nobody but `Core::attach` writes it.
#[repr(transparent)]
#[allow(missing_debug_implementations)]
pub struct Distance(AtomicUsize);

#[cfg(feature = "separate")]
impl Distance {
    #[inline(always)]
    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self, distance: usize) {
        self.0.store(distance, Ordering::Relaxed);
    }
}

/// This library's.
#[cfg(feature = "separate")]
pub static HERE: Distance = Distance(AtomicUsize::new(0));
/// From here on this copy works with what the host's copy has of each OS thread, at this distance.
#[cfg(feature = "separate")]
pub(crate) fn attach(distance: usize) {
    HERE.set(distance);
}

/// This copy of the crate's, for who has another copy.
pub(crate) fn own() -> *const Here {
    SELF.with(ptr::from_ref)
}

#[cfg(not(feature = "separate"))]
#[inline(always)]
fn with<R>(look: impl FnOnce(&Here) -> R) -> R {
    SELF.with(look)
}

/// The program's: at a fixed distance from the thread pointer, which the host has made sure of.
#[cfg(feature = "separate")]
#[inline(always)]
fn with<R>(look: impl FnOnce(&Here) -> R) -> R {
    let distance = HERE.get();
    if distance == 0 {
        // Not attached yet.
        return SELF.with(look);
    }
    let at = thread_pointer().wrapping_add(distance);
    // SAFETY: a thread-local of this OS thread, without a destructor: it lives as long as the thread.
    look(unsafe { &*ptr::with_exposed_provenance::<Here>(at) })
}

/// From the thread pointer to what this OS thread has; the same on each, unless the loader puts the thread-locals of
/// this copy of the crate in different places.
pub(crate) fn distance() -> usize {
    own().expose_provenance().wrapping_sub(thread_pointer())
}

/// An address that is this OS thread's.
#[inline(always)]
fn thread_pointer() -> usize {
    #[cfg(miri)]
    return 0;
    #[cfg(not(miri))]
    {
        let pointer: usize;
        // SAFETY: the ABI has the thread pointer there. It does not change while a thread of a process lives.
        unsafe {
            std::arch::asm!("mov {}, qword ptr fs:[0]", out(reg) pointer, options(pure, nomem, nostack, preserves_flags));
        }
        pointer
    }
}

/// What the crate above has last said that it keeps of this OS thread; null at first.
#[inline]
pub(crate) fn kept() -> *const () {
    with(|here| here.kept.get())
}

/// Another answer to that.
pub(crate) fn keep(what: *const ()) {
    with(|here| here.kept.set(what));
}

/// This OS thread becomes a worker.
pub(super) fn become_worker(worker: &'static Worker) {
    with(|here| here.worker.set(Some(worker)));
}

/// The worker that this OS thread is.
#[inline]
pub(crate) fn worker() -> Option<&'static Worker> {
    with(|here| here.worker.get())
}

/// The process's thread that runs, if one does.
#[inline]
pub(crate) fn thread() -> Option<&'static Thread> {
    with(|here| here.thread.get())
}

/// One more value of the host's power on this OS thread, or one less.
pub(crate) fn count_host(change: i32) {
    with(|here| here.hosts.set(here.hosts.get().wrapping_add_signed(change)));
}

/// Whether this OS thread has the host's power.
#[inline]
pub(crate) fn is_hosts() -> bool {
    with(|here| here.hosts.get() != 0)
}

/// Both at once.
#[inline]
pub(crate) fn running() -> Option<(&'static Worker, &'static Thread)> {
    with(|here| Some((here.worker.get()?, here.thread.get()?)))
}

/// Where allocations go; `None` for the system's allocator.
#[inline]
pub(crate) fn heap() -> Option<&'static Heap> {
    with(|here| here.heap.get())
}

/// The running thread suspends itself: from here on no signal ends it half-way. Enough stack is left, since a
/// fault from here on would be the kernel's.
#[inline(always)]
pub(super) fn suspend() {
    with(|here| {
        demand_stack(here, 0);
        here.thread.set(None);
        compiler_fence(Ordering::SeqCst);
    });
}

/// A thread is about to run. Signals count for it once the stack pointer is on its stack.
#[inline]
pub(super) fn enter(thread: &'static Thread) {
    with(|here| {
        here.heap.set(thread.heap.get());
        here.floor.set(thread.fiber.floor());
        compiler_fence(Ordering::SeqCst);
        here.thread.set(Some(thread));
    });
}

/// No thread runs. From one thread to the next the scheduler does without this: on that way it allocates
/// nothing and opens no critical piece.
pub(super) fn leave() {
    with(|here| {
        here.thread.set(None);
        here.heap.set(None);
        here.floor.set(0);
    });
}

/// An ended thread may have left a critical piece open, if the piece itself ended it.
pub(super) fn close_all() {
    with(|here| {
        here.depth.store(0, Ordering::Relaxed);
        here.pending.store(0, Ordering::Relaxed);
        here.leaving.store(false, Ordering::Relaxed);
    });
}

/// For the panic hook, which must return; see [`crate::process::panic`].
pub(crate) fn leave_at_next_allocation(worker: &'static Worker) {
    with(|here| {
        here.leaving.store(true, Ordering::Relaxed);
        here.floor.set(0);
        here.heap.set(Some(&worker.nothing));
    });
}

/// Whether a panic has said its words.
pub(crate) fn is_leaving() -> bool {
    with(|here| here.leaving.load(Ordering::Relaxed))
}

/// The running thread has come to its end.
pub(super) fn finish() -> ! {
    leave_for_good(None)
}

/// Ends the running thread's process here and now. Nothing of it runs again.
#[cold]
pub(crate) fn die(cause: Cause) -> ! {
    leave_for_good(Some(cause))
}

fn leave_for_good(cause: Option<Cause>) -> ! {
    match running() {
        Some((worker, thread)) => worker.leave_for_good(thread, cause),
        // No process runs, so the host itself did what would have ended a process.
        None => std::process::abort(),
    }
}

/// `room` is the stack that the piece takes beyond the usual.
#[inline]
pub(crate) fn open_piece(room: usize) {
    with(|here| {
        demand_stack(here, room);
        // Not a read-modify-write: a signal handler leaves the number as it found it.
        let depth = here.depth.load(Ordering::Relaxed);
        here.depth.store(depth + 1, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
    });
}

/// Ends the process if it is near the end of its stack, or has not so much more.
#[inline(always)]
fn demand_stack(here: &Here, room: usize) {
    let marker = MaybeUninit::<u8>::uninit();
    if marker.as_ptr().addr() < here.floor.get() + room {
        overflow();
    }
}

#[cold]
fn overflow() -> ! {
    with(|here| here.floor.set(0));
    die(Cause::Stack)
}

#[inline]
pub(crate) fn close_piece() {
    let pending = with(|here| {
        compiler_fence(Ordering::SeqCst);
        let depth = here.depth.load(Ordering::Relaxed);
        here.depth.store(depth - 1, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        here.pending.load(Ordering::Relaxed)
    });
    if pending != 0 {
        close_pending();
    }
}

#[cold]
#[inline(never)]
fn close_pending() {
    if !in_critical_piece() {
        die(with(|here| {
            Cause::from_bits(here.pending.load(Ordering::Relaxed))
        }));
    }
}

/// Below this stack address no critical piece begins from now on; gives what it was.
#[inline]
pub(crate) fn replace_floor(floor: usize) -> usize {
    with(|here| here.floor.replace(floor))
}

/// Whether a critical piece is open.
pub(crate) fn in_critical_piece() -> bool {
    with(|here| here.depth.load(Ordering::Relaxed) != 0)
}

/// The process ends when the open pieces are closed.
pub(crate) fn die_later(cause: Cause) {
    with(|here| here.pending.store(cause.to_bits(), Ordering::Relaxed));
}

/// Allocations go there from now on; gives where they went.
#[inline]
pub(crate) fn replace_heap(heap: Option<&'static Heap>) -> Option<&'static Heap> {
    with(|here| here.heap.replace(heap))
}
