//! Control stacks, and the thread control block at the foot of each.
//!
//! ```text
//! 4 MiB  ->  +-----------------------+
//!            | control stack         |  grows down
//! 64 KiB     +-----------------------+
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

use crate::call::NotReturned;
use crate::domain::Inner;
use crate::error::Error;
use crate::fault::Record;
use crate::invoke::Request;
use crate::signals;
use crate::stacks::Leases;
use crate::trampoline::{DOMAIN_BELOW, HOST_BELOW, frame_at};
use crate::watchdog::Granted;
use crate::{runtime, thread_end, watchdog};
use mullion_abi::CONTROL_REGION;
use std::cell::{Cell, UnsafeCell};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, Weak};
use std::time::Duration;

const BLOCK: u64 = 0x1000;
/// Bytes of control stack that an invocation must have to begin.
const LEAST_ROOM: u64 = 0x1000;
const ALTERNATE: std::ops::Range<u64> = 0x2000..0xe000;
/// Lowest offset of the control stack itself.
pub(crate) const CONTROL_LOW: u64 = 0x1_0000;

/// Greatest size of a control stack, in bytes.
pub const MAX_CONTROL_STACK: u64 = CONTROL_REGION - CONTROL_LOW - TOP;
/// Bytes left alone at its top.
const TOP: u64 = 64;
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
    /// The thread's identifier for `tgkill`.
    pub(crate) thread: libc::pid_t,
    /// The limit on gate calls that holds now.
    pub(crate) gates: Cell<GateLimit>,
    /// Invocations that may be nested on the thread, by the limits of calls.
    pub(crate) most_nested: Cell<u32>,
    /// What `deadline` comes from.
    pub(crate) granted: Cell<Granted>,
    /// The deadline of an invocation whose domain's time for all calls is up, and
    /// that time in nanoseconds: set by the watchdog before it stops the invocation.
    pub(crate) overdrawn: AtomicU64,
    pub(crate) overdrawn_of: AtomicU64,
    /// Counts limited invocations, so that no two deadlines are alike.
    pub(crate) limited: Cell<u64>,
    /// The alternate stack that the thread had before.
    previous_alternate: Cell<libc::stack_t>,
    /// Written by the fault handler, read when the invocation has ended.
    pub(crate) fault: UnsafeCell<Record>,
    /// Why a host function ended the invocation.
    pub(crate) end: Cell<Option<Box<crate::dispatch::Ending>>>,
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
        // A thread like any other, until that is done.
        if let Some(tcb) = current() {
            thread_end::run(tcb);
        }
        let tcb = CURRENT.replace(ptr::null());
        if let Some(tcb) = NonNull::new(tcb.cast_mut()) {
            release(tcb);
        }
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
            let granted = self.overdrawn_of.load(Ordering::Relaxed);
            return Granted::total(Duration::from_nanos(granted));
        }
        self.granted.get()
    }

    /// Lets invocations begin so low on the control stack that they have `size` bytes
    /// of it, or less if there is less. Returns CONTROL as it was, to be set again.
    pub(crate) fn lower(&self, size: u64) -> u64 {
        let control = self.control.get();
        let size = size.clamp(MIN_CONTROL_STACK, MAX_CONTROL_STACK) & !15;
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

    /// Whether nothing runs in a domain on the thread, nor was told to be short of
    /// control stack.
    #[inline]
    pub(crate) fn is_outside(&self) -> bool {
        self.control.get() == self.foot() + (CONTROL_REGION - TOP)
    }

    /// Where the data stack begins that this thread has in the present life of a domain,
    /// if it has one. Not that of an invocation nested in another one of the domain.
    #[inline]
    pub(crate) fn own_stack(&self, domain: &Inner) -> Option<u64> {
        let (serial, top) = self.lease.get();
        if serial == domain.serial() {
            return Some(top);
        }
        self.other_stack(domain)
    }

    /// For a domain that is not the last one called.
    #[inline(never)]
    fn other_stack(&self, domain: &Inner) -> Option<u64> {
        // SAFETY: the leases are this thread's; the reference ends in this line.
        let top = unsafe { &*self.leases.get() }.top(domain)?;
        self.lease.set((domain.serial(), top));
        Some(top)
    }

    /// As [`Tcb::own_stack`]; the thread takes one if it has none.
    #[inline]
    pub(crate) fn stack_top(&self, domain: &Inner) -> Result<u64, NotReturned> {
        match self.own_stack(domain) {
            Some(top) => Ok(top),
            None => self.first_call(domain),
        }
    }

    /// Takes a stack, and has the domain set it up.
    #[cold]
    #[inline(never)]
    fn first_call(&self, domain: &Inner) -> Result<u64, NotReturned> {
        // SAFETY: as above.
        let leased = unsafe { &mut *self.leases.get() }.lease(domain);
        let (top, index) = leased?;
        let target = domain.thread_start();
        if target != 0 {
            let request = Request {
                target,
                integers: &[u64::from(index), 0, 0, 0, 0, 0],
                vectors: ptr::null(),
                stacked: &[],
            };
            if let Err(error) = domain.invoke(self, request, None) {
                // SAFETY: as above.
                unsafe { &mut *self.leases.get() }.give_back(domain);
                return Err(error);
            }
        }
        self.lease.set((domain.serial(), top));
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

    /// The alternate stack's addresses.
    fn alternate(&self) -> libc::stack_t {
        libc::stack_t {
            ss_sp: ptr::with_exposed_provenance_mut((self.foot() + ALTERNATE.start) as usize),
            ss_flags: 0,
            ss_size: (ALTERNATE.end - ALTERNATE.start) as usize,
        }
    }
}

#[cold]
fn register() -> Result<&'static Tcb, Error> {
    let runtime = runtime::get()?;
    let reused = FREE.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let foot = match reused {
        Some(foot) => foot,
        None => reserve()?,
    };
    let place: *mut Tcb = ptr::with_exposed_provenance_mut(foot as usize);
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
            stop: AtomicU64::new(1),
            deadline: AtomicU64::new(0),
            thread,
            gates: Cell::new(GateLimit::NONE),
            most_nested: Cell::new(u32::MAX),
            granted: Cell::new(Granted::default()),
            overdrawn: AtomicU64::new(0),
            overdrawn_of: AtomicU64::new(0),
            limited: Cell::new(0),
            previous_alternate: Cell::new(std::mem::zeroed()),
            fault: UnsafeCell::new(Record::default()),
            end: Cell::new(None),
            leases: UnsafeCell::new(Leases::default()),
        });
        &*place
    };
    let mut previous = tcb.previous_alternate.get();
    // SAFETY: both structures are valid; the new stack is this thread's own memory.
    if unsafe { libc::sigaltstack(&tcb.alternate(), &mut previous) } != 0 {
        return Err(Error::last("installing an alternate signal stack"));
    }
    tcb.previous_alternate.set(previous);
    signals::prepare_thread();
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
    let previous = block.previous_alternate.get();
    // SAFETY: what the kernel gave us when the thread registered.
    unsafe { libc::sigaltstack(&previous, ptr::null_mut()) };
    let foot = block.foot();
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
    FREE.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(foot);
}

/// A new region with its guards; the address of its foot.
fn reserve() -> Result<u64, Error> {
    let what = "reserving a control stack";
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
        return Err(Error::last(what));
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
    for part in [0..BLOCK, ALTERNATE, CONTROL_LOW..CONTROL_REGION] {
        let address = ptr::with_exposed_provenance_mut((foot + part.start) as usize);
        // SAFETY: a part of the region just reserved.
        let result = unsafe {
            libc::mprotect(
                address,
                (part.end - part.start) as usize,
                libc::PROT_READ | libc::PROT_WRITE,
            )
        };
        if result != 0 {
            return Err(Error::last(what));
        }
    }
    Ok(foot)
}
