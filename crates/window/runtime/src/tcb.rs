//! The thread control block: what a thread has of domains, at the foot of its control stack.

use crate::alternate::AlternateStack;
use crate::assembly::Kind;
use crate::control_stack::{BLOCK, CONTROL_LOW, LEAST_ROOM, MAX_LIMITED, MIN_CONTROL_STACK, TOP};
use crate::fault_record::Record;
use crate::frame::{DOMAIN_BELOW, HOST_BELOW, frame_at};
use crate::granted::Granted;
use crate::host_function::Ending;
use crate::inner::Inner;
use crate::leases::Leases;
use mullion_abi::CONTROL_REGION;
use mullion_report::error::Error;
use mullion_report::meter::Tally;
use std::cell::{Cell, UnsafeCell};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

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
    pub(crate) alternate: AlternateStack,
    /// Written by the fault handler, read when the invocation has ended.
    pub(crate) fault: UnsafeCell<Record>,
    /// Why a host function ended the invocation.
    pub(crate) end: Cell<Option<Box<Ending>>>,
    /// Of RESERVE, in the region.
    pub(crate) reserve: Reserve,
    leases: UnsafeCell<Leases>,
}

const _: () = assert!(size_of::<Tcb>() <= BLOCK as usize);

/// Of a thread's control stack (`reserve`); used by its own thread alone, also in signal handlers.
#[derive(Debug, Default)]
pub(crate) struct Reserve {
    pub(crate) is_open: Cell<bool>,
}

/// Gate calls that a domain may still make on this thread.
#[derive(Clone, Copy)]
pub(crate) struct GateLimit {
    /// Whose they are; null: nobody is limited.
    pub(crate) domain: *const Inner,
    pub(crate) left: u64,
    pub(crate) granted: u64,
}

impl GateLimit {
    pub(crate) const NONE: Self = Self {
        domain: ptr::null(),
        left: 0,
        granted: 0,
    };
}

thread_local! {
    /// The current thread's control block. A constant without a destructor, so
    /// that a signal handler may read it at any time.
    static CURRENT: Cell<*const Tcb> = const { Cell::new(ptr::null()) };
}

/// The current thread's control block, if it has one. For signal handlers too.
#[inline]
pub(crate) fn current() -> Option<&'static Tcb> {
    // SAFETY: the pointer is null or that of this thread's block, which lives
    // until the thread's local variables are dropped; nothing keeps the
    // reference beyond the call that it was made for.
    unsafe { CURRENT.get().as_ref() }
}

/// Makes a block the calling thread's, or leaves it none. Returns what it had.
pub(crate) fn set_current(tcb: *const Tcb) -> *const Tcb {
    CURRENT.replace(tcb)
}

impl Tcb {
    /// That of a thread that has never entered a domain, for the region with this foot.
    pub(crate) fn new(foot: u64, kind: &Kind, alternate: AlternateStack) -> Self {
        Self {
            gate_entry: kind.gate as usize as u64,
            control: Cell::new(foot + CONTROL_REGION - TOP),
            gs: Cell::new(0),
            enter: kind.enter,
            lease: Cell::new((0, 0)),
            tally: Cell::new(ptr::null()),
            stop: AtomicU64::new(1),
            deadline: AtomicU64::new(0),
            // SAFETY: gettid cannot fail and touches no memory.
            thread: unsafe { libc::gettid() },
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
        }
    }

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
        // SAFETY: null, or what `enter` was given: a reference that outlives the invocation.
        let domain = unsafe { domain.as_ref() }?;
        // SAFETY: with a domain that runs there is a HOST, which `mullion_enter` has pushed below DOMAIN.
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
        // SAFETY: only this thread uses its leases, and `top` ends before anything else does. What `count` is
        // given lies behind an `Arc` that they keep: it adds, and calls nothing.
        if let Some((_, tally)) = unsafe { &*self.leases.get() }.top(domain, domain.serial()) {
            count(tally);
        }
    }

    /// Takes a stack of a domain: `%r15`, and the stack's number.
    pub(crate) fn lease(&self, domain: &Inner) -> Result<(u64, u32), Error> {
        // SAFETY: only this thread uses its leases, and the reference ends in this line. Nothing that `lease` calls
        // comes back here: it maps pages, and asks the supervisor.
        unsafe { &mut *self.leases.get() }.lease(domain)
    }

    /// Gives back what was leased for a thread that the domain has not set up.
    pub(crate) fn give_back(&self, domain: &Inner) {
        // SAFETY: only this thread uses its leases, and the reference ends in this line: `give_back` puts a number
        // on a list, and calls nothing of this block's.
        unsafe { &mut *self.leases.get() }.give_back(domain);
        // The set-up's own invocation has noted the stack.
        self.lease.set((0, 0));
    }

    /// The next domain to be called at the thread's end, and in which life.
    pub(crate) fn next_to_end(&self) -> Option<(Weak<Inner>, u64)> {
        // SAFETY: only this thread uses its leases, and the reference ends in this line, in which nothing is called
        // but `next_to_end`.
        unsafe { &mut *self.leases.get() }.next_to_end()
    }

    /// Takes down where the domain is that has called a gate.
    pub(crate) fn record_gate(&self, stack: u64, control: u64) {
        // SAFETY: no handler writes the record while this thread runs host code.
        unsafe { &mut *self.fault.get() }.walk(self.foot(), stack, control);
    }

    /// What was taken down last.
    pub(crate) fn record(&self) -> &Record {
        // SAFETY: no handler writes the record while this thread runs host code,
        // and callers drop the reference before it enters a domain again.
        unsafe { &*self.fault.get() }
    }
}
