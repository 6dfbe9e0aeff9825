//! Time limits: one thread for the whole process.
//!
//! An invocation with a limit notes its deadline in the thread control block: a
//! few plain stores, no system call and no clock. For the present time it takes
//! what the watchdog noted last, `NOW`. Every [`TICK`] the watchdog notes the
//! time and looks at all blocks. As `NOW` may be old, it grants each deadline
//! that it sees for the first time the age that `NOW` may have had. So no
//! invocation is stopped early. Late it may be by two ticks, the granularity of
//! a deadline, and what the kernel takes to wake the watchdog and the thread.
//!
//! A deadline that has passed is copied to the block's STOP. The thread is sent a signal, again
//! at every tick until it has ended. The signal may come where the invocation cannot be ended
//! (`trampoline.s`). No two deadlines of a thread are alike, so one that has been stopped cannot be
//! mistaken for the next.
//!
//! A limit on processor time is noted as what the thread's own clock may not reach. The
//! watchdog reads that clock from its side. Such an invocation always has a deadline
//! too, if need be one that never comes: by its number it is known and stopped.
//!
//! | invocation | watchdog |
//! | --- | --- |
//! | begins: store the deadline, then the bound | load the deadline |
//! | ends: store the outer bound, then the outer deadline | load the bound, read the clock |
//! | | load the deadline again; if it is another one, look at the next tick |
//!
//! So a deadline is never taken together with the bound of what was nested in it.
//!
//! What an invocation does of this is in `deadline`.
//! An invocation that its host may cancel (`cancel`) has a deadline too, for its number.
//!
//! Without any deadline the watchdog sleeps, with `NOW` 0. The handshake:
//!
//! | invocation | watchdog |
//! | --- | --- |
//! | store the deadline | `NOW` = 0 |
//! | (compiler barrier) | membarrier: every thread passes a full barrier |
//! | load `NOW`; if 0, wake the watchdog | look at all deadlines; if there is one, go on |

use crate::account::overdrawn;
use crate::barrier::membarrier;
use crate::clock::{TICK, elapsed};
use crate::deadline::{self, Fields, NOW, sleep_until_woken};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};

/// Ticks without any deadline before the watchdog sleeps.
const IDLE_TICKS: u32 = 500;

/// What is to be stopped at every tick until nothing of it runs.
pub(crate) trait Asked: Send + Sync {
    /// Stops what runs; whether there is anything.
    fn stop(&self) -> bool;
}

static ASKED: Mutex<Vec<Weak<dyn Asked>>> = Mutex::new(Vec::new());

fn asked() -> MutexGuard<'static, Vec<Weak<dyn Asked>>> {
    ASKED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on this is stopped at every tick.
pub(crate) fn stop_at_every_tick(what: Weak<dyn Asked>) {
    asked().push(what);
}

/// Starts the watchdog, if it does not run; whether it does.
pub(crate) fn start() -> bool {
    static STARTED: AtomicBool = AtomicBool::new(false);
    if STARTED.swap(true, Ordering::Relaxed) {
        return true;
    }
    let thread = std::thread::Builder::new().name("mullion-watchdog".into());
    let started = mullion_signals::without(|| thread.spawn(watch).is_ok());
    STARTED.store(started, Ordering::Relaxed);
    started
}

/// What the watchdog knows about a thread's present deadline.
struct Seen {
    deadline: u64,
    /// The deadline, plus what `NOW` may have been too old by.
    granted: u64,
}

fn watch() {
    hurry();
    let may_sleep = membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
    let mut seen = HashMap::new();
    let mut previous = elapsed();
    let mut idle = 0;
    loop {
        let wakes = deadline::wakes();
        let now = elapsed();
        NOW.store(now, Ordering::Relaxed);
        asked().retain(|asked| asked.upgrade().is_some_and(|asked| asked.stop()));
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
    let overdrawn = overdrawn();
    let threads = deadline::lock();
    seen.retain(|block, _| threads.iter().any(|watched| watched.0.addr() == *block));
    let mut active = false;
    for watched in threads.iter() {
        let block = watched.0.addr();
        // SAFETY: blocks are removed from the list before they go away, and the
        // list is locked; only fields as said at `Watched` are used.
        let tcb = unsafe { Fields::of(watched.0) };
        let deadline = tcb.deadline.load(Ordering::Acquire);
        if deadline == 0 {
            seen.remove(&block);
            continue;
        }
        active = true;
        let entry = seen.entry(block).or_insert(Seen {
            deadline: 0,
            granted: 0,
        });
        if entry.deadline != deadline {
            *entry = Seen {
                deadline,
                granted: deadline.saturating_add(age),
            };
        }
        let of_all = overdrawn.iter().find(|thread| thread.block == block);
        let other = of_all.map(|thread| thread.granted);
        let other = other.or_else(|| tcb.processor_time_is_up(deadline));
        if let Some(granted) = other {
            tcb.stop_for(deadline, granted);
        }
        if now >= entry.granted || other.is_some() {
            // The thread is alive, as its block is in the list.
            tcb.interrupt(deadline);
        }
    }
    active
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
