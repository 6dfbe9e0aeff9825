//! What a module has of the kernel and has to give back: references, locks, registrations.
//!
//! ```text
//!   module ──► gate ──► mediator ──► __bread_gfp ──► a buffer: noted
//!   module ──► gate ──► mediator: is it noted? ──► __brelse
//!   the module is ended ──► its locks are opened, its file systems answer with errors   (`at_once`)
//!                      └──► all else is given back, the latest first, in a thread of the kernel   (`give_back`)
//! ```

use crate::kernel::Kernel;
use crate::{registrations, returns};
use mullion_word::runtime::{Domain, Granted};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What can be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Thing {
    /// A reference to a block's buffer.
    Buffer,
    /// The lock of a block's buffer, which is a bit of it.
    BufferLock,
    /// A reference to a page.
    Page,
    /// The lock of a page, which is a bit of its structure.
    PageLock,
    /// A reference to an inode.
    Inode,
    /// A cache of objects.
    Cache,
    /// A type of file systems, which is registered: our copy of it.
    FileSystem,
    /// A mutex that is closed.
    Mutex,
    /// A semaphore that is closed to readers.
    Semaphore,
    /// A semaphore that is closed to writers.
    Readers,
    /// A reference to a name. A function may return it to the kernel, so it is forgotten when its task goes back to its program.
    Dentry,
    /// Leave to write to a mount.
    Mount,
    /// Something else that is registered, by our copy of it, and its type.
    Registration,
    /// A queue of work.
    Queue,
    /// Memory for each processor, of so many bytes.
    PerCpu,
    /// A network device that is not registered.
    Device,
    /// A kind of network devices, which is registered.
    Link,
    /// A reference to a name space of networks.
    Net,
    /// The kernel's count of what a registered device has sent.
    Counts,
    /// The lock of all networks.
    Networks,
    /// A disk.
    Disk,
    /// A number of a kind of disks, and its name.
    Major,
    /// Pages of memory: which, and the logarithm of how many.
    Pages,
    /// An inode that is marked as new: others wait until it is filled in.
    NewInode,
    /// A file system that is not frozen meanwhile.
    Unfrozen,
    /// An algorithm of digests that is had to be called.
    Hash,
    /// A reference to a table of characters.
    Characters,
    /// Page faults, or soft interrupts, that are off in a task: once for each time.
    PageFaults,
    BottomHalves,
}

impl Thing {
    /// What a call leaves in its task if it does not give it back. None: it may stay behind the call.
    fn of_task(self) -> Option<&'static str> {
        match self {
            Thing::BufferLock => Some("a buffer locked"),
            Thing::PageLock => Some("a page locked"),
            Thing::Mutex => Some("a mutex closed"),
            Thing::Semaphore | Thing::Readers => Some("a semaphore closed"),
            Thing::Networks => Some("the lock of networks closed"),
            Thing::NewInode => Some("an inode marked as new"),
            Thing::Unfrozen => Some("a file system kept from being frozen"),
            Thing::Mount => Some("a mount open to writing"),
            Thing::PageFaults => Some("page faults off"),
            Thing::BottomHalves => Some("soft interrupts off"),
            _ => None,
        }
    }

    /// Whether the kernel finds the module by it.
    fn is_registered(self) -> bool {
        match self {
            Thing::FileSystem | Thing::Registration | Thing::Link | Thing::Major => true,
            Thing::Buffer
            | Thing::BufferLock
            | Thing::Page
            | Thing::PageLock
            | Thing::Inode
            | Thing::Cache
            | Thing::Mutex
            | Thing::Semaphore
            | Thing::Readers
            | Thing::Dentry
            | Thing::Mount
            | Thing::Queue
            | Thing::PerCpu
            | Thing::Device
            | Thing::Net
            | Thing::Counts
            | Thing::Networks
            | Thing::Disk
            | Thing::Pages
            | Thing::NewInode
            | Thing::Unfrozen
            | Thing::Hash
            | Thing::Characters
            | Thing::PageFaults
            | Thing::BottomHalves => false,
        }
    }
}

