//! What the crates above the core may call, and processes may not.

use std::io;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use mullion_sip_digest::Digest;

use crate::critical::{self, AsHost, Critical};
use crate::current;
use crate::decide;
use crate::decide::ChannelEnd;
#[cfg(not(feature = "separate"))]
use crate::decide::{DecideError, Decider};
use crate::hooks::Hooks;
use crate::owners::{self, Owner, Teardown};
use crate::process::{self, Child, Exit, First, Life, Options, Rights, SpawnError, Unfinished};
use crate::refused::Refused;
use crate::start::{self, StartError};
use crate::state::{self, CoreState};
use crate::system::{self, FutexWait};
use crate::table::{Table, Zeroed};
use crate::thread::here;
use crate::thread::slot::Thread;
use crate::thread::watch;
use crate::thread::worker::Worker;
use crate::thread::workers::{self, Workers};
use crate::wait::{self, Waiter};
use crate::{heap, thread};

/// The core, for the crates that stand on it. Each of them makes one, in a private constant.
///
/// No process has one: its code is safe, and only `unsafe` code makes one. So the methods need not be harmless in the hands of
/// processes. Some are memory-safe only in the order in which the crates above call them.
#[derive(Clone, Copy, Debug)]
pub struct Core(());

/// The process's thread that runs on the calling OS thread.
#[derive(Clone, Copy)]
#[allow(missing_debug_implementations)]
pub struct Running {
    worker: &'static Worker,
    thread: &'static Thread,
}

impl Running {
    /// What wakes it.
    #[inline]
    pub fn waiter(self) -> Waiter {
        self.thread.waiter()
    }

    /// [`wait::park`] for it. It is still the one that runs.
    // Inlined, for the reason that `channel::endpoint` gives.
    #[inline(always)]
    pub fn park(self) {
        self.worker.park(self.thread);
    }
}

/// Critical pieces, and what runs.
impl Core {
    /// The core, for a crate that is as trusted as this one.
    ///
    /// # Safety
    /// The caller keeps the value, and whatever its methods give, from code of processes. It calls each method as its text says.
    pub const unsafe fn new() -> Core {
        Core(())
    }

    /// Enters a critical piece: the thread that runs is not ended while the value lives. They nest. A process that has not
    /// 16 KiB of stack for it ends here.
    #[inline]
    pub fn critical(self) -> Critical {
        critical::critical()
    }

    /// [`Core::critical`] for a piece that moves values of type `T`: there is enough stack for copies of a large one, too.
    #[inline]
    pub fn critical_moving<T>(self) -> Critical {
        critical::critical_moving::<T>()
    }

    /// A critical piece in which allocations are the host's and outlive the process that runs. What is allocated inside must
    /// be found again when the process ends without dropping it.
    #[inline]
    pub fn as_host(self) -> AsHost {
        critical::as_host()
    }

    /// [`Core::as_host`] for a piece that moves values of type `T`, as [`Core::critical_moving`].
    #[inline]
    pub fn as_host_moving<T>(self) -> AsHost {
        critical::as_host_moving::<T>()
    }

    /// Runs something that does not park on a stack with at least 1 MiB of room. The caller is in a critical piece.
    #[inline]
    pub fn on_large_stack<R>(self, body: impl FnOnce() -> R) -> R {
        thread::on_large_stack(body)
    }

    /// For whom the kernel does what the calling thread asks of it. This is the process whose thread runs. It is the
    /// host, if the OS thread has its power or is a worker that runs no process. Nobody else asks for anything.
    #[inline]
    pub fn caller(self) -> Option<Owner> {
        current::caller()
    }

    /// The process's thread that runs, if one does.
    #[inline]
    pub fn running(self) -> Option<Running> {
        here::running().map(|(worker, thread)| Running { worker, thread })
    }

    /// [`wait::unpark`] for a caller that may be ended in the middle of it, and that unparks again at its end.
    #[inline]
    pub fn unpark_again(self, waiter: Waiter) {
        wait::unpark_again(waiter);
    }

    /// What the crate that keeps something of each OS thread has last said that it keeps; null at first. There is one such
    /// crate: the exchange heap's.
    #[inline]
    pub fn kept(self) -> *const () {
        here::kept()
    }

    /// Another answer to [`Core::kept`], for the calling OS thread.
    pub fn keep(self, what: *const ()) {
        here::keep(what);
    }
}

