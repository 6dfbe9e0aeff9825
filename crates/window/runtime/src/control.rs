//! Control stacks, and the thread control block at the foot of each.
//!
//! ```text
//! 4 MiB  ->  +-----------------------+
//!            | control stack         |  grows down
//! 256 KiB    +-----------------------+
//!            | reserve, 192 KiB      |  closed, but for a handler of the host's that
//!  64 KiB    +-----------------------+  does not fit above (`reserve`)
//!            | guard, 8 KiB          |
//! 56 KiB     +-----------------------+
//!            | alternate stack for   |  signals arrive here, unless the host's
//!            | signals, 48 KiB       |  own handlers want it otherwise
//!  8 KiB     +-----------------------+
//!            | guard, 4 KiB          |
//!  4 KiB     +-----------------------+
//!            | thread control block  |
//! 0, aligned +-----------------------+
//! ```
//! Each thread that enters a domain gets one such region and keeps it until it
//! ends; then the region waits for the next thread.

use crate::alternate::{AlternateStack, Retired};
use crate::call::NotReturned;
use crate::domain::Inner;
use crate::error::Error;
use crate::fault::Record;
use crate::invoke::Request;
use crate::meter::Tally;
use crate::records::{self, Decided};
use crate::reserve::Reserve;
use crate::signals;
use crate::stacks::Leases;
use crate::trampoline::{DOMAIN_BELOW, HOST_BELOW, frame_at};
use crate::watchdog::Granted;
use crate::window::Access;
use crate::{runtime, thread_end, watchdog};
use mullion_abi::CONTROL_REGION;
use std::cell::{Cell, UnsafeCell};
use std::ops::Range;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

const BLOCK: u64 = 0x1000;
/// Bytes of control stack that an invocation must have to begin.
const LEAST_ROOM: u64 = 0x1000;
const ALTERNATE: Range<u64> = 0x2000..0xe000;
/// Below the control stack, for handlers of the host's.
pub(crate) const RESERVE: Range<u64> = 0x1_0000..CONTROL_LOW;
/// Lowest offset of the control stack itself.
pub(crate) const CONTROL_LOW: u64 = 0x4_0000;

/// Greatest size of a control stack, in bytes.
pub const MAX_CONTROL_STACK: u64 = CONTROL_REGION - CONTROL_LOW - TOP;
/// Bytes left alone at its top.
const TOP: u64 = 64;
/// Greatest size in an invocation with limits: less than the greatest, so that `is_outside` tells the two
/// apart. Whoever leaves it by a jump leaves its limits behind.
const MAX_LIMITED: u64 = MAX_CONTROL_STACK - 64;
/// Smallest size that is kept to.
const MIN_CONTROL_STACK: u64 = 2 * LEAST_ROOM;

/// The thread control block. Written by its own thread, by signal handlers on
/// that thread, and in the fields of an atomic type by the watchdog.
#[repr(C)]
pub(crate) struct Tcb {
    /// Where every gate slot jumps to: the first field.
    pub(crate) gate_entry: u64,
    /// CONTROL and GS of `trampoline.s`.
    pub(crate) control: Cell<u64>,
    pub(crate) gs: Cell<u64>,
    /// The way into domains.
    pub(crate) enter: unsafe extern "C" fn(),
    /// The serial number of the domain called last, and the stack leased from it.
    lease: Cell<(u64, u64)>,
    /// The deadline that the watchdog has found to be past. Never 0.
    pub(crate) stop: AtomicU64,
    /// When the running invocation must end (see `watchdog`); 0: never.
    pub(crate) deadline: AtomicU64,
    // So far, what every call needs: one cache line.
    /// What the thread counts in for the domain of `lease`.
    tally: Cell<*const Tally>,
    /// The thread's identifier for `tgkill`.
    pub(crate) thread: libc::pid_t,
    /// The limit on gate calls that holds now.
    pub(crate) gates: Cell<GateLimit>,
    /// Invocations that may be nested on the thread, by the limits of calls.
    pub(crate) most_nested: Cell<u32>,
    /// What `deadline` comes from.
    pub(crate) granted: Cell<Granted>,
    /// What the thread's processor time may not reach (`Clock::Processor`); 0: anything.
    pub(crate) processor: AtomicU64,
    /// What `processor` comes from, in bits.
    pub(crate) processor_granted: AtomicU64,
    /// The deadline of an invocation that is stopped for another limit than its deadline's, and
    /// that limit in bits: set by the watchdog before it stops the invocation.
    pub(crate) overdrawn: AtomicU64,
    pub(crate) overdrawn_of: AtomicU64,
    /// Counts limited invocations, so that no two deadlines are alike.
    pub(crate) limited: Cell<u64>,
    /// At ALTERNATE, in the region.
    alternate: AlternateStack,
    /// Written by the fault handler, read when the invocation has ended.
    pub(crate) fault: UnsafeCell<Record>,
    /// Why a host function ended the invocation.
    pub(crate) end: Cell<Option<Box<crate::dispatch::Ending>>>,
    /// Of RESERVE, in the region.
    pub(crate) reserve: Reserve,
    pub(crate) leases: UnsafeCell<Leases>,
}

