//! Free blocks: a few kept by each OS thread, the rest in one place for all.

use std::cell::UnsafeCell;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use crate::inner::CORE;

use super::common_memory::{self, Dropped};
use super::error::HeapError;
use super::given::{self, DISCARDED_FROM};
use super::ledger::OwnerLedger;
use super::region::{Holder, Region};
use super::sizes::{CLASSES, COMMON, Class, Id};

/// Bytes of free blocks of one size that move to or from the common store at a time.
const BATCH_BYTES: usize = 64 << 10;
/// The most blocks that move at a time.
const BATCH_BLOCKS: usize = 64;
/// Of common memory, large blocks that others have had are taken back one by one as they are needed.
const ONE_BY_ONE_FROM: usize = 1 << 20;

/// What one OS thread has of the exchange heap. Another takes it over when the thread ends.
#[derive(Debug)]
pub(crate) struct Worker {
    region: Region,
    number: u32,
    free: [UnsafeCell<Stack>; CLASSES + COMMON],
    /// Blocks ever taken and given back here; the sums over all workers differ by the blocks in use.
    pub(super) taken: AtomicU64,
    pub(super) returned: AtomicU64,
}

// SAFETY: `free` is touched by the thread alone that has the worker; the rest is constant or atomic.
unsafe impl Sync for Worker {}

/// Free blocks, linked by their records.
#[derive(Clone, Copy, Debug)]
struct Stack {
    top: Id,
    count: usize,
}

impl Stack {
    const EMPTY: Stack = Stack {
        top: Id::NONE,
        count: 0,
    };
}

thread_local! {
    /// Gives the worker to another thread at the end of this one.
    static LEAVE: Leave = const { Leave };
}

struct Leave;

impl Drop for Leave {
    fn drop(&mut self) {
        // Whoever still holds blocks (in another thread-local that is dropped later) keeps the worker.
        if let Some(worker) = kept()
            && OwnerLedger::of_thread(worker.region(), worker.number())
                .first()
                .is_none()
        {
            OwnerLedger::of_thread(worker.region(), worker.number()).reset();
            CORE.keep(ptr::null());
            everything().idle.push(worker);
        }
    }
}

/// The calling thread's, if it has one.
#[inline]
fn kept() -> Option<&'static Worker> {
    // SAFETY: null, or what `enter` has put there: a worker of ours, which is leaked. Nobody else keeps anything there.
    unsafe { CORE.kept().cast::<Worker>().as_ref() }
}

/// The calling thread's.
#[inline]
pub(crate) fn current() -> &'static Worker {
    match kept() {
        Some(worker) => worker,
        None => enter(),
    }
}

#[cold]
fn enter() -> &'static Worker {
    // The caller may be a process: what is made here outlives it.
    let _host = CORE.as_host();
    let mut everything = everything();
    let worker = everything.idle.pop().unwrap_or_else(|| {
        let worker = Box::leak(Box::new(Worker {
            region: Region::get(),
            number: everything.all.len() as u32,
            free: [const { UnsafeCell::new(Stack::EMPTY) }; CLASSES + COMMON],
            taken: AtomicU64::new(0),
            returned: AtomicU64::new(0),
        }));
        everything.all.push(worker);
        worker
    });
    drop(everything);
    CORE.keep(ptr::from_ref(worker).cast());
    // A worker's OS thread does not end, and its processes' threads do not take this along when they do.
    if CORE.worker().is_none() {
        // At the very end of a thread there is nobody to tell; the worker then stays with it.
        let _ = LEAVE.try_with(|_| ());
    }
    worker
}

/// All that OS threads have had, and those that no thread has at the moment.
struct Everything {
    all: Vec<&'static Worker>,
    idle: Vec<&'static Worker>,
}

impl Everything {
    const fn new() -> Everything {
        Everything {
            all: Vec::new(),
            idle: Vec::new(),
        }
    }
}

/// What OS threads share of free blocks.
pub(crate) struct State {
    everything: Mutex<Everything>,
    stores: [Mutex<Store>; CLASSES + COMMON],
}

mullion_sip_core::__state!(
    State = State {
        everything: Mutex::new(Everything::new()),
        stores: [const { Mutex::new(Store::EMPTY) }; CLASSES + COMMON],
    }
);

fn everything() -> MutexGuard<'static, Everything> {
    state()
        .everything
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Blocks ever taken and given back, over all workers.
pub(super) fn totals() -> (u64, u64) {
    let _host = CORE.as_host();
    let sum = |count: fn(&Worker) -> &AtomicU64| {
        let workers = everything().all.clone();
        workers
            .iter()
            .map(|worker| count(worker).load(Ordering::Acquire))
            .fold(0, u64::wrapping_add)
    };
    let returned = sum(|worker| &worker.returned);
    (sum(|worker| &worker.taken), returned)
}

impl Worker {
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    pub(crate) fn region(&self) -> Region {
        self.region
    }

    /// A block on no list.
    #[inline]
    pub(crate) fn take(&self, class: Class) -> Result<Id, HeapError> {
        let stack = self.free[class.index()].get();
        // SAFETY: this thread alone touches its stacks, and the records of what is on them.
        unsafe {
            let id = (*stack).top;
            if id == Id::NONE {
                return self.take_slowly(class);
            }
            (*stack).top = (*self.region.record(id)).next;
            (*stack).count -= 1;
            count(&self.taken);
            Ok(id)
        }
    }

    #[cold]
    fn take_slowly(&self, class: Class) -> Result<Id, HeapError> {
        let batch = store(class).take(self.region, class);
        if batch.count == 0 {
            return Err(HeapError::Exhausted(class.bytes()));
        }
        // SAFETY: this thread's own stack, which is empty.
        unsafe { *self.free[class.index()].get() = batch };
        self.take(class)
    }

