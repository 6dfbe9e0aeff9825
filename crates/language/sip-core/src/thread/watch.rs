//! The watch: an OS thread that looks for threads that run, or sleep in a call of the system, for too long.
//!
//! A thread of a process may sleep in the system. It may wait for a file, or for a lock of the standard library that
//! another thread of its process holds. Then it keeps its worker from all other processes. Its processor time does
//! not grow, so this is counted apart. The watch interrupts the worker at each look; the handler sees whether it has
//! interrupted a call that waited ([`super::calls`]), and counts. So the watch opens no file and asks nothing of the
//! system that a domain may not. A worker that waits for a processor runs no handler, and nothing is counted.

use std::convert::Infallible;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use super::{here, workers};
use crate::process::Cause;

/// How often the watch looks; a limit on a slice is exceeded by at most two of these.
pub const TICK: Duration = Duration::from_millis(5);

/// How long a thread may keep its worker asleep, between one switch of the worker and the next, once a host has
/// asked for that. Exceeding it ends the process, as exceeding its slice does.
pub const ASLEEP: Duration = Duration::from_secs(1);

/// Time in which a thread waits for its output counts as this part of it: how fast output goes is not the process's doing.
const OUTPUT: u32 = 10;

static LOOKS: AtomicBool = AtomicBool::new(false);

/// From here on a process that keeps its worker asleep is ended. Not by itself, since processes that are linked into
/// their host may wait for what the host does.
pub(crate) fn end_sleepers() {
    LOOKS.store(true, Ordering::Relaxed);
}

/// Starts it, once. It runs when this returns, as workers do.
pub(crate) fn start() -> io::Result<()> {
    static WATCHED: AtomicBool = AtomicBool::new(false);
    if WATCHED.swap(true, Ordering::AcqRel) {
        return Ok(());
    }
    let (starting, started) = channel::<Infallible>();
    std::thread::Builder::new()
        .name("sip-watch".into())
        .spawn(move || {
            drop(starting);
            watch()
        })?;
    let _ = started.recv();
    Ok(())
}

fn watch() {
    let mut seen = vec![Seen::default(); workers::all().len()];
    let mut looked = Instant::now();
    loop {
        std::thread::sleep(TICK);
        let passed = looked.elapsed();
        looked += passed;
        for (worker, seen) in workers::all().iter().zip(&mut seen) {
            let now = worker.switches.load(Ordering::Relaxed);
            if worker.inbox.is_asleep() {
                worker.get_up_again();
                seen.switch = 0;
                continue;
            }
            let os_thread = worker.os_thread.load(Ordering::Relaxed);
            let time = processor_time(os_thread);
            if now != seen.switch {
                *seen = Seen {
                    switch: now,
                    since: time,
                    waits: worker.waits.each_ref().map(count),
                    asleep: Duration::ZERO,
                };
                continue;
            }
            let waits = worker.waits.each_ref().map(count);
            let [waited, for_output] = [0, 1].map(|kind| waits[kind] != seen.waits[kind]);
            seen.waits = waits;
            if LOOKS.load(Ordering::Relaxed) {
                seen.asleep += match (waited, for_output) {
                    (true, _) => passed,
                    (false, true) => passed / OUTPUT,
                    (false, false) => Duration::ZERO,
                };
            }
            let lasted = match seen.asleep >= ASLEEP {
                true => u64::MAX,
                false => time.saturating_sub(seen.since),
            };
            worker.lasted.store(lasted, Ordering::Relaxed);
            worker.lasting.store(now, Ordering::Release);
            worker.interrupt();
        }
    }
}

/// What the watch knows of a worker.
#[derive(Clone, Copy, Default)]
struct Seen {
    /// The switch seen last.
    switch: u64,
    /// The worker's processor time when it was first seen.
    since: u64,
    /// What the worker had counted at the last look.
    waits: [u64; 2],
    /// How long the worker has slept since then, as far as interruptions tell.
    asleep: Duration,
}

fn count(of: &AtomicU64) -> u64 {
    of.load(Ordering::Relaxed)
}

/// Whether what runs here is to end. For the signal handler.
pub(super) fn verdict() -> Option<Cause> {
    let (worker, thread) = here::running()?;
    let process = thread.process.get()?;
    if process.is_doomed() {
        return Some(Cause::Killed);
    }
    let same = worker.lasting.load(Ordering::Acquire) == worker.switches.load(Ordering::Relaxed);
    let lasted = Duration::from_nanos(worker.lasted.load(Ordering::Relaxed));
    (same && lasted >= process.slice_limit()).then_some(Cause::Slice)
}

/// Nanoseconds that an OS thread of this program has been on a processor. Waiting for one does not count,
/// so a process on a busy machine is not ended for its neighbours.
fn processor_time(os_thread: i32) -> u64 {
    // How Linux encodes the clock of a thread: CPUCLOCK_PERTHREAD (4) | CPUCLOCK_SCHED (2).
    let clock = (!os_thread) << 3 | 6;
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the time outlives the call.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