/// How it is given back for a module that does not run any more: by which function, and, if the task whose call is ended
/// has to do something itself, by which one first.
struct Undo {
    thing: Thing,
    name: &'static str,
    function: AtomicUsize,
    first: &'static str,
    first_function: AtomicUsize,
}

const fn undo(thing: Thing, name: &'static str, first: &'static str) -> Undo {
    Undo {
        thing,
        name,
        function: AtomicUsize::new(0),
        first,
        first_function: AtomicUsize::new(0),
    }
}

static UNDO: [Undo; 26] = [
    undo(Thing::Buffer, "__brelse", ""),
    // Not at once: the kernel's function that has called the module may need the lock to its end.
    undo(Thing::BufferLock, "mullion_undo_buffer_lock", ""),
    undo(Thing::Page, "mullion_put_page", ""),
    undo(Thing::PageLock, "mullion_undo_page_lock", ""),
    undo(Thing::Inode, "mullion_undo_inode", ""),
    undo(Thing::Cache, "mullion_undo_cache", ""),
    undo(
        Thing::FileSystem,
        "mullion_undo_filesystem",
        "mullion_kill_filesystem",
    ),
    undo(Thing::Mutex, "", "mutex_unlock"),
    undo(Thing::Semaphore, "", "up_write"),
    undo(Thing::Readers, "", "up_read"),
    undo(Thing::Mount, "mnt_drop_write_file", ""),
    undo(Thing::Queue, "destroy_workqueue", ""),
    undo(Thing::PerCpu, "free_percpu", ""),
    undo(Thing::Device, "free_netdev", ""),
    undo(Thing::Link, "mullion_undo_link", ""),
    undo(Thing::Net, "mullion_put_net", ""),
    undo(Thing::Networks, "", "rtnl_unlock"),
    undo(Thing::Disk, "put_disk", ""),
    undo(Thing::Major, "unregister_blkdev", ""),
    undo(Thing::Pages, "__free_pages", ""),
    undo(Thing::NewInode, "", "mullion_undo_new_inode"),
    undo(Thing::Unfrozen, "", "mullion_super_ends"),
    undo(Thing::Hash, "mullion_undo_hash", ""),
    undo(Thing::Characters, "unload_nls", ""),
    undo(Thing::PageFaults, "", "mullion_undo_pagefaults"),
    undo(Thing::BottomHalves, "", "mullion_undo_bottom_halves"),
];

struct Held {
    domain: u32,
    thing: Thing,
    /// What is had, and an argument that giving it back needs.
    what: [u64; 2],
    /// The task that took it.
    task: u64,
    /// It is memory, which the module may write meanwhile.
    rights: Vec<Granted>,
}

static HELD: Mutex<Vec<Held>> = Mutex::new(Vec::new());

fn held() -> MutexGuard<'static, Vec<Held>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The kernel's functions of these names.
pub(crate) fn settle(kernel: Kernel, of: *mut std::ffi::c_void) {
    for one in &UNDO {
        let found = |name| kernel.symbol(name, of).unwrap_or_default();
        for (name, place) in [(one.name, &one.function), (one.first, &one.first_function)] {
            if !name.is_empty() && place.load(Ordering::Relaxed) == 0 {
                place.store(found(name), Ordering::Relaxed);
            }
        }
    }
    if TASK.load(Ordering::Relaxed) == 0 {
        let task = kernel.symbol("mullion_thread_info", of).unwrap_or_default();
        TASK.store(task, Ordering::Relaxed);
    }
}

/// `mullion_thread_info`.
static TASK: AtomicUsize = AtomicUsize::new(0);

