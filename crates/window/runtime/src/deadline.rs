//! Deadlines: what a limited invocation notes, and how the watchdog stops it.
//!
//! `watchdog` begins with the handshake between the two.

use crate::clock::{Clock, elapsed, nanoseconds};
use crate::granted::{Bound, Granted};
use crate::tcb::Tcb;
use crate::time_signal;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, compiler_fence};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// Low bits of a deadline (in nanoseconds) that hold its number: about a millisecond.
const NUMBER_BITS: u32 = 20;
const NUMBER_MASK: u64 = (1 << NUMBER_BITS) - 1;

/// Nanoseconds since the process's first limited invocation, plus one; 0: asleep.
pub(crate) static NOW: AtomicU64 = AtomicU64::new(0);
/// What the sleeping watchdog waits for.
static WAKE: AtomicU32 = AtomicU32::new(0);
static THREADS: Mutex<Vec<Watched>> = Mutex::new(Vec::new());

/// A thread control block that is alive: whoever drops it removes it here first.
#[derive(Clone, Copy)]
pub(crate) struct Watched(pub(crate) *const Tcb);

// SAFETY: the watchdog uses only the fields of atomic types and those that never
// change, and only while it holds the lock of the list.
unsafe impl Send for Watched {}

pub(crate) fn add(tcb: &Tcb) {
    lock().push(Watched(tcb));
}

pub(crate) fn remove(tcb: &Tcb) {
    lock().retain(|watched| !std::ptr::eq(watched.0, tcb));
}

/// The threads that have a block. The watchdog and `stop` write to blocks under this lock alone.
pub(crate) fn lock() -> MutexGuard<'static, Vec<Watched>> {
    THREADS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The limits of the outer invocation.
pub(crate) struct Outer {
    wall: OuterWall,
    /// 0: none.
    processor: u64,
    processor_granted: u64,
}

/// Its limit by the clock.
pub(crate) struct OuterWall {
    /// 0: none.
    deadline: u64,
    granted: Granted,
}

/// Limits what follows on this thread, or less if an outer invocation has less left: by each of
/// [`Clock::ALL`]. Returns the outer limits, for [`disarm`].
pub(crate) fn arm(tcb: &Tcb, bounds: [Option<Bound>; 2]) -> Outer {
    let [_, processor] = &bounds;
    begin(tcb, bounds, processor.is_some())
}

/// Gives what follows on this thread a deadline of its own, by which it can be [`stop`]ped, and
/// no limit. As [`arm`].
pub(crate) fn mark(tcb: &Tcb) -> Outer {
    begin(tcb, [None, None], true)
}

/// As [`arm`], of a call with one limit, of so many nanoseconds by the clock: what most limited calls have.
/// Returns what is for [`disarm_call`].
#[inline]
pub(crate) fn arm_call(tcb: &Tcb, nanoseconds: u64) -> OuterWall {
    let granted = Granted::by_clock(nanoseconds);
    begin_wall(tcb, nanoseconds, granted, false)
}

/// `named`: with a deadline that no outer invocation has.
fn begin(tcb: &Tcb, [wall, processor]: [Option<Bound>; 2], named: bool) -> Outer {
    let (time, granted) = wall.unwrap_or((Duration::MAX, Granted::default()));
    let outer = Outer {
        processor: tcb.processor.load(Ordering::Relaxed),
        processor_granted: tcb.processor_granted.load(Ordering::Relaxed),
        wall: begin_wall(tcb, nanoseconds(time).min(u64::MAX >> 1), granted, named),
    };
    // The deadline is there, so the watchdog is awake, or has been woken.
    if let Some((time, granted)) = processor {
        let end = Clock::Processor
            .of(tcb.thread)
            .saturating_add(nanoseconds(time));
        if outer.processor == 0 || end < outer.processor {
            tcb.processor_granted
                .store(granted.bits(), Ordering::Relaxed);
            tcb.processor.store(end.max(1), Ordering::Release);
        }
    }
    outer
}

#[inline]
fn begin_wall(tcb: &Tcb, nanoseconds: u64, granted: Granted, named: bool) -> OuterWall {
    let outer = OuterWall {
        deadline: tcb.deadline.load(Ordering::Relaxed),
        granted: tcb.granted.get(),
    };
    let number = tcb.limited.get().wrapping_add(1);
    tcb.limited.set(number);
    let mut now = NOW.load(Ordering::Relaxed);
    if now == 0 {
        now = elapsed();
    }
    let end = now.saturating_add(nanoseconds);
    let numbered = |end: u64| (end & !NUMBER_MASK) | (number & NUMBER_MASK);
    let own = numbered(end.saturating_add(NUMBER_MASK));
    let deadline = if outer.deadline == 0 || own < outer.deadline {
        tcb.granted.set(granted);
        own
    } else if named {
        // The outer one's end, but not its number: what is stopped for its processor time, or
        // cancelled, is this invocation.
        numbered(outer.deadline)
    } else {
        outer.deadline
    };
    tcb.deadline.store(deadline, Ordering::Release);
    compiler_fence(Ordering::SeqCst);
    if NOW.load(Ordering::Relaxed) == 0 {
        wake();
    }
    outer
}

