//! Limits on time: a thread looks at the deadlines of all threads, and sends those that are late a signal.

use crate::fault;
use crate::gates::here;
use crate::memory::lock;
use crate::thread::{self, CLOCKS, LATE, Thread};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

/// How often it looks while anybody has a deadline.
const TICK: Duration = Duration::from_millis(5);

/// How many deadlines there are.
static ARMED: AtomicU64 = AtomicU64::new(0);
/// Whether the watchdog waits for a deadline, or is about to.
static SLEEPS: AtomicBool = AtomicBool::new(false);
static WAKE: (Mutex<()>, Condvar) = (Mutex::new(()), Condvar::new());

/// A limit that has begun: the deadline before it.
pub(crate) struct Timed(u64);

pub(crate) fn install() -> io::Result<()> {
    let signal = libc::SIGRTMIN() + 8;
    fault::install_one(signal, on_late)?;
    let _first = LATE.set(signal);
    begin_to_watch()
}

/// Also in the child of a fork: the parent's threads are not there.
pub(crate) fn begin_to_watch() -> io::Result<()> {
    std::thread::Builder::new()
        .name("mullion-word-watchdog".to_owned())
        .spawn(watch)?;
    Ok(())
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

/// A call with a limit begins in this thread. An earlier deadline stays.
pub(crate) fn begin(limit: Duration) -> Timed {
    let Ok(thread) = thread::this() else {
        return Timed(0);
    };
    let before = thread.deadline().load(Ordering::Relaxed);
    let limit = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
    let deadline = now().saturating_add(limit);
    let earliest = if before == 0 {
        deadline
    } else {
        deadline.min(before)
    };
    thread.deadline().store(earliest, Ordering::Relaxed);
    // Counted before the look: the watchdog says that it sleeps before it looks at the count.
    ARMED.fetch_add(1, Ordering::SeqCst);
    if SLEEPS.load(Ordering::SeqCst) {
        let _turn = lock(&WAKE.0);
        WAKE.1.notify_one();
    }
    Timed(before)
}

pub(crate) fn end(timed: Timed) {
    ARMED.fetch_sub(1, Ordering::Relaxed);
    if let Ok(thread) = thread::this() {
        thread.deadline().store(timed.0, Ordering::Relaxed);
        // A signal that came meanwhile was for this call, unless an outer one is late, too: that one is sent again.
        if !thread.has_refusal() {
            // SAFETY: it is the thread's own.
            unsafe { (*here()).pending.store(0, Ordering::Relaxed) };
        }
    }
}

fn watch() {
    loop {
        let mut turn = lock(&WAKE.0);
        SLEEPS.store(true, Ordering::SeqCst);
        while ARMED.load(Ordering::SeqCst) == 0 {
            turn = WAKE
                .1
                .wait(turn)
                .unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        SLEEPS.store(false, Ordering::SeqCst);
        drop(turn);
        std::thread::sleep(TICK);
        let (now, signal) = (now(), LATE.get().copied().unwrap_or(0));
        for clock in lock(&CLOCKS).iter() {
            let deadline = clock.deadline.load(Ordering::Relaxed);
            if deadline != 0 && now >= deadline {
                let id = clock.id.load(Ordering::Relaxed);
                // SAFETY: it sends a signal that has a handler to a thread that lives: it is on the list.
                unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), id, signal) };
            }
        }
    }
}

extern "C" fn on_late(_: i32, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let here = here();
    // SAFETY: the kernel gives a handler its context; `here` is the thread's own.
    unsafe {
        if (*here).thread.is_null() || !(*(*here).thread.cast::<Thread>()).is_late(now()) {
            return;
        }
        if !fault::end_late(&mut *context.cast()) && !(*here).frame.is_null() {
            // In a function of the host, or in a gate: seen when the domain goes on.
            (*here).pending.store(1, Ordering::Relaxed);
        }
    }
}
