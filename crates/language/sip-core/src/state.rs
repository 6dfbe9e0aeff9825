//! The states of all modules, which copies of this crate share; see [`crate::program`].

use std::sync::atomic::AtomicUsize;
use std::sync::{Mutex, OnceLock, RwLock};

use mullion_sip_digest::{Digest, Hasher};

use crate::heap::{self, Heap};
use crate::hooks::Registered;
use crate::locals::SystemLocals;
use crate::owners::{self, Teardown};
use crate::process::{self, Process, Tree};
use crate::table::Table;
use crate::thread::here::{self, Here};
use crate::thread::slot::Thread;
use crate::thread::worker::{SharedWorker, Worker};
use crate::thread::workers::{self, Published};
use crate::thread::{Room, stacks};
use crate::wait::{self, HostThreads};
use crate::{decide, hooks, locals};

/// All of them.
#[allow(missing_debug_implementations)]
pub struct CoreState {
    /// From the thread pointer to what an OS thread has, in the copy of the crate that this state is of.
    here: fn() -> usize,
    /// The system's own functions of thread-locals, by which libraries reach theirs outside of processes.
    system_locals: &'static SystemLocals,
    workers: &'static OnceLock<Published>,
    next_home: &'static AtomicUsize,
    processes: &'static OnceLock<Table<Process, { process::PLACES }>>,
    tree: &'static Mutex<Tree>,
    hooks: &'static OnceLock<Registered>,
    teardown: &'static RwLock<Vec<Teardown>>,
    stacks: &'static Room,
    host_threads: &'static Mutex<HostThreads>,
    decider: &'static decide::State,
    heaps: &'static heap::State,
}

/// This copy's.
pub(crate) static OWN: CoreState = CoreState {
    here: here::distance,
    system_locals: &locals::OWN,
    workers: &workers::OWN,
    next_home: &process::spawn::OWN,
    processes: &process::record::OWN,
    tree: &process::tree::OWN,
    hooks: &hooks::OWN,
    teardown: &owners::OWN,
    stacks: &stacks::OWN,
    host_threads: &wait::host::OWN,
    decider: &decide::OWN,
    heaps: &heap::region::OWN,
};

/// From here on this copy of the crate works with the host's state. Nothing but its allocator has been used.
#[cfg(feature = "separate")]
pub(crate) fn attach(host: &'static CoreState) {
    locals::attach(host.system_locals);
    workers::attach(host.workers);
    process::spawn::attach(host.next_home);
    process::record::attach(host.processes);
    process::tree::attach(host.tree);
    hooks::attach(host.hooks);
    owners::attach(host.teardown);
    stacks::attach(host.stacks);
    wait::host::attach(host.host_threads);
    decide::attach(host.decider);
    heap::region::attach(host.heaps);
    here::attach((host.here)());
}

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
    let hasher: Hasher = sizes!(Digest::new(); CoreState, Here, SystemLocals, Registered, Room, decide::State, Process, Tree, process::Exit, process::Limits, process::Rights,
        SharedWorker, Worker, Thread, Heap, heap::State, Teardown, HostThreads);
    let hasher = places!(hasher; CoreState: here, system_locals, workers, next_home, processes, tree, hooks, teardown, stacks,
        host_threads, decider, heaps);
    let hasher = places!(hasher; Thread: slot, state, token, process, heap, fiber, locals, deadline, next, previous);
    places!(hasher; Process: start_link, end_link, threads, main, alive, heap).finish()
}
