//! Threads that run checked code, and how they are brought past their checks.
//!
//! A thread that has passed a check may be stopped before its access, for any time. So the call that takes a right
//! away does, behind its last write to the table:
//!
//! ```text
//!   it                                       a thread of the domain
//!   ------------------------------------     ------------------------------------------
//!   writes shadow and maps                   count += 1 (odd: inside)       no fence
//!   membarrier: every thread passes a        check, access, check, access ...
//!     full barrier                           count += 1 (even: outside)
//!   reads count: even -> done
//!   odd -> sends a signal, and waits         the handler looks at where the thread was:
//!     until the thread has passed,             not between check and access -> passed
//!     or its count is even                     between -> one step at a time until it is not
//! ```
//!
//! Why that is enough. If the count is even, the thread's entry comes behind the barrier, and so do its reads of the
//! table: they see what was written. If the count has become even, what was inside has left, with all its accesses made. If the thread has passed, all its accesses with answers from
//! before are made, and every later check reads the table anew.
//!
//! A thread whose handler finds it in no checked code, though its count is odd, runs another signal's handler. What
//! was interrupted before that is not known, so the thread is asked again.
//!
//! A thread may also ask its host in the middle of a straight line, and go on there ([`asks`]). Its count is even meanwhile: the
//! host may need locks that the call which takes the right away has. The thread may have made a check before it asked, and
//! its access is still to come. So it is told that it has lost something, and does not go on:
//!
//! ```text
//!   it                                       a thread that asks
//!   ------------------------------------     ------------------------------------------
//!   writes shadow and maps                   check
//!   membarrier                               lost = no, asks = yes
//!   reads count: even                        count += 1 (even), the host grants something
//!   reads asks: yes                          count += 1 (odd), full barrier
//!     lost = yes, full barrier               asks = no, reads lost: yes -> its call ends
//!   reads count: the same -> done            otherwise: access
//!   another one -> from the beginning
//! ```
//!
//! If the count is the same, the thread makes it odd later, and then finds that it has lost something. A thread whose count has
//! changed is looked at again, since it may have gone on with what it checked before.
//!
//! A thread that is not registered for a domain cannot be inside. The thread that takes the right away is not between
//! a check and an access. So a domain that only one thread enters costs nothing here. A thread that registers while
//! the table is written takes the lock on the records before or after `settle` does. If before, it is asked; if
//! after, it sees what was written.
//!
//! Whether anybody else is registered is seen without the lock:
//!
//! ```text
//!   it                                       a thread that registers
//!   ------------------------------------     ------------------------------------------
//!   writes shadow and maps                   crowd = itself, or many
//!   reads crowd: nobody else -> done         membarrier: every thread passes a full barrier
//!   otherwise as above                       may enter, and read the table
//! ```
//!
//! If its look at the crowd comes behind its barrier, it sees the other thread. If it comes before, so do its writes, and the
//! other thread reads what was written. A thread that goes has made all of its accesses before it takes itself out.
//!
//! `tests/crowd.rs` has these three pictures as a model, in every order that the memory of x86 allows, with and without each barrier.
//!
//! A copy of the process (`fork`) has one thread only, with another number: [`Held`].

use crate::barrier::barrier;
use crate::code::{self, Place};
use mullion_supervisor::DomainId;
use std::cell::Cell;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering, compiler_fence, fence,
};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use thiserror::Error;

/// Why threads cannot be waited for here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SetupError {
    /// The system has no `membarrier`.
    #[error(
        "membarrier is refused (error {0}): it needs Linux 4.14, and a filter of system calls that lets it through"
    )]
    Membarrier(i32),
    /// A signal handler cannot be installed.
    #[error("the handler of signal {signal} cannot be installed (error {error})")]
    Signal {
        /// Which one.
        signal: i32,
        /// What the system said.
        error: i32,
    },
}

/// The threads that may be inside domains.
#[derive(Debug)]
pub struct Inside {
    signal: i32,
    /// By domain.
    records: Mutex<Vec<Vec<Arc<Record>>>>,
    /// Who is registered, by domain modulo their number: null for nobody, a thread if it is the only one, else [`MANY`].
    /// Changes under the lock.
    crowds: Box<[AtomicPtr<Thread>]>,
    signals: AtomicU64,
}

const CROWDS: usize = 4096;

/// More than one thread.
const MANY: *mut Thread = ptr::without_provenance_mut(usize::MAX);

