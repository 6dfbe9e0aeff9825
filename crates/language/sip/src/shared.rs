//! The state that a program has once, whatever was built on its own and loaded into it.
//!
//! ```text
//!   host (linked)                            separately built SIP (feature `separate`)
//!   OWN: Shared  <------------------------   HOST -> the host's, from `attach` on; before that its own
//!   HERE (of each OS thread)  <-----------   its distance from the thread pointer, asked for once
//! ```
//! A separately built SIP has a copy of this crate, with copies of its statics and thread-locals. Both copies
//! run the same source with the same layout, which is checked before the SIP is loaded ([`crate::manifest`]), so
//! one pointer to the host's state is all that they need to agree on. What stays in a copy for itself concerns
//! its own standard library: the panic hook, and its handles of OS threads.

use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Mutex, OnceLock, RwLock};
use std::time::Instant;

use crate::decide;
use crate::exchange;
use crate::heap;
use crate::kernel::{KERNEL, Kernel, Offered};
use crate::owner::Teardown;
use crate::process::names::Names;
use crate::process::{self, Process, Tree};
use crate::remote;
use crate::separate::SystemLocals;
use crate::table::Table;
use crate::thread::Room;
use crate::thread::here;
use crate::thread::signals::Before;
use crate::thread::worker::Worker;
use crate::wait::HostThreads;

/// All of it.
pub(crate) struct Shared {
    /// The table whose calls work with this state.
    pub(crate) kernel: &'static Kernel,
    /// From the thread pointer to what an OS thread has, in the copy of the crate that this state is of.
    pub(crate) here: fn() -> usize,
    /// The system's own functions of thread-locals, by which libraries reach theirs outside of processes.
    #[cfg_attr(
        not(feature = "separate"),
        expect(dead_code, reason = "libraries read it")
    )]
    pub(crate) system_locals: SystemLocals,
    /// Whether somebody has had the first [`Host`](crate::host::Host).
    pub(crate) begun: AtomicBool,
    pub(crate) starting: Mutex<()>,
    pub(crate) watched: AtomicBool,
    pub(crate) beginning: OnceLock<Instant>,
    pub(crate) workers: OnceLock<Box<[Worker]>>,
    /// Where the next process without a wish lives.
    pub(crate) next_home: AtomicUsize,
    pub(crate) processes: OnceLock<Table<Process, { process::PLACES }>>,
    pub(crate) tree: Mutex<Tree>,
    pub(crate) names: Mutex<Names>,
    pub(crate) hooks: RwLock<Vec<Teardown>>,
    pub(crate) stacks: Room,
    pub(crate) host_threads: Mutex<HostThreads>,
    /// The program's own handlers of signals.
    pub(crate) signals: OnceLock<Before>,
    pub(crate) decider: decide::State,
    pub(crate) heaps: heap::State,
    pub(crate) exchange: exchange::State,
    pub(crate) remote: remote::State,
    pub(crate) survey: process::survey::State,
    pub(crate) offered: Mutex<Offered>,
}

pub(crate) static OWN: Shared = Shared {
    kernel: &KERNEL,
    here: here::distance,
    system_locals: SystemLocals::OWN,
    begun: AtomicBool::new(false),
    starting: Mutex::new(()),
    watched: AtomicBool::new(false),
    beginning: OnceLock::new(),
    workers: OnceLock::new(),
    next_home: AtomicUsize::new(0),
    processes: OnceLock::new(),
    tree: Mutex::new(Tree::new()),
    names: Mutex::new(Names::new()),
    hooks: RwLock::new(Vec::new()),
    stacks: Room::new(),
    host_threads: Mutex::new(HostThreads::new()),
    signals: OnceLock::new(),
    decider: decide::State::new(),
    heaps: heap::State::new(),
    exchange: exchange::State::new(),
    remote: remote::State::new(),
    survey: process::survey::State::new(),
    offered: Mutex::new(Offered::new()),
};

/// The program's.
#[cfg(not(feature = "separate"))]
#[inline(always)]
pub(crate) fn shared() -> &'static Shared {
    &OWN
}

#[cfg(feature = "separate")]
pub(crate) use separate::{attach, shared};

#[cfg(feature = "separate")]
mod separate {
    use std::sync::atomic::{AtomicPtr, Ordering};

    use super::{OWN, Shared};
    static HOST: AtomicPtr<Shared> = AtomicPtr::new((&raw const OWN).cast_mut());

    /// The program's: the host's once this copy of the crate is attached to one.
    #[inline(always)]
    pub(crate) fn shared() -> &'static Shared {
        // SAFETY: `OWN`, or what `attach` was given; both live as long as the program.
        unsafe { &*HOST.load(Ordering::Relaxed) }
    }

    /// From here on this copy of the crate works with the host's state.
    ///
    /// # Safety
    /// `host` is the state of a copy of this crate with the same layout, and lives for ever. Nothing but the
    /// allocator of this copy has been used, and by the calling OS thread only.
    pub(crate) unsafe fn attach(host: *const Shared) {
        HOST.store(host.cast_mut(), Ordering::Relaxed);
        // SAFETY: by the caller.
        let distance = unsafe { (*host).here };
        crate::separate::HERE.store(distance(), Ordering::Relaxed);
    }
}
