//! Limits on time: a thread looks at the calls that run, and sends those that are late a signal.
//!
//! A call does nothing for its limit but count itself (`Seat::entries`). The watchdog sees the same number at two looks that are
//! the limit apart: that call is late. So a call ends a limit and two looks behind its beginning at the latest.
//!
//! While nobody calls, the watchdog sleeps. Before that it sends the calls of all domains with limits the slow way
//! (`state::UNWATCHED`). The first one wakes it, and it takes that back.

use crate::core::Core;
use crate::fault;
use crate::gates::{Seat, here, state};
use crate::memory::lock;
use crate::room;
use crate::signals;
use crate::thread::Thread;
use crate::tick::{WAKE, nanoseconds, tick, wake};
use crate::world::try_world;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{MutexGuard, PoisonError, TryLockError};

/// Looks without a call, before it sleeps.
const QUIET: u32 = 10;

/// Whether the watchdog waits for a call, or is about to.
static SLEEPS: AtomicBool = AtomicBool::new(false);
/// The process is a copy, and the watchdog was not copied.
static IS_LOST: AtomicBool = AtomicBool::new(false);

pub(crate) fn install() -> io::Result<()> {
    signals::install(signals::late(), on_late)?;
    start()
}

fn start() -> io::Result<()> {
    let thread = std::thread::Builder::new().name("mullion-word-watchdog".to_owned());
    // The host's signals are for its own threads: one that waits for a signal would wait for ever.
    mullion_signals::without(|| thread.spawn(watch).map(drop))
}

/// Keeps the watchdog out of its locks, while the process is copied.
pub(crate) fn hold() -> Held {
    lock(&WAKE.0)
}

/// See [`hold`].
pub(crate) type Held = MutexGuard<'static, ()>;