/// A thread that may be inside a domain. Its own lines of the cache: each gate writes one, and `settle` reads those of
/// all threads.
#[derive(Debug)]
#[repr(align(64))]
struct Record {
    thread: Arc<Thread>,
    domain: DomainId,
    /// Odd while the thread runs the domain's code. Only that thread writes it.
    count: AtomicU64,
    /// What the thread was asked by who holds the lock on the records; 0 if it was outside.
    asked: AtomicU64,
}

/// What the handlers of a thread need.
#[derive(Debug)]
struct Thread {
    id: AtomicI32,
    /// How often it was asked to pass.
    asked: AtomicU64,
    /// Up to which of these it has passed.
    passed: AtomicU64,
    /// Which one it is stepping for; 0 if it is not.
    stepping: AtomicU64,
    /// How often a handler could not tell.
    unsure: AtomicU64,
    /// Visits of this thread that live.
    visits: AtomicU32,
    /// The domain in whose code it asks its host, plus one; 0 if it does not. Only the thread writes it.
    asks: AtomicU64,
    /// Whether something was taken away from that domain since.
    lost: AtomicBool,
}

/// What [`Thread::asks`] is for a domain.
fn asking(domain: DomainId) -> u64 {
    u64::from(domain.get()) + 1
}

impl Record {
    /// Whether the thread is outside of the domain, behind the barrier. If it asks its host meanwhile, it has been told that it has
    /// lost something.
    fn is_outside(&self) -> bool {
        loop {
            let count = self.count.load(Ordering::Acquire);
            if !count.is_multiple_of(2) {
                return false;
            }
            if self.thread.loses(|asks| asks == asking(self.domain)) {
                fence(Ordering::SeqCst);
            }
            // It may have asked, and gone on, between the two looks.
            if self.count.load(Ordering::Acquire) == count {
                return true;
            }
        }
    }
}

impl Thread {
    /// Tells it that it has lost something, if it asks in the code of such a domain.
    #[inline]
    fn loses(&self, is_it: impl FnOnce(u64) -> bool) -> bool {
        let asks = self.asks.load(Ordering::Acquire);
        let is_it = asks != 0 && is_it(asks);
        if is_it {
            self.lost.store(true, Ordering::Relaxed);
        }
        is_it
    }
}

/// The calling thread stops in the middle of a straight line of `domain`'s code to ask its host. It counts as outside from the
/// next change of its count on. [`has_lost`] is the end of that.
pub fn asks(domain: DomainId) {
    // SAFETY: `HERE` points to what lives as long as this thread has a visit.
    if let Some(thread) = unsafe { HERE.get().as_ref() } {
        thread.lost.store(false, Ordering::Relaxed);
        thread.asks.store(asking(domain), Ordering::Release);
    }
    compiler_fence(Ordering::SeqCst);
}

/// The calling thread has asked, and counts as inside again. Whether something was taken away from the domain meanwhile: then it may
/// not make an access that it has checked before it asked.
#[must_use]
pub fn has_lost() -> bool {
    fence(Ordering::SeqCst);
    // SAFETY: `HERE` points to what lives as long as this thread has a visit.
    let thread = unsafe { HERE.get().as_ref() };
    thread.is_none_or(|thread| {
        thread.asks.store(0, Ordering::Relaxed);
        thread.lost.swap(false, Ordering::Relaxed)
    })
}

thread_local! {
    /// The thread's own, as long as it has visits. Without a destructor and an allocation, for the handlers.
    static HERE: Cell<*const Thread> = const { Cell::new(ptr::null()) };
}

/// No thread comes or goes meanwhile.
#[derive(Debug)]
pub struct Held<'a>(&'a Inside, MutexGuard<'a, Vec<Vec<Arc<Record>>>>);

impl Held<'_> {
    /// In a copy of the process that was made meanwhile: the calling thread is the only one.
    pub fn in_copy(mut self) {
        let me = HERE.get();
        for records in self.1.iter_mut() {
            records.retain(|record| Arc::as_ptr(&record.thread) == me);
        }
        (0..CROWDS).for_each(|at| self.0.count(&self.1, at));
        // SAFETY: as in `this_thread`: it points to what lives as long as this thread has a visit.
        if let Some(thread) = unsafe { me.as_ref() } {
            // SAFETY: it only asks for a number.
            let id = unsafe { libc::gettid() };
            thread.id.store(id, Ordering::Relaxed);
        }
    }
}

