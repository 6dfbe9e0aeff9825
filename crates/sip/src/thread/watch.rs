//! The watch: an OS thread that looks for threads that run for too long.

use std::io;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{here, worker};
use crate::process::Cause;
use crate::shared::shared;

/// How often the watch looks; a limit on a slice is exceeded by at most two of these.
pub const TICK: Duration = Duration::from_millis(5);

/// Starts it, once.
pub(crate) fn start() -> io::Result<()> {
    if shared().watched.swap(true, Ordering::AcqRel) {
        return Ok(());
    }
    std::thread::Builder::new()
        .name("sip-watch".into())
        .spawn(watch)?;
    Ok(())
}

fn watch() {
    // Per worker: the switch seen last, and the worker's processor time when it was first seen.
    let mut seen = vec![(0, 0); worker::all().len()];
    loop {
        std::thread::sleep(TICK);
        for (worker, (switch, since)) in worker::all().iter().zip(&mut seen) {
            let now = worker.switches.load(Ordering::Relaxed);
            if worker.inbox.asleep.load(Ordering::Relaxed) != 0 {
                *switch = 0;
                continue;
            }
            let time = processor_time(worker.os_thread.load(Ordering::Relaxed));
            if now != *switch {
                (*switch, *since) = (now, time);
                continue;
            }
            worker
                .lasted
                .store(time.saturating_sub(*since), Ordering::Relaxed);
            worker.lasting.store(now, Ordering::Release);
            worker.interrupt();
        }
    }
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