    /// Gives a block back.
    ///
    /// # Safety
    /// It is on no list, nobody has it any more, and this is the calling thread's worker.
    #[inline]
    pub(crate) unsafe fn give(&self, id: Id) {
        let class = id.class();
        // SAFETY: the caller promises that the block is nobody's and on no list, and that this is its thread's
        // worker.
        if id.is_common() && unsafe { self.is_gone(id) } {
            return;
        }
        let stack = self.free[class.index()].get();
        // SAFETY: the block is nobody's, the stack this thread's.
        unsafe {
            let record = self.region.record(id);
            (*record).next = (*stack).top;
            (*record).holder = Holder::FREE;
            (*stack).top = id;
            (*stack).count += 1;
            count(&self.returned);
            if (*stack).count > 2 * batch(class) {
                self.give_batch(class);
            }
        }
        given::discard(self.region, id);
    }

    /// A block of common memory is to be given back: true if it is not ours any more.
    ///
    /// # Safety
    /// As for [`Worker::give`].
    #[inline(never)]
    unsafe fn is_gone(&self, id: Id) -> bool {
        let Some(common_memory) = common_memory::get() else {
            return false;
        };
        // SAFETY: the block is the caller's alone, and on no list, as `give` demands.
        match unsafe { common_memory.drop_block(self.region, id) } {
            Dropped::Kept => false,
            Dropped::Gone => {
                count(&self.returned);
                true
            }
        }
    }

    /// A block has come from another OS process.
    pub(super) fn count_taken(&self) {
        count(&self.taken);
    }

    #[cold]
    fn give_batch(&self, class: Class) {
        let stack = self.free[class.index()].get();
        // SAFETY: this thread's own stack, longer than a batch.
        unsafe {
            let top = (*stack).top;
            let mut last = top;
            for _ in 1..batch(class) {
                last = (*self.region.record(last)).next;
            }
            (*stack).top = (*self.region.record(last)).next;
            (*stack).count -= batch(class);
            if class.bytes() >= DISCARDED_FROM && !top.is_common() {
                // Of large ones a batch is one.
                self.region.discard(top);
            }
            store(class).give(self.region, top, last, batch(class));
        }
    }
}

/// Counts on one thread what others may read.
#[inline]
fn count(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Release);
}

fn batch(class: Class) -> usize {
    (BATCH_BYTES / class.bytes()).clamp(1, BATCH_BLOCKS)
}

/// The free blocks of one size that no worker keeps, and how many have ever been made.
struct Store {
    free: Stack,
    made: u32,
    /// Of common memory: how many had been returned when they were last looked for.
    returned: u32,
}

fn store(class: Class) -> MutexGuard<'static, Store> {
    state().stores[class.index()]
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Store {
    const EMPTY: Store = Store {
        free: Stack::EMPTY,
        made: 0,
        returned: 0,
    };

    /// Up to a batch of blocks: used ones if there are, else new ones.
    fn take(&mut self, region: Region, class: Class) -> Stack {
        if self.free.top == Id::NONE && class.index() >= CLASSES {
            self.look_for_returned(region, class);
        }
        let mut taken = Stack::EMPTY;
        while taken.count < batch(class) {
            let Some(id) = self.pop(region).or_else(|| self.make(class)) else {
                break;
            };
            // SAFETY: the block is on no list, and ours.
            unsafe { (*region.record(id)).next = taken.top };
            taken = Stack {
                top: id,
                count: taken.count + 1,
            };
        }
        taken
    }

    fn pop(&mut self, region: Region) -> Option<Id> {
        let id = self.free.top;
        if id == Id::NONE {
            return None;
        }
        // SAFETY: the block is on the stack, which the lock protects.
        self.free.top = unsafe { (*region.record(id)).next };
        self.free.count -= 1;
        Some(id)
    }

    /// Blocks of ours that others have had, and have no more.
    fn look_for_returned(&mut self, region: Region, class: Class) {
        let Some(common_memory) = common_memory::get() else {
            return;
        };
        let returned = common_memory.returned(class);
        if self.returned == returned {
            return;
        }
        for place in common_memory.places(class).take(self.made as usize) {
            let id = Id::new(class, place);
            if common_memory.take_back(id) && common_memory.open(id) {
                // SAFETY: it was nobody's, and is ours now.
                unsafe { self.give(region, id, id, 1) };
                if class.bytes() >= ONE_BY_ONE_FROM {
                    return;
                }
            }
        }
        self.returned = returned;
    }

    fn make(&mut self, class: Class) -> Option<Id> {
        if class.index() >= CLASSES {
            return self.make_common(class);
        }
        let place = class.first() + self.made;
        (place < class.places()).then(|| {
            self.made += 1;
            Id::new(class, place)
        })
    }

    fn make_common(&mut self, class: Class) -> Option<Id> {
        let common_memory = common_memory::get()?;
        let places = common_memory.places(class);
        while self.made < places.len() as u32 {
            let id = Id::new(class, places.start + self.made);
            self.made += 1;
            if common_memory.make(id) {
                return common_memory.open(id).then_some(id);
            }
        }
        None
    }

    /// Takes a chain of `count` blocks, from `top` to `last`.
    ///
    /// # Safety
    /// They are linked by their records and on no other list.
    unsafe fn give(&mut self, region: Region, top: Id, last: Id, count: usize) {
        // SAFETY: `last` is of the chain, which is on no other list, so nobody else uses its record.
        unsafe { (*region.record(last)).next = self.free.top };
        self.free = Stack {
            top,
            count: self.free.count + count,
        };
    }
}

/// Which OS thread this is: two answers are equal exactly if it is the same thread. Never 0.
#[inline]
pub(crate) fn here() -> u64 {
    NonNull::from(current()).addr().get() as u64
}