/// A thread's way into one domain. It stays with its thread.
#[derive(Debug)]
pub struct Visit {
    inside: Arc<Inside>,
    domain: DomainId,
    record: Arc<Record>,
    _own_thread: PhantomData<*const ()>,
}

impl Inside {
    /// Installs what is needed in this process: handlers of a real-time signal and of SIGTRAP. Others' handlers of
    /// SIGTRAP are called for what is not ours.
    pub fn new() -> Result<Arc<Inside>, SetupError> {
        static SETUP: OnceLock<Result<i32, SetupError>> = OnceLock::new();
        let signal = (*SETUP.get_or_init(set_up))?;
        Ok(Arc::new(Inside {
            signal,
            records: Mutex::new(Vec::new()),
            crowds: (0..CROWDS).map(|_| AtomicPtr::default()).collect(),
            signals: AtomicU64::new(0),
        }))
    }

    /// The signal that brings threads past their checks. A thread that is inside a domain must not block it:
    /// whoever takes a right from that domain would wait until it does not.
    #[must_use]
    pub fn signal(&self) -> i32 {
        self.signal
    }

    /// How many signals were sent.
    #[must_use]
    pub fn signals(&self) -> u64 {
        self.signals.load(Ordering::Relaxed)
    }

    /// Lets the calling thread enter `domain` from now on.
    #[must_use]
    pub fn visit(self: &Arc<Self>, domain: DomainId) -> Visit {
        let thread = this_thread();
        unblock(self.signal);
        let record = Arc::new(Record {
            thread,
            domain,
            count: AtomicU64::new(0),
            asked: AtomicU64::new(0),
        });
        let mut records = self.lock();
        let at = domain.get() as usize;
        if records.len() <= at {
            records.resize_with(at + 1, Vec::new);
        }
        records[at].push(Arc::clone(&record));
        self.count(&records, at);
        // Before it enters: see the head of this file.
        barrier();
        Visit {
            inside: Arc::clone(self),
            domain,
            record,
            _own_thread: PhantomData,
        }
    }

    /// Returns when no other thread inside `domains` is between a check that it made before and its access.
    #[inline]
    pub fn settle(&self, domains: &[DomainId]) {
        // Behind the writes to the table, also for the compiler.
        compiler_fence(Ordering::SeqCst);
        let me = HERE.get().cast_mut();
        // SAFETY: as in `this_thread`: it points to what lives as long as this thread has a visit.
        if let Some(me) = unsafe { me.as_ref() } {
            me.loses(|asks| domains.iter().any(|domain| asks == asking(*domain)));
        }
        let is_alone = domains.iter().all(|domain| {
            let crowd = &self.crowds[domain.get() as usize % CROWDS];
            let who = crowd.load(Ordering::Acquire);
            who.is_null() || who == me
        });
        if !is_alone {
            self.settle_others(domains);
        }
    }

    #[cold]
    fn settle_others(&self, domains: &[DomainId]) {
        let records = self.lock();
        let of = |domain: &DomainId| records.get(domain.get() as usize);
        self.wait_for(|| domains.iter().filter_map(of).flatten());
    }

    /// As [`settle`](Self::settle), for all domains.
    pub fn settle_all(&self) {
        // SAFETY: as in `this_thread`: it points to what lives as long as this thread has a visit.
        if let Some(me) = unsafe { HERE.get().as_ref() } {
            me.loses(|_| true);
        }
        let records = self.lock();
        self.wait_for(|| records.iter().flatten());
    }

