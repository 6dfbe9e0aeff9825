//! Threads of processes: coroutines with stacks of their own, on one worker (an OS thread) per core.
//!
//! ```text
//!   other workers, host --inbox--> worker: run queue -> resume -> suspended: parked, ready or over -> ...
//!                                          timers         |
//!                     signals: endless loop, fault ------> the process ends, nothing of it runs again
//! ```
//! A thread stays on the worker where it was started. Compilers keep addresses of thread-local variables
//! across calls, so a coroutine that has run must not move to another OS thread.

mod begin;
mod calls;
pub(crate) mod fiber;
pub(crate) mod here;
pub(crate) mod inbox;
mod large_stack;
mod places;
pub(crate) mod run_queue;
pub(crate) mod schedule;
pub(crate) mod signals;
pub(crate) mod slot;
pub(crate) mod stacks;
mod suspend;
pub(crate) mod switch;
pub(crate) mod timers;
pub(crate) mod watch;
pub(crate) mod worker;
pub(crate) mod workers;

pub(crate) use large_stack::on_large_stack;
pub(crate) use stacks::Room;
pub use stacks::{STACK, ThreadError};
pub use watch::{ASLEEP, TICK};

use std::time::{Duration, Instant};

use crate::critical::as_host_moving;
use crate::process::panic;
use crate::wait;
use fiber::NewFiber;

/// A new thread of the calling process, which runs once the calling one waits or yields. It ends when `body`
/// returns, or with the process.
#[inline]
pub fn spawn<F: FnOnce() + 'static>(body: F) -> Result<(), ThreadError> {
    let (worker, thread) = here::running().ok_or(ThreadError::NoProcess)?;
    let process = thread.process.get().ok_or(ThreadError::NoProcess)?;
    let _host = as_host_moving::<F>();
    if !process.may_start_thread() {
        return Err(ThreadError::TooMany);
    }
    let stack = worker.stack_for(process.owner())?;
    // SAFETY: the process's worker is the calling OS thread.
    let fiber = unsafe { NewFiber::new(stack, move || run(body)) };
    match worker.add(process, fiber) {
        Ok(_) => Ok(()),
        Err(fiber) => {
            worker.take_back(process.owner(), fiber.into_stack());
            Err(ThreadError::TooMany)
        }
    }
}

/// A thread from its beginning to its return.
fn run(body: impl FnOnce()) {
    panic::contain(body);
    #[cfg(feature = "separate")]
    panic::contain(crate::locals::leave);
}

/// Lets the other threads of the worker run; for a plain OS thread, of the system.
#[inline]
pub fn yield_now() {
    match here::running() {
        Some((worker, thread)) => worker.yield_now(thread),
        None => std::thread::yield_now(),
    }
}

/// Waits for a time to come.
pub fn sleep_until(deadline: Instant) {
    while Instant::now() < deadline {
        wait::park_until(deadline);
    }
}

/// Waits for a time to pass.
pub fn sleep(pause: Duration) {
    sleep_until(Instant::now() + pause);
}