const _: () = assert!(size_of::<Tcb>() <= BLOCK as usize);

/// Gate calls that a domain may still make on this thread.
#[derive(Clone, Copy)]
pub(crate) struct GateLimit {
    /// Whose they are; null: nobody is limited.
    pub(crate) domain: *const Inner,
    pub(crate) left: u64,
    pub(crate) granted: u64,
}

impl GateLimit {
    const NONE: Self = Self {
        domain: ptr::null(),
        left: 0,
        granted: 0,
    };
}

thread_local! {
    /// The current thread's control block. A constant without a destructor, so
    /// that a signal handler may read it at any time.
    static CURRENT: Cell<*const Tcb> = const { Cell::new(ptr::null()) };
    static OWNER: Owner = const { Owner };
}

/// Gives the thread's region back when the thread ends.
struct Owner;

impl Drop for Owner {
    fn drop(&mut self) {
        leave();
    }
}

fn leave() {
    // A thread like any other, until that is done.
    if let Some(tcb) = current() {
        thread_end::run(tcb);
    }
    let tcb = CURRENT.replace(ptr::null());
    if let Some(tcb) = NonNull::new(tcb.cast_mut()) {
        release(tcb);
    }
}

/// Gives back what the calling thread has of domains, and calls those that want to know, as the thread's
/// end does: for a thread that is about to end, before it says that it has done its work. A call
/// that comes nevertheless is the thread's first again. Nothing happens within a call.
pub fn leave_thread() {
    if current().is_some_and(Tcb::is_outside) {
        leave();
    }
}

/// Regions of threads that have ended: the addresses of their feet.
static FREE: Mutex<Vec<u64>> = Mutex::new(Vec::new());

/// The current thread's control block, if it has one. For signal handlers too.
#[inline]
pub(crate) fn current() -> Option<&'static Tcb> {
    // SAFETY: the pointer is null or that of this thread's block, which lives
    // until the thread's local variables are dropped; nothing keeps the
    // reference beyond the call that it was made for.
    unsafe { CURRENT.get().as_ref() }
}

/// The current thread's control block, made if it has none.
#[inline]
pub(crate) fn current_or_new() -> Result<&'static Tcb, Error> {
    match current() {
        Some(tcb) => Ok(tcb),
        None => register(),
    }
}

impl Tcb {
    /// The address of the region's foot.
    #[inline]
    pub(crate) fn foot(&self) -> u64 {
        ptr::from_ref(self).addr() as u64
    }

    /// The domain that runs, and where its invocation began on the host's stack:
    /// HOST. For signal handlers too.
    pub(crate) fn running(&self) -> Option<(&Inner, u64)> {
        let word = |below: u64| -> *const u64 {
            ptr::with_exposed_provenance((self.control.get() - below) as usize)
        };
        // SAFETY: DOMAIN is mapped (the top's, or what a gate's first instruction has
        // passed), only this thread writes it, and a domain that runs lives.
        let domain: *const Inner =
            unsafe { ptr::with_exposed_provenance(word(DOMAIN_BELOW).read() as usize) };
        // SAFETY: as above.
        let domain = unsafe { domain.as_ref() }?;
        // SAFETY: with a domain that runs there is a HOST.
        Some((domain, unsafe { word(HOST_BELOW).read() }))
    }

