//! Time limits: one thread for the whole process.
//!
//! An invocation with a limit notes its deadline in the thread control block: a
//! few plain stores, no system call and no clock. For the present time it takes
//! what the watchdog noted last, `NOW`. Every [`TICK`] the watchdog notes the
//! time and looks at all blocks. As `NOW` may be old, it grants each deadline
//! that it sees for the first time the age that `NOW` may have had: no
//! invocation is stopped early. Late it may be by two ticks, the granularity of
//! a deadline, and what the kernel takes to wake the watchdog and the thread.
//!
//! A deadline that has passed is copied to the block's STOP, and the thread is
//! sent a signal, again at every tick until it has ended: the signal may come
//! where the invocation cannot be ended (`trampoline.s`). No two deadlines of a
//! thread are alike, so one that has been stopped cannot be mistaken for the next.
//!
//! Without any deadline the watchdog sleeps, with `NOW` 0. The handshake:
//!
//! | invocation | watchdog |
//! | --- | --- |
//! | store the deadline | `NOW` = 0 |
//! | (compiler barrier) | membarrier: every thread passes a full barrier |
//! | load `NOW`; if 0, wake the watchdog | look at all deadlines; if there is one, go on |

use crate::account::overdrawn;
use crate::control::Tcb;
use crate::fault::Cause;
use crate::signals;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, compiler_fence};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// How often the watchdog looks while some invocation has a limit.
pub const TICK: Duration = Duration::from_millis(2);
/// Low bits of a deadline (in nanoseconds) that hold its number: about a millisecond.
const NUMBER_BITS: u32 = 20;
const NUMBER_MASK: u64 = (1 << NUMBER_BITS) - 1;
/// Ticks without any deadline before the watchdog sleeps.
const IDLE_TICKS: u32 = 500;

/// Nanoseconds since the process's first limited invocation, plus one; 0: asleep.
static NOW: AtomicU64 = AtomicU64::new(0);
/// What the sleeping watchdog waits for.
static WAKE: AtomicU32 = AtomicU32::new(0);
static THREADS: Mutex<Vec<Watched>> = Mutex::new(Vec::new());

/// A thread control block that is alive: whoever drops it removes it here first.
#[derive(Clone, Copy)]
struct Watched(*const Tcb);

// SAFETY: the watchdog uses only the fields of atomic types and those that never
// change, and only while it holds the lock of the list.
unsafe impl Send for Watched {}

pub(crate) fn add(tcb: &Tcb) {
    lock().push(Watched(tcb));
}

pub(crate) fn remove(tcb: &Tcb) {
    lock().retain(|watched| !std::ptr::eq(watched.0, tcb));
}

fn lock() -> std::sync::MutexGuard<'static, Vec<Watched>> {
    THREADS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The limit that a deadline comes from: nanoseconds, of one call or, with the
/// highest bit, of all calls of the domain. One word, as it is kept and restored
/// around every limited call.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Granted(u64);

const OF_ALL: u64 = 1 << 63;

impl Granted {
    /// On one call.
    pub(crate) fn call(time: Duration) -> Self {
        Self(nanoseconds(time).min(OF_ALL - 1))
    }

    /// On all calls of the domain.
    pub(crate) fn total(time: Duration) -> Self {
        Self(nanoseconds(time) | OF_ALL)
    }