    /// Keeps all threads as they are until the answer is dropped: while the process is copied.
    #[must_use]
    pub fn hold(&self) -> Held<'_> {
        Held(self, self.lock())
    }

    /// Brings a crowd to what the records say, under their lock. `at`: a domain that is in it.
    fn count(&self, records: &[Vec<Arc<Record>>], at: usize) {
        let first = at % CROWDS;
        let all = records.iter().skip(first).step_by(CROWDS).flatten();
        let mut threads = all.map(|record| Arc::as_ptr(&record.thread).cast_mut());
        let who = match threads.next() {
            None => ptr::null_mut(),
            Some(one) if threads.all(|other| other == one) => one,
            Some(_) => MANY,
        };
        self.crowds[first].store(who, Ordering::Release);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Vec<Arc<Record>>>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The records stay locked meanwhile, so the threads stay: a visit ends under the lock.
    fn wait_for<'a, I: Iterator<Item = &'a Arc<Record>>>(&self, records: impl Fn() -> I) {
        let me = HERE.get();
        let others = || records().filter(|record| Arc::as_ptr(&record.thread) != me);
        if others().next().is_none() {
            return;
        }
        barrier();
        // Nearly always nobody is inside: then there is nothing to write, and nobody to wait for.
        if others().all(|record| record.is_outside()) {
            return;
        }
        for record in others() {
            let asked = match record.is_outside() {
                true => 0,
                false => {
                    let asked = record.thread.asked.fetch_add(1, Ordering::AcqRel) + 1;
                    self.send(&record.thread);
                    asked
                }
            };
            record.asked.store(asked, Ordering::Relaxed);
        }
        for record in others() {
            match record.asked.load(Ordering::Relaxed) {
                0 => {}
                asked => self.wait(record, asked),
            }
        }
    }

    fn wait(&self, record: &Record, asked: u64) {
        let thread = &record.thread;
        let mut unsure = thread.unsure.load(Ordering::Acquire);
        let mut rounds = 0u32;
        while thread.passed.load(Ordering::Acquire) < asked && !record.is_outside() {
            rounds = rounds.saturating_add(1);
            if rounds < 200 {
                std::hint::spin_loop();
                continue;
            }
            std::thread::yield_now();
            let now = thread.unsure.load(Ordering::Acquire);
            // It could not tell, or the signal could not be queued, or another one was already waiting.
            if now != unsure || rounds.is_multiple_of(4096) {
                unsure = now;
                self.send(thread);
            }
        }
    }

    fn send(&self, thread: &Thread) {
        self.signals.fetch_add(1, Ordering::Relaxed);
        let id = thread.id.load(Ordering::Relaxed);
        // SAFETY: it sends a signal for which there is a handler, to a thread that lives: its visit does.
        unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), id, self.signal) };
    }
}

impl Visit {
    /// The thread runs checked code of the domain from here on.
    #[inline]
    pub fn enter(&mut self) {
        let count = &self.record.count;
        count.store(count.load(Ordering::Relaxed) | 1, Ordering::Relaxed);
        // The processor may do what follows before others see the count: the barrier of `settle` is for that.
        compiler_fence(Ordering::SeqCst);
    }

    /// What [`enter`](Self::enter) makes odd and [`leave`](Self::leave) even, for gates that are not in Rust.
    /// Only the visit's thread may write it, and only so.
    #[must_use]
    pub fn counter(&self) -> *mut u64 {
        self.record.count.as_ptr()
    }

    /// It does so no longer: it has returned, or calls the host or another domain.
    #[inline]
    pub fn leave(&mut self) {
        compiler_fence(Ordering::SeqCst);
        let count = &self.record.count;
        let now = count.load(Ordering::Relaxed);
        count.store(now + (now & 1), Ordering::Release);
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.leave();
        let mut records = self.inside.lock();
        if let Some(list) = records.get_mut(self.domain.get() as usize) {
            list.retain(|record| !Arc::ptr_eq(record, &self.record));
        }
        self.inside.count(&records, self.domain.get() as usize);
        if self.record.thread.visits.fetch_sub(1, Ordering::Relaxed) == 1 {
            HERE.set(ptr::null());
        }
    }
}

/// The calling thread, which has one visit more from now on.
fn this_thread() -> Arc<Thread> {
    let here = HERE.get();
    if here.is_null() {
        let thread = Arc::new(Thread {
            // SAFETY: it only asks for a number.
            id: unsafe { libc::gettid() }.into(),
            asked: AtomicU64::new(0),
            passed: AtomicU64::new(0),
            stepping: AtomicU64::new(0),
            unsure: AtomicU64::new(0),
            visits: AtomicU32::new(1),
            asks: AtomicU64::new(0),
            lost: AtomicBool::new(false),
        });
        HERE.set(Arc::as_ptr(&thread));
        return thread;
    }
    // SAFETY: `HERE` points into the `Arc` that the records of this thread's visits share; while one lives, it does.
    // The count goes up by one for the new owner.
    let thread = unsafe {
        Arc::increment_strong_count(here);
        Arc::from_raw(here)
    };
    thread.visits.fetch_add(1, Ordering::Relaxed);
    thread
}

fn unblock(signal: i32) {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the first call makes the set, the others use it; the thread's mask is its own business.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, set.as_ptr(), ptr::null_mut());
    }
}

type Handler = extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);

/// Who had SIGTRAP before.
static TRAP_BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