    /// Whether the control stack has room for another invocation: what a domain
    /// leaves of it to the host functions that it calls may be little.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.control.get() - self.foot() >= CONTROL_LOW + LEAST_ROOM
    }

    /// What the handler of the time limit and the gate compare.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed) == self.deadline.load(Ordering::Relaxed)
    }

    /// Why the invocation is stopped.
    pub(crate) fn limit(&self) -> Granted {
        if self.overdrawn.load(Ordering::Acquire) == self.deadline.load(Ordering::Relaxed) {
            return Granted::from_bits(self.overdrawn_of.load(Ordering::Relaxed));
        }
        self.granted.get()
    }

    /// Lets invocations begin so low on the control stack that they have `size` bytes
    /// of it, or less if there is less. Returns CONTROL as it was, to be set again.
    pub(crate) fn lower(&self, size: u64) -> u64 {
        let control = self.control.get();
        let size = size.clamp(MIN_CONTROL_STACK, MAX_LIMITED) & !15;
        let lower = self.foot() + CONTROL_LOW + size;
        if lower < control {
            let frame = frame_at(control).map_or(0, |frame| ptr::from_ref(frame).addr() as u64);
            let place: *mut u64 = ptr::with_exposed_provenance_mut((lower - 16) as usize);
            // SAFETY: FRAME and DOMAIN of the new CONTROL lie on the control stack, in
            // its mapped part, below all that is in use: only this thread writes there.
            unsafe { place.cast::<[u64; 2]>().write([0, frame]) };
            self.control.set(lower);
        }
        control
    }

    /// For a thread on which an invocation was left by a jump.
    pub(crate) fn forget_limits(&self) {
        self.gates.set(GateLimit::NONE);
        self.most_nested.set(u32::MAX);
        watchdog::forget(self);
    }

    /// Whether nothing runs in a domain on the thread, nor was told to be short of
    /// control stack.
    #[inline]
    pub(crate) fn is_outside(&self) -> bool {
        self.control.get() == self.foot() + (CONTROL_REGION - TOP)
    }

    /// Where the data stack begins that this thread has in the present life of a domain,
    /// if it has one. Not that of an invocation nested in another one of the domain.
    /// `serial` is the number of that life, which callers have at hand.
    #[inline]
    pub(crate) fn own_stack(&self, domain: &Inner, serial: u64) -> Option<u64> {
        let (last, top) = self.lease.get();
        if last == serial {
            return Some(top);
        }
        self.other_stack(domain, serial)
    }

    /// As [`Tcb::own_stack`], for a call that will be made: it is counted.
    #[inline]
    pub(crate) fn own_stack_called(&self, domain: &Inner, serial: u64) -> Option<u64> {
        let top = self.own_stack(domain, serial)?;
        // SAFETY: `own_stack` has noted the domain's tally with its lease: see `count`.
        unsafe { &*self.tally.get() }.call();
        Some(top)
    }

    /// For a domain that is not the last one called.
    #[inline(never)]
    fn other_stack(&self, domain: &Inner, serial: u64) -> Option<u64> {
        // SAFETY: the leases are this thread's; the reference ends in this line.
        let (top, tally) = unsafe { &*self.leases.get() }.top(domain, serial)?;
        self.tally.set(Arc::as_ptr(tally));
        self.lease.set((serial, top));
        Some(top)
    }

    /// Counts for a domain of which the thread has a stack, as one has that it runs.
    #[inline]
    pub(crate) fn count(&self, domain: &Inner, count: impl FnOnce(&Tally)) {
        if self.lease.get().0 == domain.serial() {
            // SAFETY: noted together with the lease, of which the tally is; the leases keep it
            // until the thread leases from another life, which that number is not.
            count(unsafe { &*self.tally.get() });
        } else {
            self.count_other(domain, count);
        }
    }

    /// For a domain that is not the last one called.
    #[inline(never)]
    fn count_other(&self, domain: &Inner, count: impl FnOnce(&Tally)) {
        // SAFETY: as in `other_stack`.
        if let Some((_, tally)) = unsafe { &*self.leases.get() }.top(domain, domain.serial()) {
            count(tally);
        }
    }

    /// As [`Tcb::own_stack`]; the thread takes one if it has none.
    #[inline]
    pub(crate) fn stack_top(&self, domain: &Inner) -> Result<u64, NotReturned> {
        match self.own_stack(domain, domain.serial()) {
            Some(top) => Ok(top),
            None => self.first_call(domain),
        }
    }

    /// Takes a stack, and has the domain set it up.
    #[cold]
    #[inline(never)]
    fn first_call(&self, domain: &Inner) -> Result<u64, NotReturned> {
        // What the host has changed since the thread called another one.
        self.alternate.install_if_none()?;
        signals::open()?;
        // SAFETY: as above.
        let leased = unsafe { &mut *self.leases.get() }.lease(domain);
        let (top, index) = leased.map_err(|error| domain.not_made(error))?;
        let target = domain.thread_start();
        if target != 0 {
            let request = Request {
                target,
                integers: &[u64::from(index), 0, 0, 0, 0, 0],
                vectors: ptr::null(),
                stacked: &[],
            };
            let started = match domain.invoke(self, request, None) {
                // As system calls report errors: the other numbers are none.
                Ok(returned) => match returned.integer.wrapping_neg() {
                    code @ 1..4096 => {
                        Err(domain.not_made(Error::ThreadStart { code: code as i32 }))
                    }
                    _ => Ok(()),
                },
                Err(error) => Err(error),
            };
            if let Err(error) = started {
                // SAFETY: as above.
                unsafe { &mut *self.leases.get() }.give_back(domain);
                // The set-up's own invocation has noted the stack.
                self.lease.set((0, 0));
                return Err(error);
            }
        }
        // Notes it.
        let noted = self.other_stack(domain, domain.serial());
        debug_assert_eq!(noted, Some(top));
        Ok(top)
    }

    /// The next domain to be called at the thread's end, and in which life.
    pub(crate) fn next_to_end(&self) -> Option<(Weak<Inner>, u64)> {
        // SAFETY: as above.
        unsafe { &mut *self.leases.get() }.next_to_end()
    }

    /// Takes down where the domain is that has called a gate.
    pub(crate) fn record_gate(&self, stack: u64, control: u64) {
        // SAFETY: no handler writes the record while this thread runs host code.
        unsafe { &mut *self.fault.get() }.walk(self, stack, control);
    }

    /// What was taken down last.
    pub(crate) fn record(&self) -> &Record {
        // SAFETY: no handler writes the record while this thread runs host code,
        // and callers drop the reference before it enters a domain again.
        unsafe { &*self.fault.get() }
    }

    /// Sees to it that the thread can be interrupted whatever a domain does: the
    /// block's own alternate stack is in force, and the signals that the run time
    /// needs are open.
    pub(crate) fn prepare(&self) -> Result<(), Error> {
        self.alternate.install()?;
        signals::open()
    }
}