fn call(function: usize, [one, other]: [u64; 2]) -> u64 {
    if function == 0 {
        return 0;
    }
    // SAFETY: `settle` has the addresses from the kernel, of functions that take no more than two arguments, in registers.
    let function: extern "C" fn(u64, u64) -> u64 = unsafe { std::mem::transmute(function) };
    function(one, other)
}

/// The `thread_info` of the task that runs.
pub(crate) fn task() -> u64 {
    call(TASK.load(Ordering::Relaxed), [0, 0])
}

/// A null pointer, or one of the kernel's error values.
pub(crate) fn is_nothing(pointer: u64) -> bool {
    pointer <= 16 || pointer > u64::MAX - 4096
}

/// The module has it from now on.
pub(crate) fn takes(domain: &Domain, thing: Thing, what: [u64; 2]) {
    takes_with(domain, thing, what, Vec::new());
}

/// As [`takes`], with rights to memory that end when it is given back.
pub(crate) fn takes_with(domain: &Domain, thing: Thing, what: [u64; 2], rights: Vec<Granted>) {
    let (domain, task) = (domain.id().get(), task());
    if thing == Thing::NewInode {
        NEW.fetch_add(1, Ordering::Relaxed);
    }
    held().push(Held {
        domain,
        thing,
        what,
        task,
        rights,
    });
    if thing.of_task().is_some() || thing == Thing::Dentry {
        returns::watch(task);
    }
}

/// The task goes back to its program: names that its calls had are the kernel's.
pub(crate) fn forgets(task: u64) {
    held().retain(|one| one.thing != Thing::Dentry || one.task != task);
}

/// Memory is freed: no inode lies there any more.
pub(crate) fn freed(start: u64, bytes: u64) {
    let is_there =
        |one: &Held| one.thing == Thing::NewInode && one.what[0].wrapping_sub(start) < bytes;
    if NEW.load(Ordering::Relaxed) != 0 {
        let mut held = held();
        held.retain(|one| !is_there(one));
        let left = held.iter().filter(|one| one.thing == Thing::NewInode);
        NEW.store(left.count(), Ordering::Relaxed);
    }
}

/// Inodes that may be marked as new still: none are looked for if there are none.
static NEW: AtomicUsize = AtomicUsize::new(0);

/// One module hands a thing on to another one: it has it no longer, and the other has it. Whether it had it.
pub(crate) fn moves(from: &Domain, to: &Domain, thing: Thing, what: u64) -> bool {
    let (from, to) = (from.id().get(), to.id().get());
    let mut held = held();
    let is_it = |one: &Held| one.domain == from && one.thing == thing && one.what[0] == what;
    let found = held.iter().rposition(is_it);
    if let Some(at) = found {
        held[at].domain = to;
    }
    found.is_some()
}

/// The rights to memory that go with something, in the place of those before.
pub(crate) fn has_rights(domain: &Domain, thing: Thing, what: u64, rights: Vec<Granted>) {
    let id = domain.id().get();
    let is_it = |one: &&mut Held| one.domain == id && one.thing == thing && one.what[0] == what;
    let mut held = held();
    let old = held
        .iter_mut()
        .find(is_it)
        .map(|one| std::mem::replace(&mut one.rights, rights));
    drop(held);
    // Those end here.
    drop(old);
}

/// What modules have left in a task: which, and what.
pub(crate) fn left(task: u64) -> Vec<(u32, &'static str)> {
    let held = held();
    let of_task = held.iter().filter(|one| one.task == task);
    let things = of_task.filter_map(|one| Some((one.domain, one.thing.of_task()?)));
    // No task sleeps with interrupts off, so they are off in this one.
    let silent = u32::try_from(SILENT.load(Ordering::Relaxed)).unwrap_or_default();
    let silent = (silent != 0).then_some((silent, "interrupts off"));
    things.chain(silent).collect()
}

/// Whether the module has it, in whichever task.
pub(crate) fn holds(domain: &Domain, thing: Thing, what: u64) -> bool {
    let id = domain.id().get();
    let is_it = |one: &Held| one.domain == id && one.thing == thing && one.what[0] == what;
    held().iter().any(is_it)
}