fn set_up() -> Result<i32, SetupError> {
    let error = || std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
    let register = libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED;
    // SAFETY: it only says that the process will use the barrier.
    if unsafe { libc::syscall(libc::SYS_membarrier, register, 0, 0) } != 0 {
        return Err(SetupError::Membarrier(error()));
    }
    let signal = libc::SIGRTMIN() + 7;
    for (signal, handler) in [(signal, on_asked as Handler), (libc::SIGTRAP, on_step)] {
        let mut before = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: an all-zero action is one; it is filled in before it is used. The handlers do only what handlers
        // may: atomic values, and a thread-local without a destructor.
        let done = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handler as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
            libc::sigaction(signal, &action, before.as_mut_ptr())
        };
        if done != 0 {
            return Err(SetupError::Signal {
                signal,
                error: error(),
            });
        }
        if signal == libc::SIGTRAP {
            // SAFETY: the system has filled it in.
            let _first = TRAP_BEFORE.set(unsafe { before.assume_init() });
        }
    }
    Ok(signal)
}

/// The trap flag: the processor stops behind the next instruction.
const TRAP_FLAG: i64 = 1 << 8;

/// Where the thread was stopped, and its flags.
fn stopped(context: *mut libc::c_void) -> (usize, &'static mut i64) {
    // SAFETY: the kernel gives a handler with SA_SIGINFO its context, whole and writable until the handler returns;
    // both uses end before that.
    let registers = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    let address = registers[libc::REG_RIP as usize] as usize;
    (address, &mut registers[libc::REG_EFL as usize])
}

/// Somebody waits until this thread has passed its check.
extern "C" fn on_asked(_: i32, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: as in `this_thread`: it points to what lives as long as this thread has a visit.
    let Some(thread) = (unsafe { HERE.get().as_ref() }) else {
        return;
    };
    let asked = thread.asked.load(Ordering::Acquire);
    let (address, flags) = stopped(context);
    match code::place(address) {
        Place::Clear => {
            thread.passed.fetch_max(asked, Ordering::AcqRel);
        }
        Place::Between => {
            thread.stepping.store(asked, Ordering::Relaxed);
            *flags |= TRAP_FLAG;
        }
        Place::Elsewhere => {
            thread.unsure.fetch_add(1, Ordering::AcqRel);
        }
    }
}

/// Whether the calling thread is being brought past a check, instruction by instruction.
#[must_use]
pub fn is_stepping() -> bool {
    // SAFETY: `HERE` points to what lives as long as this thread has a visit.
    let thread = unsafe { HERE.get().as_ref() };
    thread.is_some_and(|thread| thread.stepping.load(Ordering::Relaxed) != 0)
}

/// One instruction further.
extern "C" fn on_step(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    const TRAP_TRACE: i32 = 2;
    // SAFETY: `HERE` points to what lives as long as this thread has a visit.
    let thread = unsafe { HERE.get().as_ref() };
    let stepping = thread.map_or(0, |thread| thread.stepping.load(Ordering::Relaxed));
    let (address, flags) = stopped(context);
    // SAFETY: the kernel gives a handler with SA_SIGINFO the signal's description.
    let is_step = unsafe { (*info).si_code } == TRAP_TRACE && *flags & TRAP_FLAG != 0;
    let Some(thread) = thread.filter(|_| is_step && stepping != 0) else {
        return pass_on(signal, info, context);
    };
    if code::place(address) != Place::Between {
        *flags &= !TRAP_FLAG;
        thread.stepping.store(0, Ordering::Relaxed);
        thread.passed.fetch_max(stepping, Ordering::AcqRel);
    }
}

/// A trap that is not ours.
fn pass_on(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let (action, has_info) = match TRAP_BEFORE.get() {
        Some(before) => (before.sa_sigaction, before.sa_flags & libc::SA_SIGINFO != 0),
        None => (libc::SIG_DFL, false),
    };
    match action {
        libc::SIG_IGN => {}
        libc::SIG_DFL => {
            // SAFETY: the default action is what would have happened without our handler; it comes when this returns.
            unsafe {
                libc::signal(signal, libc::SIG_DFL);
                libc::raise(signal);
            }
        }
        handler if has_info => {
            // SAFETY: it was installed as a handler with this signature.
            let handler: Handler = unsafe { std::mem::transmute(handler) };
            handler(signal, info, context);
        }
        handler => {
            // SAFETY: it was installed as a handler with this signature.
            let handler: extern "C" fn(i32) = unsafe { std::mem::transmute(handler) };
            handler(signal);
        }
    }
}