/// Workers.
impl Core {
    /// The worker that the calling OS thread is.
    #[inline]
    pub fn worker(self) -> Option<&'static Worker> {
        here::worker()
    }

    /// All workers; none before the start.
    pub fn workers(self) -> Workers {
        workers::all()
    }

    /// Starts the workers: see `Host::start`. What crates above need is reserved in `prepare`; `parts` are their hooks.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn start(
        self,
        workers: Option<NonZeroUsize>,
        prepare: impl FnOnce() -> io::Result<()>,
        parts: &[Hooks],
    ) -> Result<(), StartError> {
        start::start(workers, prepare, parts)
    }

    /// From here on a process that keeps its worker asleep is ended.
    pub fn end_sleepers(self) {
        watch::end_sleepers();
    }

    /// The stacks of a process of the calling worker: first address and bytes.
    pub fn each_stack(self, worker: &Worker, owner: Owner, show: impl FnMut(usize, usize)) {
        if let Some(process) = process::place(owner.index()) {
            worker.each_stack(process, show);
        }
    }

    /// The processes that live on the calling worker. The caller is in a critical piece, as the host.
    pub fn living(self, worker: &Worker) -> Vec<Owner> {
        process::living(worker)
    }
}

/// Processes.
impl Core {
    /// Whether a life of a process has not ended. Says false once anything of the place's next life can be seen.
    #[inline]
    pub fn is_alive(self, owner: Owner) -> bool {
        process::place(owner.index()).is_some_and(|process| process.owner() == owner)
    }

    /// Where a process's place in the table is, for who names it by a word of memory.
    pub fn place(self, owner: Owner) -> Option<usize> {
        process::place(owner.index()).map(|place| std::ptr::from_ref(place).addr())
    }

    /// Makes a process that runs what `first` gives, as a child of the calling one. The caller is in a critical piece with
    /// room for it, as the host.
    ///
    /// # Errors
    /// See [`SpawnError`].
    #[inline]
    pub fn spawn<F: First>(
        self,
        name: &'static str,
        first: impl FnOnce() -> F,
        options: &Options,
    ) -> Result<Child, SpawnError> {
        process::spawn(name, first, options)
    }

    /// Ends the calling process with a status.
    ///
    /// # Panics
    /// In no process.
    pub fn exit(self, status: u8) -> ! {
        process::exit(status)
    }

    /// Ends the calling process as something that it stands for has ended.
    ///
    /// # Panics
    /// In no process.
    #[inline]
    pub fn end_as(self, exit: Exit) -> ! {
        process::end_as(exit)
    }

    /// From now on the child is known by number, until its end was waited for.
    pub fn into_number(self, child: Child) -> u64 {
        child.into_number()
    }

    /// Ends a child that the calling process knows by number; nothing if it has ended. `None` if there is none.
    pub fn kill_numbered(self, which: Owner) -> Option<()> {
        process::kill_numbered(which)
    }

    /// Waits for the end of a child that the calling process knows by number. It is forgotten then.
    ///
    /// # Errors
    /// See [`Unfinished`].
    pub fn wait_numbered(
        self,
        which: Owner,
        deadline: Option<Instant>,
    ) -> Result<Exit, Unfinished> {
        process::wait_numbered(which, deadline)
    }

    /// What the calling process may bind and look up.
    pub fn own_rights(self) -> Rights {
        process::own_rights()
    }

    /// Shows which names a process may bind and look up; all of them for the host. The caller is in a critical piece, as
    /// the host, and `look` asks nothing of the tree.
    pub fn with_rights<R>(self, owner: Owner, look: impl FnOnce(&Rights) -> R) -> R {
        process::with_rights(owner, look)
    }

    /// All processes, the dead included that nobody has asked after. The caller is in a critical piece, as the host.
    pub fn lives(self) -> Vec<Life> {
        process::lives()
    }

    /// Shows one process, if it is `asker` or a child of it, while the family tree is locked: `look` asks nothing of the tree.
    #[inline]
    pub fn life<R>(self, which: Owner, asker: Owner, look: impl FnOnce(Life) -> R) -> Option<R> {
        process::life(which, asker, look)
    }

    /// Has `hook` called at the end of every process from now on. The same function is registered once.
    pub fn on_end(self, hook: Teardown) {
        owners::register(hook);
    }

    /// Runs the body of a thread of a process, which ends if the body panics.
    pub fn contain(self, body: impl FnOnce()) {
        process::panic::contain(body);
    }
}

/// Memory.
impl Core {
    /// Pages of the calling process's heap; `None` in no process, or if its limit does not allow them.
    #[inline]
    pub fn allocate_pages(self, bytes: usize) -> Option<*mut u8> {
        heap::allocate_pages(bytes)
    }

    /// Gives back what [`Core::allocate_pages`] gave to the calling process. Anything else is left alone.
    #[inline]
    pub fn release_pages(self, pages: *mut u8) {
        heap::release_pages(pages);
    }