/// What the module has with it.
pub(crate) fn other(domain: &Domain, thing: Thing, what: u64) -> Option<u64> {
    let id = domain.id().get();
    let is_it = |one: &&Held| one.domain == id && one.thing == thing && one.what[0] == what;
    held().iter().rfind(is_it).map(|one| one.what[1])
}

/// Whether the module had it, and has it no longer.
pub(crate) fn gives(domain: &Domain, thing: Thing, what: u64) -> bool {
    let id = domain.id().get();
    let mut held = held();
    let is_it = |one: &Held| one.domain == id && one.thing == thing && one.what[0] == what;
    let found = held.iter().rposition(is_it);
    let gone = found.map(|at| held.remove(at));
    drop(held);
    // Its right to memory ends here.
    gone.is_some()
}

/// Whether the task that runs has taken it in this module, and not given it back.
pub(crate) fn has(domain: &Domain, thing: Thing, what: u64) -> bool {
    let (id, task) = (domain.id().get(), task());
    let is_it = |one: &Held| one.domain == id && one.thing == thing && one.what[0] == what;
    held().iter().any(|one| is_it(one) && one.task == task)
}

/// Whether the task that runs has such a thing in this module, and not given it back.
pub(crate) fn has_any(domain: &Domain, thing: Thing) -> bool {
    let (id, task) = (domain.id().get(), task());
    let is_it = |one: &Held| one.domain == id && one.thing == thing && one.task == task;
    held().iter().any(is_it)
}

/// The module that has last switched interrupts off, which were on, and has not switched them on again.
pub(crate) static SILENT: AtomicU64 = AtomicU64::new(0);

/// In the task whose call is ended: what others wait for in places where nobody may sleep.
pub(crate) fn at_once(domain: &Domain, interrupts_on: impl FnOnce()) {
    let id = domain.id().get();
    let mut first = Vec::new();
    held().retain(|one| {
        let is_ours = one.domain == id;
        let undo = UNDO.iter().find(|undo| undo.thing == one.thing);
        let Some(undo) = undo.filter(|undo| is_ours && !undo.first.is_empty()) else {
            return true;
        };
        first.push((undo.first_function.load(Ordering::Relaxed), one.what));
        // Locks are open then, and nothing is left to do.
        !undo.name.is_empty()
    });
    for (function, what) in first.into_iter().rev() {
        call(function, what);
    }
    let silent = SILENT.compare_exchange(u64::from(id), 0, Ordering::Relaxed, Ordering::Relaxed);
    if silent.is_ok() {
        interrupts_on();
    }
}

/// In a task that may sleep, when the module does not run any more. How many things were given back.
pub(crate) fn give_back(domain: &Domain) -> usize {
    give_back_those(domain, |_| true)
}

/// The same of what the kernel finds a module by, for one that was not ended. References that it has left may lead to what is gone:
/// the kernel has ended a mount whose inodes it had, say.
pub(crate) fn give_back_registered(domain: &Domain) -> usize {
    give_back_those(domain, Thing::is_registered)
}

fn give_back_those(domain: &Domain, is_meant: impl Fn(Thing) -> bool) -> usize {
    let id = domain.id().get();
    let mut count = 0;
    loop {
        let latest = {
            let mut held = held();
            let at = held
                .iter()
                .rposition(|one| one.domain == id && is_meant(one.thing));
            at.map(|at| held.remove(at))
        };
        let Some(one) = latest else {
            return count;
        };
        if one.thing == Thing::Registration {
            registrations::give_back(one.what[0], one.what[1]);
            count += 1;
        }
        let undo = UNDO.iter().find(|undo| undo.thing == one.thing);
        if let Some(undo) = undo.filter(|undo| !undo.name.is_empty()) {
            call(undo.function.load(Ordering::Relaxed), one.what);
            count += 1;
        }
    }
}
