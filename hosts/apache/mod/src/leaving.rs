//! A child in which a module stays stopped, because another thread's call of it does not return. It leaves as a child does that has
//! served `MaxConnectionsPerChild`: it takes no more connections, answers what it has, and ends; the server starts another one.
//!
//! ```text
//!   a stopped module cannot begin anew ──► `accept` of each listener is ours
//!     the next connection comes ──► ours says that the child has no resources, and leaves it to other children
//!                               ──► the MPM ends the child gracefully, with status 0
//! ```

use crate::apr;
use crate::layout::{self, read};
use std::ffi::{CStr, c_int};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// `APR_EGENERAL`: for an MPM, that the child has no resources. It then ends gracefully.
const NO_RESOURCES: c_int = 20014;
/// So many listeners and children are looked at.
const MANY: usize = 100_000;

/// Whether this child is to leave, and whether it does.
static WANTED: AtomicBool = AtomicBool::new(false);
static LEAVES: AtomicBool = AtomicBool::new(false);

/// Whether this child is to leave.
pub(crate) fn is_wanted() -> bool {
    WANTED.load(Ordering::Relaxed)
}

/// `ap_unixd_accept`.
fn accept() -> u64 {
    static AT: OnceLock<usize> = OnceLock::new();
    *AT.get_or_init(|| apr::symbol("ap_unixd_accept").unwrap_or(0)) as u64
}

/// Has this child leave, if it is one of several.
pub(crate) fn leave(module: &str) {
    let is_single = [c"DEBUG", c"ONE_PROCESS"].into_iter().any(is_defined);
    if is_single || !crate::pools::serves() || WANTED.swap(true, Ordering::Relaxed) {
        return;
    }
    let (listeners, real) = (apr::symbol("ap_listeners"), accept());
    // SAFETY: it is the core's variable. The list is made before children begin, and stays.
    let first = listeners.map_or(0, |at| unsafe { read(at as u64) });
    let next = |at: &u64| {
        // SAFETY: it is a listener of the core's.
        Some(unsafe { read(at + layout::L_NEXT) }).filter(|next| *next != 0)
    };
    let all = std::iter::successors(Some(first).filter(|first| *first != 0), next).take(MANY);
    for listener in all {
        // SAFETY: the word of a listener is a function, and aligned. The thread that listens reads it when a connection comes.
        let word = unsafe { &*((listener + layout::L_ACCEPT) as *const AtomicU64) };
        let ours = refuse as *const () as u64;
        let _other = word.compare_exchange(real, ours, Ordering::Relaxed, Ordering::Relaxed);
    }
    // SAFETY: the function stays: this library is not unloaded.
    unsafe { libc::atexit(end) };
    apr::log(
        0,
        &format!(
            "{module} stays stopped in this process, as a call of it does not return: the process takes no more connections"
        ),
    );
}

fn is_defined(name: &CStr) -> bool {
    // SAFETY: it is httpd's function, with a string that ends with a zero.
    unsafe { apr::ap_exists_config_define(name.as_ptr()) != 0 }
}

/// Whether so many children leave, or have to, that the server may lack places for others: a quarter of all, at least one.
fn is_crowded() -> bool {
    let mut all = 0;
    let mut leave = 0;
    for at in 0..MANY {
        // SAFETY: it is httpd's function; it answers null behind the last place.
        let process = unsafe { apr::ap_get_scoreboard_process(at as c_int) };
        if process == 0 {
            break;
        }
        all += 1;
        // SAFETY: it is a place in the scoreboard.
        let (pid, state) = unsafe {
            (
                ((process + layout::PS_PID) as *const i32).read_volatile(),
                ((process + layout::PS_QUIESCING) as *const i8).read_volatile(),
            )
        };
        leave += usize::from(pid != 0 && state != 0);
    }
    all < 2 || leave >= (all / 4).max(1)
}

/// In the place of `ap_unixd_accept`.
extern "C" fn refuse(to: u64, listener: u64, pool: u64) -> c_int {
    if is_crowded() && !LEAVES.load(Ordering::Relaxed) {
        // SAFETY: it is the function that the listener had, with its arguments.
        let real: extern "C" fn(u64, u64, u64) -> c_int = unsafe { std::mem::transmute(accept()) };
        return real(to, listener, pool);
    }
    LEAVES.store(true, Ordering::Relaxed);
    NO_RESOURCES
}

/// The MPM ends a child without resources with a status of its own. A server whose first children end so gives up; this one need not.
extern "C" fn end() {
    if LEAVES.load(Ordering::Relaxed) {
        // SAFETY: the MPM has ended all threads, and has cleared the child's pool.
        unsafe { libc::_exit(0) };
    }
}
