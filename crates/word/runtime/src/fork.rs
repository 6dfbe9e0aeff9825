//! Copies of the process. Each has the table, the domains and the rights that there were, and from then on its own.
//!
//! A copy has one thread: the one that called `fork`. So nobody waits for the others there. The watchdog begins again
//! when a call has a limit, or at once if one goes on there. While the process is copied nobody changes the table. What calls
//! of other threads were granted ends in the copy, because these calls never do.
//!
//! Locks of single domains are not taken. Another thread may just then be in a call of one that has something to
//! decide. Then the copy may wait for ever when it uses that domain. So it is after any `fork` of a process with
//! several threads.

use crate::biased::Guard;
use crate::core::Core;
use crate::keep;
use crate::memory::lock;
use crate::rights::Decider;
use crate::world::{Domains, try_world};
use crate::{thread, watchdog};
use mullion_word_table::Held;
use std::ptr;
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// What the thread that copies the process holds meanwhile.
struct Still {
    /// In the copy, too, the watchdog and the loader find the list.
    domains: MutexGuard<'static, Domains>,
    watchdog: watchdog::Held,
    inside: Held<'static>,
    supervisor: Guard<'static, Decider>,
}

/// Copies are made one at a time: the locks are held.
static STILL: AtomicPtr<Still> = AtomicPtr::new(ptr::null_mut());

/// Called when this library is loaded. So ours is the last of the handlers in front of a copy, and the first behind it:
/// those of a host, which come later, may use domains as ever.
#[used]
// SAFETY: it is called once, when the library is loaded, and registers functions that stay.
#[unsafe(link_section = ".init_array")]
static REGISTER: extern "C" fn() = register;

/// Also called by the first `Host::new`, where a linker has left out the above.
pub(crate) extern "C" fn register() {
    if !REGISTERED.swap(true, Ordering::Relaxed) {
        // SAFETY: the functions stay. They are called by the thread that copies the process, before and behind that.
        unsafe { libc::pthread_atfork(Some(before), Some(behind), Some(in_copy)) };
    }
}

static REGISTERED: AtomicBool = AtomicBool::new(false);

extern "C" fn before() {
    let Some(world) = try_world() else {
        return;
    };
    // The list first: nobody waits for it who has one of the others.
    let domains = lock(&world.domains);
    // In the order in which a revocation takes them.
    let supervisor = world.supervisor_in_copies();
    let still = Still {
        domains,
        inside: world.inside.hold(),
        watchdog: watchdog::hold(),
        supervisor,
    };
    STILL.store(Box::into_raw(Box::new(still)), Ordering::Relaxed);
}

fn still() -> Option<Still> {
    let still = STILL.swap(ptr::null_mut(), Ordering::Relaxed);
    // SAFETY: `before` has made it, and only one takes it.
    (!still.is_null()).then(|| unsafe { *Box::from_raw(still) })
}

extern "C" fn behind() {
    drop(still());
}

extern "C" fn in_copy() {
    if let Some(still) = still() {
        let Still {
            domains,
            watchdog,
            inside,
            mut supervisor,
        } = still;
        let cores: Vec<&'static Core> = domains.all().collect();
        watchdog::in_copy(&cores);
        let others = thread::in_copy(&cores);
        drop(watchdog);
        inside.in_copy();
        for (core, seats) in others {
            // SAFETY: the seats of threads that are not here. Nobody frees them.
            unsafe { keep::end_in_copy(core, &seats, &mut supervisor) };
        }
        drop((supervisor, domains));
        // A call of this thread goes on, and asks for nothing.
        if thread::is_limited() {
            watchdog::begin_again();
        }
    }
}