/// Ends the limits; `outer` is what [`arm`] returned.
pub(crate) fn disarm(tcb: &Tcb, outer: &Outer) {
    tcb.processor.store(outer.processor, Ordering::Relaxed);
    tcb.processor_granted
        .store(outer.processor_granted, Ordering::Relaxed);
    disarm_call(tcb, &outer.wall);
}

/// As [`disarm`], of what [`arm_call`] returned.
#[inline]
pub(crate) fn disarm_call(tcb: &Tcb, outer: &OuterWall) {
    tcb.deadline.store(outer.deadline, Ordering::Release);
    tcb.granted.set(outer.granted);
}

/// Ends all limits of the thread, whoever has begun them. What runs on sets its own again when the
/// invocation within it has ended.
pub(crate) fn forget(tcb: &Tcb) {
    disarm(
        tcb,
        &Outer {
            wall: OuterWall {
                deadline: 0,
                granted: Granted::default(),
            },
            processor: 0,
            processor_granted: 0,
        },
    );
}

/// Stops what runs under a limit on a thread now, for this reason. It may go on, if it could not be
/// ended where it was, or if it was nested and has ended: whoever wants more asks again.
///
/// # Safety
/// The block lives meanwhile, and its thread too.
pub(crate) unsafe fn stop(block: *const Tcb, why: Granted) {
    // The watchdog writes the same fields.
    let _threads = lock();
    // SAFETY: the block lives meanwhile: this function's own condition.
    let tcb = unsafe { Fields::of(block) };
    let deadline = tcb.deadline.load(Ordering::Acquire);
    tcb.stop_for(deadline, why);
    tcb.interrupt(deadline);
}

/// As [`disarm`], for what [`mark`] began and was stopped: nothing is any more.
pub(crate) fn unmark(tcb: &Tcb, outer: &Outer) {
    // No deadline is 1: its upper bits are never 0.
    tcb.stop.store(1, Ordering::Relaxed);
    disarm(tcb, outer);
}

/// How a watchdog is started; whether it could be.
static START: OnceLock<fn() -> bool> = OnceLock::new();

/// Before the first deadline: says how a watchdog is started, by the thread that first needs one.
pub(crate) fn watched_by(start: fn() -> bool) {
    START.get_or_init(|| start);
}

#[cold]
fn wake() {
    // No thread may be to be had now; the next limited invocation tries again.
    let _started = START.get().is_some_and(|start| start());
    WAKE.fetch_add(1, Ordering::SeqCst);
    // SAFETY: the futex word is a static of the right size.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            WAKE.as_ptr(),
            libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
            1,
        )
    };
}

/// How often the watchdog has been woken: for [`sleep_until_woken`].
pub(crate) fn wakes() -> u32 {
    WAKE.load(Ordering::SeqCst)
}

/// Sleeps, unless it has been woken since `wakes` was read.
pub(crate) fn sleep_until_woken(wakes: u32) {
    let wait = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the futex word is a static of the right size; no time-out.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            WAKE.as_ptr(),
            wait,
            wakes,
            std::ptr::null::<libc::timespec>(),
        )
    };
}

/// What of a thread control block the watchdog uses.
pub(crate) struct Fields<'a> {
    pub(crate) deadline: &'a AtomicU64,
    stop: &'a AtomicU64,
    overdrawn: &'a AtomicU64,
    overdrawn_of: &'a AtomicU64,
    processor: &'a AtomicU64,
    processor_granted: &'a AtomicU64,
    thread: libc::pid_t,
}

impl Fields<'_> {
    /// # Safety
    /// The block lives as long as what is returned.
    pub(crate) unsafe fn of(block: *const Tcb) -> Self {
        // SAFETY: the block lives (this function's promise). Its own thread writes these fields as atomics, or not at
        // all after it is made; other fields are not touched.
        unsafe {
            Self {
                deadline: &(*block).deadline,
                stop: &(*block).stop,
                overdrawn: &(*block).overdrawn,
                overdrawn_of: &(*block).overdrawn_of,
                processor: &(*block).processor,
                processor_granted: &(*block).processor_granted,
                thread: (*block).thread,
            }
        }
    }

    /// Notes what the invocation with this deadline is stopped for, if not for the deadline.
    pub(crate) fn stop_for(&self, deadline: u64, why: Granted) {
        self.overdrawn_of.store(why.bits(), Ordering::Relaxed);
        self.overdrawn.store(deadline, Ordering::Release);
    }

    /// Has the thread, which lives, end the invocation with this deadline.
    pub(crate) fn interrupt(&self, deadline: u64) {
        self.stop.store(deadline, Ordering::Relaxed);
        time_signal::send(self.thread);
    }

    /// The limit, if the invocation with this deadline has used its processor time.
    pub(crate) fn processor_time_is_up(&self, deadline: u64) -> Option<Granted> {
        let bound = self.processor.load(Ordering::Acquire);
        if bound == 0 || Clock::Processor.of(self.thread) < bound {
            return None;
        }
        let granted = self.processor_granted.load(Ordering::Acquire);
        let same = self.deadline.load(Ordering::Relaxed) == deadline;
        same.then_some(Granted::from_bits(granted))
    }
}