/// In a copy of the process, which has no watchdog until it needs one.
pub(crate) fn in_copy(cores: &[&'static Core]) {
    IS_LOST.store(true, Ordering::Relaxed);
    for core in cores.iter().filter(|core| core.limits.time.is_some()) {
        let state = &core.inner.state;
        state.fetch_or(state::UNWATCHED, Ordering::SeqCst);
    }
}

fn now() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // A clock that is some milliseconds late is good enough for a thread that looks every few.
    // SAFETY: it fills the structure in.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// A call begins the slow way, and was counted.
pub(crate) fn begin(core: &Core) {
    if core.inner.state.load(Ordering::Relaxed) & state::UNWATCHED == 0 {
        return;
    }
    begin_again();
    // Behind the count: the watchdog says that it sleeps before it looks at the counts.
    fence(Ordering::SeqCst);
    // Whoever finds it asleep wakes it; until it runs, others need not.
    if SLEEPS.load(Ordering::Relaxed) && SLEEPS.swap(false, Ordering::SeqCst) {
        wake();
    }
}

/// In a copy of the process, if it has no watchdog yet.
pub(crate) fn begin_again() {
    if IS_LOST.load(Ordering::Relaxed) && start().is_ok() {
        IS_LOST.store(false, Ordering::Relaxed);
    }
}

fn watch() {
    let mut turn = lock(&WAKE.0);
    // No call comes the fast way yet.
    let mut quiet = QUIET;
    loop {
        let may_sleep = quiet >= QUIET;
        // Said before the look: a call that begins meanwhile wakes it.
        SLEEPS.store(may_sleep, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let is_called = look(may_sleep);
        if is_called && may_sleep {
            quiet = 0;
            continue;
        }
        if may_sleep {
            turn = WAKE.1.wait(turn).unwrap_or_else(PoisonError::into_inner);
            quiet = 0;
            continue;
        }
        quiet = match is_called {
            true => 0,
            false => quiet + 1,
        };
        // A call that was at its gate just then is inside at the next look.
        if quiet == QUIET {
            for_all(|core| send_slowly(core, true));
        }
        let waited = WAKE.1.wait_timeout(turn, tick());
        turn = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
}

/// All domains with limits. False: another thread has the list.
fn for_all(act: impl FnMut(&'static Core)) -> bool {
    let Some(world) = try_world() else {
        return true;
    };
    let domains = match world.domains.try_lock() {
        Ok(domains) => domains,
        Err(TryLockError::Poisoned(domains)) => domains.into_inner(),
        Err(TryLockError::WouldBlock) => return false,
    };
    let limited = domains.all().filter(|core| core.limits.time.is_some());
    let all: Vec<&'static Core> = limited.collect();
    drop(domains);
    all.into_iter().for_each(act);
    true
}

fn send_slowly(core: &Core, slowly: bool) {
    let state = &core.inner.state;
    let is_now = state.load(Ordering::Relaxed) & state::UNWATCHED != 0;
    match slowly {
        true if !is_now => drop(state.fetch_or(state::UNWATCHED, Ordering::SeqCst)),
        false if is_now => drop(state.fetch_and(!state::UNWATCHED, Ordering::SeqCst)),
        _ => {}
    }
}

/// Sends a signal to those that are late; whether anybody has called since the last look.
fn look(may_sleep: bool) -> bool {
    let (now, signal) = (now(), signals::late());
    let mut is_called = false;
    let all = for_all(|core| {
        if !may_sleep {
            send_slowly(core, false);
        }
        let seats = match core.seats.try_lock() {
            Ok(seats) => seats,
            Err(TryLockError::Poisoned(seats)) => seats.into_inner(),
            // It looks again.
            Err(TryLockError::WouldBlock) => {
                is_called = true;
                return;
            }
        };
        for seat in seats.iter() {
            // SAFETY: a seat on the list lives, and what is read and written there is atomic.
            let seat = unsafe { &*seat.0 };
            is_called |= seat.look(now);
            if seat.is_late(core, now) {
                let id = seat.id.load(Ordering::Relaxed);
                // SAFETY: it sends a signal that has a handler to a thread that lives: its seat is on the list.
                unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), id, signal) };
            }
        }
    });
    is_called || !all
}

impl Seat {
    /// Notes which call runs; whether there was one since the last look.
    fn look(&self, now: u64) -> bool {
        // The thread writes them the other way round: a call that is inside has its own number, or its next one's.
        let is_inside = self.depth.load(Ordering::Acquire) != 0;
        let entries = self.entries.load(Ordering::Acquire);
        let is_new = self.seen.load(Ordering::Relaxed) != entries;
        if is_new {
            // In this order: the handler never sees a call with another one's time.
            self.since.store(now, Ordering::Relaxed);
            self.seen.store(entries, Ordering::Release);
        }
        is_inside || is_new
    }

    /// Whether the call that runs has run out of time.
    fn is_late(&self, core: &Core, now: u64) -> bool {
        let Some(limit) = core.limits.time else {
            return false;
        };
        let is_inside = self.depth.load(Ordering::Acquire) != 0;
        let is_seen = self.seen.load(Ordering::Acquire) == self.entries.load(Ordering::Relaxed);
        let since = self.since.load(Ordering::Relaxed);
        is_inside && is_seen && now.saturating_sub(since) >= nanoseconds(limit)
    }
}

extern "C" fn on_late(_: i32, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let (here, now) = (here(), now());
    // SAFETY: the kernel gives a handler its context; `here` is the thread's own, and frames are on its control stack.
    unsafe {
        let Some(thread) = (*here).thread.cast::<Thread>().as_mut() else {
            return;
        };
        // The signal is also sent for the room of handlers. Limits are looked at when these have returned.
        if !room::settle(thread, &mut *context.cast()) {
            return;
        }
        let mut frame = (*here).frame.cast_const();
        let is_late = |seat: &Seat| seat.is_late((*seat.inner).core(), now);
        while !frame.is_null() && !is_late(&*(*frame).seat) {
            frame = (*frame).before;
        }
        // In a gate, on the way in or out: it is looked at again.
        if frame.is_null() {
            return;
        }
        let owner = (*(*frame).seat).inner;
        if fault::end_late(owner, &mut *context.cast()) {
            return;
        }
        // In a function of the host, or in another module, which is not to blame: the call ends when that has returned.
        if (*here).domain != owner {
            let before = (*owner).state.fetch_or(state::ENDED, Ordering::SeqCst);
            if before & state::ENDED == 0 {
                thread.late = owner;
            }
        }
    }
}
