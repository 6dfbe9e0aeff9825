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
use crate::cancel;
use crate::clock::{Clock, elapsed, nanoseconds};
use crate::control::Tcb;
use crate::fault::Cause;
use crate::signals;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, compiler_fence};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

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

/// The limit that an invocation is stopped for: nanoseconds, and in the two highest bits
/// whether it is one of all calls of the domain, and by which clock. One word, as it is kept and
/// restored around every limited call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Granted(u64);

const OF_ALL: u64 = 1 << 63;
const BY_PROCESSOR: u64 = 1 << 62;
/// No limit at all: the host has cancelled the call. Durations are below it (73 years).
const CANCELLED: u64 = 1 << 61;

impl Granted {
    /// On one call.
    pub(crate) fn call(clock: Clock, time: Duration) -> Self {
        let by = match clock {
            Clock::Wall => 0,
            Clock::Processor => BY_PROCESSOR,
        };
        Self(nanoseconds(time).min(CANCELLED - 1) | by)
    }

    /// By the host, whatever the limits are.
    pub(crate) fn cancelled() -> Self {
        Self(CANCELLED)
    }

    /// On all calls of the domain.
    pub(crate) fn total(clock: Clock, time: Duration) -> Self {
        Self(Self::call(clock, time).0 | OF_ALL)
    }

    pub(crate) fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// What it is when the time is up.
    pub(crate) fn cause(self) -> Cause {
        if self.0 & CANCELLED != 0 {
            return Cause::Cancelled;
        }
        let granted = Duration::from_nanos(self.0 & (CANCELLED - 1));
        match (self.0 & BY_PROCESSOR != 0, self.0 & OF_ALL != 0) {
            (false, false) => Cause::TimeLimit { granted },
            (false, true) => Cause::TotalTimeLimit { granted },
            (true, false) => Cause::ProcessorTimeLimit { granted },
            (true, true) => Cause::TotalProcessorTimeLimit { granted },
        }
    }
}

/// The time that an invocation has by one clock, and why.
pub(crate) type Bound = (Duration, Granted);

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
    let granted = Granted(nanoseconds.min(CANCELLED - 1));
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
            tcb.processor_granted.store(granted.0, Ordering::Relaxed);
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
    // SAFETY: by the caller's promise.
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
        cancel::again();
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
    let threads = lock();
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

/// What of a thread control block the watchdog uses.
struct Fields<'a> {
    deadline: &'a AtomicU64,
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
    unsafe fn of(block: *const Tcb) -> Self {
        // SAFETY: by the caller's promise; other fields than these are not touched.
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
    fn stop_for(&self, deadline: u64, why: Granted) {
        self.overdrawn_of.store(why.0, Ordering::Relaxed);
        self.overdrawn.store(deadline, Ordering::Release);
    }

    /// Has the thread, which lives, end the invocation with this deadline.
    fn interrupt(&self, deadline: u64) {
        self.stop.store(deadline, Ordering::Relaxed);
        // SAFETY: the call has no memory operand.
        unsafe {
            libc::syscall(
                libc::SYS_tgkill,
                libc::getpid(),
                self.thread,
                signals::time_signal(),
            )
        };
    }

    /// The limit, if the invocation with this deadline has used its processor time.
    fn processor_time_is_up(&self, deadline: u64) -> Option<Granted> {
        let bound = self.processor.load(Ordering::Acquire);
        if bound == 0 || Clock::Processor.of(self.thread) < bound {
            return None;
        }
        let granted = self.processor_granted.load(Ordering::Acquire);
        let same = self.deadline.load(Ordering::Relaxed) == deadline;
        same.then_some(Granted(granted))
    }
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