    /// What it is when the time is up.
    pub(crate) fn cause(self) -> Cause {
        let granted = Duration::from_nanos(self.0 & !OF_ALL);
        match self.0 & OF_ALL {
            0 => Cause::TimeLimit { granted },
            _ => Cause::TotalTimeLimit { granted },
        }
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The limit of the outer invocation: 0 is none.
pub(crate) type Outer = (u64, Granted);

/// Limits what follows on this thread to `time`, or less if an outer invocation
/// has less left. Returns the outer limit, for [`disarm`].
pub(crate) fn arm(tcb: &Tcb, time: Duration, granted: Granted) -> Outer {
    let outer = tcb.deadline.load(Ordering::Relaxed);
    let outer_granted = tcb.granted.get();
    let number = tcb.limited.get().wrapping_add(1);
    tcb.limited.set(number);
    let mut now = NOW.load(Ordering::Relaxed);
    if now == 0 {
        now = elapsed();
    }
    let end = now.saturating_add(time.as_nanos().try_into().unwrap_or(u64::MAX >> 1));
    let deadline = (end.saturating_add(NUMBER_MASK) & !NUMBER_MASK) | (number & NUMBER_MASK);
    let deadline = if outer == 0 || deadline < outer {
        tcb.granted.set(granted);
        deadline
    } else {
        outer
    };
    tcb.deadline.store(deadline, Ordering::Relaxed);
    compiler_fence(Ordering::SeqCst);
    if NOW.load(Ordering::Relaxed) == 0 {
        wake();
    }
    (outer, outer_granted)
}

/// Ends the limit; `outer` is what [`arm`] returned.
pub(crate) fn disarm(tcb: &Tcb, (outer, granted): Outer) {
    tcb.deadline.store(outer, Ordering::Relaxed);
    tcb.granted.set(granted);
}

/// Nanoseconds since the first use, plus one.
pub(crate) fn elapsed() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    let elapsed = START.get_or_init(Instant::now).elapsed().as_nanos();
    u64::try_from(elapsed).unwrap_or(u64::MAX >> 2) + 1
}

#[cold]
fn wake() {
    static STARTED: AtomicBool = AtomicBool::new(false);
    if !STARTED.swap(true, Ordering::Relaxed) {
        let thread = std::thread::Builder::new().name("mullion-watchdog".into());
        if thread.spawn(watch).is_err() {
            // No thread is to be had now; the next limited invocation tries again.
            STARTED.store(false, Ordering::Relaxed);
        }
    }
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

/// What the watchdog knows about a thread's present deadline.
struct Seen {
    deadline: u64,
    /// The deadline, plus what `NOW` may have been too old by.
    granted: u64,
}

fn watch() {
    block_signals();
    hurry();
    let may_sleep = membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
    let mut seen = HashMap::new();
    let mut previous = elapsed();
    let mut idle = 0;
    loop {
        let wakes = WAKE.load(Ordering::SeqCst);
        let now = elapsed();
        NOW.store(now, Ordering::Relaxed);
        let active = look(&mut seen, now, now - previous);
        previous = now;
        idle = if active { 0 } else { idle + 1 };
        if idle > IDLE_TICKS && may_sleep {
            NOW.store(0, Ordering::SeqCst);
            membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED);
            if !look(&mut seen, now, 0) {
                sleep_until_woken(wakes);
                previous = elapsed();
            }
            idle = 0;
            continue;
        }
        std::thread::sleep(TICK);
    }
}

/// Looks at all deadlines, stops what is past its own; whether there are any.
fn look(seen: &mut HashMap<usize, Seen>, now: u64, age: u64) -> bool {
    let overdrawn = overdrawn(now);
    let threads = lock();
    seen.retain(|block, _| threads.iter().any(|watched| watched.0.addr() == *block));
    let mut active = false;
    for watched in threads.iter() {
        // SAFETY: blocks are removed from the list before they go away, and the
        // list is locked; only fields as said at `Watched` are used.
        let (tcb, thread) = unsafe {
            let tcb = watched.0;
            let shared = (
                &(*tcb).deadline,
                &(*tcb).stop,
                &(*tcb).overdrawn,
                &(*tcb).overdrawn_of,
            );
            (shared, (*tcb).thread)
        };
        let (deadline, stop, is_overdrawn, overdrawn_of) = tcb;
        let deadline = deadline.load(Ordering::Relaxed);
        if deadline == 0 {
            seen.remove(&watched.0.addr());
            continue;
        }
        active = true;
        let entry = seen.entry(watched.0.addr()).or_insert(Seen {
            deadline: 0,
            granted: 0,
        });
        if entry.deadline != deadline {
            *entry = Seen {
                deadline,
                granted: deadline.saturating_add(age),
            };
        }
        let mut overdrawn = overdrawn.iter();
        let all = overdrawn.find(|thread| thread.block == watched.0.addr());
        if let Some(all) = all {
            overdrawn_of.store(nanoseconds(all.granted), Ordering::Relaxed);
            is_overdrawn.store(deadline, Ordering::Release);
        }
        if now >= entry.granted || all.is_some() {
            stop.store(deadline, Ordering::Relaxed);
            // SAFETY: the thread is alive, as its block is in the list.
            unsafe {
                libc::syscall(
                    libc::SYS_tgkill,
                    libc::getpid(),
                    thread,
                    signals::time_signal(),
                )
            };
        }
    }
    active
}

fn sleep_until_woken(wakes: u32) {
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

pub(crate) fn membarrier(command: libc::c_int) -> bool {
    // SAFETY: the call has no memory operand.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

/// The host's signals are for the host's threads.
fn block_signals() {
    // SAFETY: the set is filled before it is used.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigfillset(&mut set);
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
    }
}

/// Asks the scheduler to run this thread soon when it wakes: it needs little, and
/// the time limits are as exact as it is. Whether it agrees is its own affair: a
/// short slice may be had by anybody from Linux 6.12 on, a better priority by few.
fn hurry() {
    for nice in [-20, 0] {
        let attributes = libc::sched_attr {
            size: size_of::<libc::sched_attr>() as u32,
            sched_policy: libc::SCHED_OTHER as u32,
            sched_flags: 0,
            sched_nice: nice,
            sched_priority: 0,
            sched_runtime: 100_000,
            sched_deadline: 0,
            sched_period: 0,
        };
        // SAFETY: the structure is valid, and its size is in it; it is about this thread.
        if unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &attributes, 0) } == 0 {
            return;
        }
    }
}
