//! Limits on time: a thread looks at the deadlines of all threads, and sends those that are late a signal.

use crate::fault;
use crate::gates::{Inner, here, state};
use crate::memory::lock;
use crate::signals;
use crate::thread::{self, CLOCKS, Clock, Thread};
use std::io;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, compiler_fence, fence};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often it looks while anybody has a deadline: a part of the shortest limit that there was, in nanoseconds.
static TICK: AtomicU64 = AtomicU64::new(LONGEST);
const LONGEST: u64 = 200_000_000;
const SHORTEST: u64 = 5_000_000;
const PART: u64 = 8;

/// Whether the watchdog waits for a deadline, or is about to.
static SLEEPS: AtomicBool = AtomicBool::new(false);
/// The process is a copy, and the watchdog was not copied.
static IS_LOST: AtomicBool = AtomicBool::new(false);
static WAKE: (Mutex<()>, Condvar) = (Mutex::new(()), Condvar::new());

/// A limit that has begun: the deadline before it, and whose that was.
pub(crate) struct Timed(u64, *const Inner);

pub(crate) fn install() -> io::Result<()> {
    signals::install(signals::late(), on_late)?;
    start()
}

fn start() -> io::Result<()> {
    let thread = std::thread::Builder::new().name("mullion-word-watchdog".to_owned());
    thread.spawn(watch).map(drop)
}

/// Keeps the watchdog out of its locks, while the process is copied.
pub(crate) fn hold() -> Held {
    (lock(&WAKE.0), lock(&CLOCKS))
}

/// See [`hold`].
pub(crate) type Held = (
    MutexGuard<'static, ()>,
    MutexGuard<'static, Vec<Arc<Clock>>>,
);

/// In a copy of the process, which has no watchdog until it needs one.
pub(crate) fn in_copy() {
    IS_LOST.store(true, Ordering::Relaxed);
}

fn now() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // A clock that is some milliseconds late is good enough for a thread that looks every few, and costs a call far less.
    // SAFETY: it fills the structure in.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// A call of a domain with a limit begins in this thread. An earlier deadline stays.
pub(crate) fn begin(inner: *const Inner, limit: Duration) -> Timed {
    let Ok(thread) = thread::this() else {
        return Timed(0, ptr::null());
    };
    let before = thread.deadline().load(Ordering::Relaxed);
    let timed = Timed(before, thread.deadline_of);
    let limit = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
    let deadline = now().saturating_add(limit);
    // The watchdog knows of an earlier one.
    if before != 0 && before <= deadline {
        return timed;
    }
    set(thread, deadline, inner);
    if limit / PART < TICK.load(Ordering::Relaxed) {
        hurry(limit);
    }
    if IS_LOST.load(Ordering::Relaxed) && start().is_ok() {
        IS_LOST.store(false, Ordering::Relaxed);
    }
    rouse();
    timed
}

/// There is a deadline: the watchdog must not sleep.
fn rouse() {
    // Behind the deadline: the watchdog says that it sleeps before it looks at the deadlines.
    fence(Ordering::SeqCst);
    // Whoever finds it asleep wakes it; until it runs, others need not.
    if SLEEPS.load(Ordering::Relaxed) && SLEEPS.swap(false, Ordering::SeqCst) {
        wake();
    }
}

/// It looks more often from now on.
#[cold]
fn hurry(limit: u64) {
    let tick = (limit / PART).max(SHORTEST);
    if TICK.fetch_min(tick, Ordering::Relaxed) > tick {
        wake();
    }
}

#[cold]
fn wake() {
    let _turn = lock(&WAKE.0);
    WAKE.1.notify_one();
}

/// The handler, which may run between any two of these, never sees a deadline with another one's owner.
fn set(thread: &mut Thread, deadline: u64, of: *const Inner) {
    thread.deadline().store(0, Ordering::Relaxed);
    compiler_fence(Ordering::SeqCst);
    thread.deadline_of = of;
    compiler_fence(Ordering::SeqCst);
    thread.deadline().store(deadline, Ordering::Relaxed);
}

pub(crate) fn end(inner: *const Inner, timed: Timed) {
    if let Ok(thread) = thread::this() {
        let now = (
            thread.deadline().load(Ordering::Relaxed),
            thread.deadline_of,
        );
        if now != (timed.0, timed.1) {
            set(thread, timed.0, timed.1);
            // It may have found none in between.
            if timed.0 != 0 {
                rouse();
            }
        }
        if thread.late == inner {
            thread.late = ptr::null();
        }
    }
}

fn watch() {
    let mut turn = lock(&WAKE.0);
    loop {
        // Said before the look: a call that begins meanwhile wakes it.
        SLEEPS.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let is_armed = look();
        if is_armed {
            SLEEPS.store(false, Ordering::SeqCst);
            let tick = Duration::from_nanos(TICK.load(Ordering::Relaxed));
            let waited = WAKE.1.wait_timeout(turn, tick);
            turn = waited.unwrap_or_else(PoisonError::into_inner).0;
        } else {
            turn = WAKE.1.wait(turn).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Sends a signal to those that are late; whether anybody has a deadline.
fn look() -> bool {
    let (now, signal) = (now(), signals::late());
    let mut is_armed = false;
    for clock in lock(&CLOCKS).iter() {
        let deadline = clock.deadline.load(Ordering::Relaxed);
        is_armed |= deadline != 0;
        if deadline != 0 && now >= deadline {
            let id = clock.id.load(Ordering::Relaxed);
            // SAFETY: it sends a signal that has a handler to a thread that lives: it is on the list.
            unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), id, signal) };
        }
    }
    is_armed
}

extern "C" fn on_late(_: i32, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let here = here();
    // SAFETY: the kernel gives a handler its context; `here` is the thread's own, and frames are on its control stack.
    unsafe {
        let Some(thread) = (*here).thread.cast::<Thread>().as_mut() else {
            return;
        };
        let owner = thread.deadline_of;
        if !thread.is_late(now()) || owner.is_null() {
            return;
        }
        let mut frame = (*here).frame.cast_const();
        while !frame.is_null() && (*(*frame).seat).inner != owner {
            frame = (*frame).before;
        }
        // In a gate, on the way in or out: it is looked at again.
        if frame.is_null() || fault::end_late(owner, &mut *context.cast()) {
            return;
        }
        // In a function of the host, or in another module, which is not to blame: the call ends when that has returned.
        if (*here).domain != owner {
            thread.is_over();
            thread.late = owner;
            (*owner).state.fetch_or(state::ENDED, Ordering::SeqCst);
        }
    }
}