/// Makes the calling thread ready to enter domains, as its first call does: its
/// alternate signal stack is in force, and the signals that the run time needs are
/// open (SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP and the one of time limits).
/// SIGSEGV is opened in the process's handlers without SA_ONSTACK too, as when the
/// first domain is made.
///
/// For a host that changes either after the thread's first call, before the next one.
///
/// # Errors
/// [`Error::InHandler`], or one of the kernel's.
pub fn prepare_thread() -> Result<(), Error> {
    current_or_new()?.prepare()?;
    signals::open_in_handlers();
    Ok(())
}

/// Whether the host functions that run on this thread are still there: for who keeps something of
/// theirs on its stack.
///
/// # Errors
/// [`Error::Abandoned`]: one was left by `longjmp` or the like, and not by its return.
#[inline]
pub fn check_thread() -> Result<(), Error> {
    current().map_or(Ok(()), Tcb::check_nesting)
}

/// Has no domain entered on this thread any more ([`Error::Abandoned`]), if it is in a gate call: for who sees that
/// the host function is being left by `longjmp` or the like.
pub fn abandon_thread() {
    if let Some(tcb) = current() {
        tcb.abandon();
    }
}

#[cold]
fn register() -> Result<&'static Tcb, Error> {
    let runtime = runtime::get()?;
    let reused = free().pop();
    let foot = match reused {
        Some(foot) => foot,
        None => reserve()?,
    };
    let place: *mut Tcb = ptr::with_exposed_provenance_mut(foot as usize);
    // SAFETY: the part of the region that is for this; only the thread that has the
    // region uses it, and it goes to another one only when it is free (`release`).
    let alternate = unsafe { AlternateStack::new(foot + ALTERNATE.start..foot + ALTERNATE.end) };
    // SAFETY: gettid cannot fail and touches no memory.
    let thread = unsafe { libc::gettid() };
    // SAFETY: the first page of the region is readable, writable, large enough
    // and aligned, and belongs to this thread alone.
    let tcb: &'static Tcb = unsafe {
        place.write(Tcb {
            gate_entry: runtime.kind.gate as usize as u64,
            control: Cell::new(foot + CONTROL_REGION - TOP),
            gs: Cell::new(0),
            enter: runtime.kind.enter,
            lease: Cell::new((0, 0)),
            tally: Cell::new(ptr::null()),
            stop: AtomicU64::new(1),
            deadline: AtomicU64::new(0),
            thread,
            gates: Cell::new(GateLimit::NONE),
            most_nested: Cell::new(u32::MAX),
            granted: Cell::new(Granted::default()),
            processor: AtomicU64::new(0),
            processor_granted: AtomicU64::new(0),
            overdrawn: AtomicU64::new(0),
            overdrawn_of: AtomicU64::new(0),
            limited: Cell::new(0),
            alternate,
            fault: UnsafeCell::new(Record::default()),
            end: Cell::new(None),
            reserve: Reserve::default(),
            leases: UnsafeCell::new(Leases::default()),
        });
        &*place
    };
    if let Err(error) = tcb.prepare() {
        // Nobody has seen the block, and nothing of it owns anything.
        free().push(foot);
        return Err(error);
    }
    watchdog::add(tcb);
    CURRENT.set(tcb);
    // Not there any more if the thread is ending: then its region is not used again.
    let _ = OWNER.try_with(|_| ());
    Ok(tcb)
}

