//! Timers, work and callbacks of RCU: the kernel keeps structures of its own in the place of the module's.
//!
//! ```text
//!   module ──► gate ──► mediator: may the module write this timer, is the function its own? ──► mullion_timer ──► ours is armed
//!   ours fires ──► the module's gate, with the module's timer
//!   the timer's memory is freed, or the module is ended ──► ours goes
//! ```
//!
//! `mullion_later.c` is the other side of this. Nothing that a module writes into its timer or work is believed after this look.

use crate::journal::{self, Thing};
use crate::kernel::Kernel;
use crate::{WALL, rights};
use mullion_word::runtime::{Domain, caller, refuse};
use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

/// What a function of the kernel does with a timer, work or callback.
#[derive(Clone, Copy)]
pub(crate) enum Later {
    /// `mod_timer` (0), `timer_reduce` (1), `mod_timer_pending` (2).
    Timer(u64),
    /// `add_timer`: when is in the timer.
    AddTimer,
    /// It is taken back; 1: and it does not run any more.
    EndTimer(u64),
    /// `queue_work_on`; with a delay; and anew.
    Work,
    DelayedWork(u64),
    /// It is taken back: whether one waits, and whether it runs first.
    EndWork(u64, u64),
    /// `call_rcu`.
    Callback,
}

/// Bytes of the kernel's structures, and where functions are in them.
const TIMER: usize = 40;
const TIMER_EXPIRES: usize = 16;
const WORK: usize = 32;
const DELAYED_WORK: usize = 88;
const FUNCTION: usize = 24;
const RCU_HEAD: usize = 16;

const NAMES: [&CStr; 7] = [
    c"mullion_timer",
    c"mullion_timer_end",
    c"mullion_work",
    c"mullion_work_end",
    c"mullion_callback",
    c"mullion_later_freed",
    c"mullion_later_undo",
];

static FUNCTIONS: [AtomicUsize; 7] = [const { AtomicUsize::new(0) }; 7];

/// The queues that are the kernel's own.
const QUEUES: [&str; 7] = [
    "system_wq",
    "system_highpri_wq",
    "system_long_wq",
    "system_unbound_wq",
    "system_freezable_wq",
    "system_power_efficient_wq",
    "system_freezable_power_efficient_wq",
];

static QUEUE: [AtomicUsize; 7] = [const { AtomicUsize::new(0) }; 7];

/// Finds the other side. Without it nothing can be armed.
pub(crate) fn settle(kernel: Kernel, of: *mut c_void) {
    if FUNCTIONS[0].load(Ordering::Relaxed) != 0 {
        return;
    }
    let found = |name: &str| kernel.symbol(name, of).unwrap_or_default();
    for (name, place) in QUEUES.iter().zip(&QUEUE) {
        place.store(found(name), Ordering::Relaxed);
    }
    for (name, place) in NAMES.iter().zip(&FUNCTIONS).rev() {
        place.store(found(&name.to_string_lossy()), Ordering::Relaxed);
    }
}

fn call(which: usize, [a, b, c, d, e, f]: [u64; 6]) -> u64 {
    let function = FUNCTIONS[which].load(Ordering::Relaxed);
    if function == 0 {
        return 0;
    }
    // SAFETY: `settle` has the addresses from the kernel, of functions that take no more than these arguments, in registers.
    let function: extern "C" fn(u64, u64, u64, u64, u64, u64) -> i32 =
        unsafe { std::mem::transmute(function) };
    function(a, b, c, d, e, f) as u32 as u64
}

/// Whether a queue is the kernel's own.
fn is_system(queue: u64) -> bool {
    QUEUE.iter().any(|place| {
        let variable = place.load(Ordering::Relaxed) as *const u64;
        // SAFETY: null, or the kernel's own variable, which is a pointer.
        !variable.is_null() && unsafe { *variable } == queue
    })
}

/// A word of a structure that the module may write.
fn word(own: u64, at: usize) -> u64 {
    // SAFETY: the caller has found that the module may write all of it: memory is there.
    unsafe { ((own as usize + at) as *const u64).read_volatile() }
}

fn number(domain: &Domain) -> u64 {
    WALL.get().map_or(0, |wall| wall.number(domain))
}

/// In the place of the kernel's function. The answer is the function's own.
pub(crate) fn mediate(name: &str, later: Later, [a, b, c, d, ..]: [u64; 8]) -> u64 {
    let Some(domain) = caller() else {
        return 0;
    };
    let refused = |why: &str, what: u64| {
        refuse(format!("{name}: {what:#x} is {why}"));
        0
    };
    let (own, bytes) = match later {
        Later::Timer(_) | Later::AddTimer | Later::EndTimer(_) => (a, TIMER),
        Later::Work => (c, WORK),
        Later::DelayedWork(_) => (c, DELAYED_WORK),
        Later::EndWork(..) => (a, WORK),
        Later::Callback => (a, RCU_HEAD),
    };
    // Memory that is lent for a call would be another's when the time has come.
    if !own.is_multiple_of(8) || !rights::lasts(&domain, own, bytes) {
        return refused("not in memory that stays the module's", own);
    }
    match later {
        Later::EndTimer(waits) => return call(1, [own, waits, 0, 0, 0, 0]),
        Later::EndWork(waits, first) => return call(3, [own, waits, first, 0, 0, 0]),
        _ => {}
    }
    let function = match later {
        Later::Callback => b,
        _ => word(own, FUNCTION),
    };
    // A timer that was shut down has none, and is not armed.
    if function == 0 && matches!(later, Later::Timer(_)) {
        return 0;
    }
    if !domain.has_function(function as usize) {
        return refused("no function of the module", function);
    }
    let queue = b;
    let is_queued = matches!(later, Later::Work | Later::DelayedWork(_));
    if is_queued && !is_system(queue) && !journal::holds(&domain, Thing::Queue, queue) {
        return refused("no queue of the module", queue);
    }
    let id = number(&domain);
    match later {
        Later::Timer(how) => call(0, [id, own, function, b, how, 0]),
        Later::AddTimer => call(0, [id, own, function, word(own, TIMER_EXPIRES), 0, 0]),
        Later::Work => call(2, [id, own, function, queue, 0, 0]),
        Later::DelayedWork(again) => call(2, [id, own, function, queue, d, again]),
        Later::Callback => match call(4, [id, own, function, 0, 0, 0]) as i32 {
            0 => 0,
            _ => refused("not called later: there is no memory", own),
        },
        Later::EndTimer(_) | Later::EndWork(..) => 0,
    }
}

/// Memory that modules had goes back. How many timers, works and callbacks in it were armed.
pub(crate) fn freed(start: u64, bytes: u64) -> u64 {
    call(5, [start, bytes, 0, 0, 0, 0])
}

/// Nothing of the module is called from now on. How many of its things were armed.
pub(crate) fn undo(number: u64) -> u64 {
    call(6, [number, 0, 0, 0, 0, 0])
}
