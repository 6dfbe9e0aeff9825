//! The state of this crate that a program has once, whatever was built on its own and loaded into it.
//!
//! ```text
//!   host (linked)                            separately built SIP (feature `separate`)
//!   OWN: State   <------------------------   HOST -> the host's, from `attach` on; before that its own
//!   HERE (of each OS thread)  <-----------   its distance from the thread pointer, asked for once
//! ```
//! A separately built SIP has a copy of this crate, with copies of its statics and thread-locals. Both copies
//! run the same source with the same layout, which is checked before the SIP is loaded, so one pointer to the host's
//! state is all that they need to agree on. What stays in a copy for itself concerns its own standard library: the
//! panic hook, and its handles of OS threads.

use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Mutex, OnceLock, RwLock};

use mullion_sip_digest::{Digest, Hasher};

use crate::decide;
use crate::heap::{self, Heap};
use crate::hooks::Registered;
use crate::locals::SystemLocals;
use crate::owner::Teardown;
use crate::process::{self, Process, Tree};
use crate::table::Table;
use crate::thread::Room;
use crate::thread::here::{self, Here};
use crate::thread::signals::Before;
use crate::thread::slot::Thread;
use crate::thread::worker::Worker;
use crate::wait::HostThreads;

/// All of it.
#[allow(missing_debug_implementations)]
pub struct State {
    /// From the thread pointer to what an OS thread has, in the copy of the crate that this state is of.
    pub(crate) here: fn() -> usize,
    /// The system's own functions of thread-locals, by which libraries reach theirs outside of processes.
    #[cfg_attr(
        not(feature = "separate"),
        expect(dead_code, reason = "libraries read it")
    )]
    pub(crate) system_locals: SystemLocals,
    /// Whether somebody has had the power of the host.
    pub(crate) begun: AtomicBool,
    pub(crate) starting: Mutex<()>,
    pub(crate) watched: AtomicBool,
    pub(crate) workers: OnceLock<Box<[Worker]>>,
    /// Where the next process without a wish lives.
    pub(crate) next_home: AtomicUsize,
    pub(crate) processes: OnceLock<Table<Process, { process::PLACES }>>,
    pub(crate) tree: Mutex<Tree>,
    pub(crate) hooks: Registered,
    pub(crate) teardown: RwLock<Vec<Teardown>>,
    pub(crate) stacks: Room,
    pub(crate) host_threads: Mutex<HostThreads>,
    /// The program's own handlers of signals.
    pub(crate) signals: OnceLock<Before>,
    pub(crate) decider: decide::State,
    pub(crate) heaps: heap::State,
}

/// This copy's.
pub(crate) static OWN: State = State {
    here: here::distance,
    system_locals: SystemLocals::OWN,
    begun: AtomicBool::new(false),
    starting: Mutex::new(()),
    watched: AtomicBool::new(false),
    workers: OnceLock::new(),
    next_home: AtomicUsize::new(0),
    processes: OnceLock::new(),
    tree: Mutex::new(Tree::new()),
    hooks: Registered::new(),
    teardown: RwLock::new(Vec::new()),
    stacks: Room::new(),
    host_threads: Mutex::new(HostThreads::new()),
    signals: OnceLock::new(),
    decider: decide::State::new(),
    heaps: heap::State::new(),
};

/// `state()`, the program's, for a crate of which libraries have copies; `$own` is the state of this copy. With the
/// feature `separate`, `attach` brings the copy to the host's.
#[doc(hidden)]
#[macro_export]
macro_rules! __state {
    ($own:ident: $state:ty) => {
        /// The program's.
        #[cfg(not(feature = "separate"))]
        #[inline(always)]
        pub(crate) fn state() -> &'static $state {
            &$own
        }

        #[cfg(feature = "separate")]
        static HOST: ::std::sync::atomic::AtomicPtr<$state> =
            ::std::sync::atomic::AtomicPtr::new((&raw const $own).cast_mut());

        /// The program's: the host's once this copy of the crate is attached to one.
        #[cfg(feature = "separate")]
        #[inline(always)]
        pub(crate) fn state() -> &'static $state {
            // SAFETY: `HOST` is this copy's static, or what `attach` was given, which lives for ever by its contract.
            unsafe { &*HOST.load(::std::sync::atomic::Ordering::Relaxed) }
        }

        /// From here on this copy of the crate works with the host's state.
        ///
        /// # Safety
        /// `host` is the state of a copy of this crate with the same layout, and lives for ever. Nothing but the
        /// allocator of this copy has been used, and by the calling OS thread only.
        #[cfg(feature = "separate")]
        pub(crate) unsafe fn attach(host: *const $state) {
            HOST.store(host.cast_mut(), ::std::sync::atomic::Ordering::Relaxed);
        }
    };
}

__state!(OWN: State);

/// Sizes and alignments of types, in order.
macro_rules! sizes {
    ($hasher:expr; $($kind:ty),* $(,)?) => {
        $hasher$(.number(size_of::<$kind>() as u64).number(align_of::<$kind>() as u64))*
    };
}

/// Where the fields of a type are.
macro_rules! places {
    ($hasher:expr; $kind:ty: $($field:ident),* $(,)?) => {
        $hasher$(.number(std::mem::offset_of!($kind, $field) as u64))*
    };
}

/// Where the compiler has put everything that copies of this crate share. With the same sources and the same compiler it
/// is the same, unless somebody has asked the compiler for something unusual.
pub(crate) const fn layout() -> Digest {
    let hasher: Hasher = sizes!(Digest::new(); State, Here, Process, Tree, process::Exit, process::Limits, process::Rights,
        Worker, Thread, Heap, heap::State, Teardown, HostThreads);
    let hasher = places!(hasher; State: here, starting, watched, workers, next_home, processes, tree, hooks, teardown,
        stacks, host_threads, signals, decider, heaps);
    let hasher = places!(hasher; Thread: slot, state, token, process, heap, fiber, locals, deadline, next, previous);
    places!(hasher; Process: start_link, end_link, threads, main, alive, heap).finish()
}