/// The thread ends: gives back what it had.
fn release(tcb: NonNull<Tcb>) {
    // SAFETY: the block is this thread's, which runs nothing in a domain any
    // more, as its local variables are being dropped.
    let block = unsafe { tcb.as_ref() };
    watchdog::remove(block);
    let retired = block.alternate.retire();
    let foot = block.foot();
    block.close_reserve();
    // SAFETY: nobody refers to the block any more: CURRENT is null and the
    // watchdog has forgotten it.
    unsafe { ptr::drop_in_place(tcb.as_ptr()) };
    let stack: *mut libc::c_void = ptr::with_exposed_provenance_mut((foot + CONTROL_LOW) as usize);
    // SAFETY: the thread's own control stack, on which nothing runs.
    unsafe {
        libc::madvise(
            stack,
            (CONTROL_REGION - CONTROL_LOW) as usize,
            libc::MADV_DONTNEED,
        )
    };
    if retired == Retired::Free {
        free().push(foot);
    }
}

fn free() -> MutexGuard<'static, Vec<u64>> {
    FREE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tests: regions that wait, put aside so that a new one is reserved.
#[cfg(test)]
pub(crate) fn take_free() -> Vec<u64> {
    std::mem::take(&mut *free())
}

#[cfg(test)]
pub(crate) fn put_free(aside: Vec<u64>) {
    free().extend(aside);
}

/// Tests: gives those that wait back to the kernel.
#[cfg(test)]
pub(crate) fn release_free() {
    take_free().into_iter().for_each(unreserve);
}

/// Gives a region back to the kernel that no thread has, or ever had.
#[expect(clippy::disallowed_methods, reason = "nobody loses anything")]
fn unreserve(foot: u64) {
    let region = ptr::with_exposed_provenance_mut(foot as usize);
    // SAFETY: a region that `reserve` has made, and of which nobody else knows.
    unsafe { libc::munmap(region, CONTROL_REGION as usize) };
}

const RESERVING: &str = "reserving a control stack";

/// A new region with its guards; the address of its foot. It is the host's, and domains have nothing of it:
/// the supervisor is asked for the whole.
#[expect(
    clippy::disallowed_methods,
    reason = "reserved without access; what was reserved goes back"
)]
fn reserve() -> Result<u64, Error> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let length = 2 * CONTROL_REGION;
    // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
    let start = unsafe {
        libc::mmap(
            ptr::null_mut(),
            length as usize,
            libc::PROT_NONE,
            flags,
            -1,
            0,
        )
    };
    if start == libc::MAP_FAILED {
        return Err(Error::last(RESERVING));
    }
    let start = start.expose_provenance() as u64;
    let foot = start.next_multiple_of(CONTROL_REGION);
    for (from, to) in [(start, foot), (foot + CONTROL_REGION, start + length)] {
        if from < to {
            // SAFETY: the part of the new mapping outside of the region.
            unsafe {
                libc::munmap(
                    ptr::with_exposed_provenance_mut(from as usize),
                    (to - from) as usize,
                )
            };
        }
    }
    let opened = records::for_the_host(foot..foot + CONTROL_REGION, |decided| {
        for part in [0..BLOCK, ALTERNATE, CONTROL_LOW..CONTROL_REGION] {
            open(decided, foot + part.start..foot + part.end)?;
        }
        Ok(())
    });
    if let Err(error) = opened {
        unreserve(foot);
        return Err(error);
    }
    Ok(foot)
}

/// Makes a part of a region readable and writable, by the supervisor's yes.
#[expect(clippy::disallowed_methods, reason = "by the supervisor's yes")]
fn open(decided: &Decided<'_>, part: Range<u64>) -> Result<(), Error> {
    let (start, end) = (part.start, part.end);
    if !decided.allows(&part, Access::ReadWrite) {
        return Err(Error::Undecided { start, end });
    }
    let protection = Access::ReadWrite.protection();
    let address = ptr::with_exposed_provenance_mut(start as usize);
    // SAFETY: the caller has just reserved it, and nobody knows of it.
    match unsafe { libc::mprotect(address, (end - start) as usize, protection) } {
        0 => Ok(()),
        _ => Err(Error::last(RESERVING)),
    }
}