    /// Bytes of all processes' heaps together, exact while no process takes or gives any.
    pub fn in_use(self) -> usize {
        let _host = critical::as_host();
        heap::in_use()
    }

    /// Every run that a process has at the moment: owner, first byte, bytes. A picture, not a lock.
    pub fn runs(self) -> Vec<(Owner, usize, usize)> {
        heap::runs()
    }

    /// A table of zeros.
    ///
    /// # Errors
    /// The system has no address space for it.
    #[inline]
    pub fn table<T: Zeroed, const CAPACITY: usize>(self) -> io::Result<Table<T, CAPACITY>> {
        Table::reserve()
    }

    /// Has `decider` asked from now on, before any process comes to have memory.
    ///
    /// # Errors
    /// Workers run, or there is a decider.
    #[cfg(not(feature = "separate"))]
    pub fn decided_by(self, decider: Box<dyn Decider>) -> Result<(), DecideError> {
        start::decided_by(decider)
    }
}

/// Who has which end of a channel.
impl Core {
    /// Whether anybody is to be asked, and told.
    #[inline]
    pub fn is_decided(self) -> bool {
        decide::is_asked()
    }

    /// Asks whether an owner may have an end; the host may.
    ///
    /// # Errors
    /// It may not.
    pub fn may_have(self, owner: Owner, end: ChannelEnd) -> Result<(), Refused> {
        decide::may_have(owner, end)
    }

    /// The end is the process's with this number now, which has begun; nothing, if no process has the number.
    pub fn end_came(self, index: u32, end: ChannelEnd) {
        if let Some(process) = process::place(index) {
            decide::came(process.owner(), end);
        }
    }

    /// The end is its holder's no more.
    pub fn end_went(self, end: ChannelEnd) {
        decide::went(end);
    }
}

/// The power of the host.
impl Core {
    /// Notes that somebody has the power of the host, and says whether somebody had it before.
    pub fn has_begun(self) -> bool {
        // In the host's copy alone.
        static BEGUN: AtomicBool = AtomicBool::new(false);
        BEGUN.swap(true, Ordering::AcqRel)
    }

    /// One more value on this OS thread that gives the power of the host, or one less.
    pub fn count_host(self, change: i32) {
        here::count_host(change);
    }

    /// Whether this OS thread has the host's power.
    pub fn is_hosts(self) -> bool {
        here::is_hosts()
    }
}

/// Sleep on words that other OS processes have mapped.
impl Core {
    /// Sleeps while `word` holds `expected`, until woken or for `limit`; may return for no reason.
    pub fn futex_wait(self, word: &AtomicU32, expected: u32, limit: Option<Duration>) {
        system::futex_wait(word, expected, limit);
    }

    /// The same for a word that other OS processes have mapped.
    pub fn futex_wait_shared(self, word: &AtomicU32, expected: u32, limit: Option<Duration>) {
        system::futex_wait_shared(word, expected, limit);
    }

    /// Wakes all that sleep on `word`, in any OS process that has it mapped.
    pub fn futex_wake_shared(self, word: &AtomicU32) {
        system::futex_wake_shared(word);
    }

    /// Sleeps while all of the words hold what is expected of each, until woken or for `limit`; may return for no reason.
    /// False if it cannot: with too many words, or before Linux 5.16.
    pub fn futex_wait_any(self, words: &[FutexWait], limit: Option<Duration>) -> bool {
        system::futex_wait_any(words, limit)
    }
}

/// Separately built SIPs.
impl Core {
    /// The places of a program's processes: a number for side tables.
    pub const PLACES: usize = process::PLACES;

    /// Where the compiler has put everything that copies of this crate share.
    pub const LAYOUT: Digest = state::layout();

    /// What copies of this crate share, by which another copy is attached.
    pub const fn own_state(self) -> &'static CoreState {
        &state::OWN
    }

    /// The distance from the thread pointer to what an OS thread has in this program. It must be the same on each
    /// thread: libraries that are attached find it by this.
    pub fn distance(self) -> usize {
        here::distance()
    }

    /// From here on this copy of the crate works with the host's state.
    ///
    /// # Safety
    /// `host` is the state of a copy of this crate with the same layout. Nothing but the allocator of this copy has been
    /// used, and by the calling OS thread only.
    #[cfg(feature = "separate")]
    pub unsafe fn attach(self, host: &'static CoreState) {
        state::attach(host);
    }

    /// Sets the panic hook of a separately built SIP, whose standard library is its own.
    #[cfg(feature = "separate")]
    pub fn install_panic_hook(self) {
        process::panic::install_alone();
    }
}
