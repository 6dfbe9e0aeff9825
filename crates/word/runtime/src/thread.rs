//! What a thread has of the word wall: a control stack, and a data stack and a seat in each domain that it enters.
//!
//! ```text
//!   control stack   | guard |  1 MiB: frames, return addresses; nobody is ever granted a word of it  |
//!   data stack      region of 8 MiB:  | never mapped ... | the domain's own words | thread-locals | TP | 32 KiB never mapped |
//! ```

use crate::core::{Core, Record, SeatAt};
use crate::gates::{Here, Inner, Seat, here};
use crate::memory::{PAGE, Reserved, lock};
use crate::rights::ROOT;
use crate::world::world;
use mullion_supervisor::{Permission, Range};
use mullion_word_abi::{OWN_FIRST, OWN_LAST, STACK_MARGIN, STACK_REGION, THREAD_POINTER_SLOT};
use mullion_word_table::Visit;
use std::arch::asm;
use std::cell::RefCell;
use std::io;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

const CONTROL: u64 = 1 << 20;
/// Below the control stack, never mapped.
const GUARD: u64 = 64 << 10;
/// What an entry from the host leaves of the control stack at least.
const RESERVE: u64 = 16 << 10;
/// Notes of learning domains run there, too.
const ALTERNATE: u64 = 256 << 10;

/// What handlers and the watchdog know of a thread.
#[derive(Debug)]
pub(crate) struct Clock {
    pub(crate) id: AtomicI32,
    /// When the call that runs is over, in nanoseconds of the monotonic clock; 0 for never.
    pub(crate) deadline: AtomicU64,
}

/// MXCSR, and the control word of the x87.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words {
    pub(crate) mxcsr: u32,
    pub(crate) x87: u16,
}

impl Words {
    pub(crate) fn now() -> Words {
        let mut words = Words { mxcsr: 0, x87: 0 };
        // SAFETY: they store the control words.
        unsafe {
            asm!("stmxcsr [{}]", in(reg) &raw mut words.mxcsr, options(nostack));
            asm!("fnstcw [{}]", in(reg) &raw mut words.x87, options(nostack));
        }
        words
    }

    pub(crate) fn load(self) {
        // SAFETY: they load what was stored; an exception of the x87 that is pending is cleared first.
        unsafe {
            asm!("fnclex", "fldcw [{}]", in(reg) &raw const self.x87, options(nostack));
            asm!("ldmxcsr [{}]", in(reg) &raw const self.mxcsr, options(nostack));
        }
    }
}

/// Its memory, and what it has to give back.
pub(crate) struct Thread {
    pub(crate) clock: Arc<Clock>,
    pub(crate) record: Record,
    /// The host's control words of floating point, while a domain runs that may change them.
    pub(crate) words: Words,
    /// Why the host refused to go on, for the trap that follows.
    pub(crate) refusal: Option<String>,
    /// How many calls were ended in this thread.
    pub(crate) ended: u64,
    /// Integer arguments of the calls of learning domains that have not returned.
    pub(crate) calls: Vec<[u64; 6]>,
    pub(crate) control: Reserved,
    seats: Vec<Place>,
    table: Reserved,
    _alternate: Reserved,
}

struct Place {
    seat: Box<Seat>,
    _visit: Visit,
    core: &'static Core,
    region: u64,
}

/// Threads that live, for the watchdog.
pub(crate) static CLOCKS: Mutex<Vec<Arc<Clock>>> = Mutex::new(Vec::new());

/// The signal that the watchdog sends.
pub(crate) static LATE: OnceLock<i32> = OnceLock::new();

struct Owner(*mut Thread);

thread_local! {
    static OWNER: RefCell<Option<Owner>> = const { RefCell::new(None) };
}

impl Drop for Owner {
    fn drop(&mut self) {
        // SAFETY: it is the thread's own block; the thread runs no domain's code any more.
        unsafe {
            let here = here();
            (*here).seats = std::ptr::null_mut();
            (*here).thread = std::ptr::null_mut();
            drop(Box::from_raw(self.0));
        }
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        lock(&CLOCKS).retain(|clock| !Arc::ptr_eq(clock, &self.clock));
        for place in self.seats.drain(..) {
            place.leave();
        }
        alternate_off(&self._alternate);
    }
}

impl Place {
    /// The stack waits for the domain's next thread, or goes with the domain.
    fn leave(self) {
        let at = SeatAt(&raw const *self.seat);
        self.core
            .keep
            .forget(self.core, (&raw const *self.seat).cast_mut());
        lock(&self.core.seats).retain(|seat| *seat != at);
        let life = lock(&self.core.life);
        match life.is_gone {
            true => world().stacks.give(self.region),
            false => lock(&self.core.stacks).push(self.region),
        }
    }
}

/// The calling thread's block, made if it has none.
pub(crate) fn this() -> io::Result<&'static mut Thread> {
    // SAFETY: `here` is the thread's own, and so is what it points to, until the thread ends. The gates' slow way and
    // the fault handler use it one after the other.
    unsafe {
        let here = here();
        if (*here).thread.is_null() {
            (*here).thread = make(here)?.cast();
        }
        Ok(&mut *(*here).thread.cast::<Thread>())
    }
}

/// In the child of a fork, which has the calling thread alone, under another number.
pub(crate) fn forked() {
    // SAFETY: as in `this`.
    let thread = unsafe { (*here()).thread.cast::<Thread>().as_ref() };
    let mine = thread.map(|thread| Arc::clone(&thread.clock));
    if let Some(clock) = &mine {
        // SAFETY: it asks for a number.
        clock.id.store(unsafe { libc::gettid() }, Ordering::Relaxed);
    }
    let is_mine = |clock: &Arc<Clock>| mine.as_ref().is_some_and(|mine| Arc::ptr_eq(mine, clock));
    lock(&CLOCKS).retain(is_mine);
}

fn make(here: *mut Here) -> io::Result<*mut Thread> {
    let slots = u64::from(OWN_LAST - OWN_FIRST) + 1;
    let table = Reserved::new((slots * 8).next_multiple_of(PAGE))?;
    let both = libc::PROT_READ | libc::PROT_WRITE;
    table.map(table.base(), table.bytes(), both)?;
    let control = Reserved::new(GUARD + CONTROL)?;
    control.map(control.base() + GUARD, CONTROL, both)?;
    let alternate = Reserved::new(GUARD + ALTERNATE)?;
    alternate.map(alternate.base() + GUARD, ALTERNATE, both)?;
    alternate_on(&alternate)?;
    let clock = Arc::new(Clock {
        // SAFETY: it asks for a number.
        id: AtomicI32::new(unsafe { libc::gettid() }),
        deadline: AtomicU64::new(0),
    });
    lock(&CLOCKS).push(Arc::clone(&clock));
    unblock();
    let top = control.base() + control.bytes();
    let seats = table.base() as *mut *mut Seat;
    let limit = control.base() + GUARD + RESERVE;
    let thread = Box::into_raw(Box::new(Thread {
        clock,
        record: Record::default(),
        words: Words::now(),
        refusal: None,
        ended: 0,
        calls: Vec::new(),
        control,
        seats: Vec::new(),
        table,
        _alternate: alternate,
    }));
    // A thread that has ended its thread-locals already keeps what it has: `try_with` fails.
    let _kept = OWNER.try_with(|owner| *owner.borrow_mut() = Some(Owner(thread)));
    // SAFETY: it is the calling thread's, and no gate runs.
    unsafe {
        (*here).control = top;
        (*here).limit = limit;
        (*here).host_low = stack_low();
        (*here).seats = seats;
    }
    Ok(thread)
}

/// A host may block signals in its threads; this one must reach a thread that enters domains.
fn unblock() {
    let Some(signal) = LATE.get() else {
        return;
    };
    // SAFETY: the set is made before it is used; the thread's mask is its own business.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, *signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, std::ptr::null_mut());
    }
}

/// The lowest address of the calling thread's stack; a large number if it is not known.
fn stack_low() -> u64 {
    // SAFETY: the attributes are filled in before they are read, and given back.
    unsafe {
        let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
        if libc::pthread_getattr_np(libc::pthread_self(), &mut attributes) != 0 {
            return 1 << 62;
        }
        let (mut at, mut bytes) = (std::ptr::null_mut(), 0);
        let found = libc::pthread_attr_getstack(&attributes, &mut at, &mut bytes);
        libc::pthread_attr_destroy(&mut attributes);
        match found {
            0 => at as u64,
            _ => 1 << 62,
        }
    }
}

fn alternate_on(memory: &Reserved) -> io::Result<()> {
    let stack = libc::stack_t {
        ss_sp: (memory.base() + GUARD) as *mut _,
        ss_flags: 0,
        ss_size: ALTERNATE as usize,
    };
    // SAFETY: the memory is ours as long as the thread has its block.
    match unsafe { libc::sigaltstack(&stack, std::ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn alternate_off(memory: &Reserved) {
    // SAFETY: it asks what is in force, and switches it off only if it is ours.
    unsafe {
        let mut now: libc::stack_t = std::mem::zeroed();
        let asked = libc::sigaltstack(std::ptr::null(), &mut now);
        if asked == 0 && now.ss_sp as u64 == memory.base() + GUARD {
            now.ss_flags = libc::SS_DISABLE;
            libc::sigaltstack(&now, std::ptr::null_mut());
        }
    }
}

/// The calling thread's seat in a domain, if it has one.
#[inline]
pub(crate) fn known_seat(core: &Core) -> Option<*mut Seat> {
    // SAFETY: `here` is the thread's own; its table has a slot for each index, and a seat in the table lives.
    unsafe {
        let seats = (*here()).seats;
        let seat = match seats.is_null() {
            true => std::ptr::null_mut(),
            false => *seats.add(core.inner.index as usize),
        };
        let is_it = !seat.is_null() && (*seat).inner == &raw const core.inner;
        is_it.then_some(seat)
    }
}

/// The calling thread's seat in a domain, made if it has none.
pub(crate) fn seat(core: &'static Core) -> io::Result<*mut Seat> {
    let thread = this()?;
    let index = core.inner.index as usize;
    let slot = (thread.table.base() as *mut *mut Seat).wrapping_add(index);
    // SAFETY: the table has a slot for each index, and is the thread's own.
    let found = unsafe { *slot };
    // SAFETY: a seat in the table lives.
    if !found.is_null() && unsafe { (*found).inner } == &raw const core.inner {
        return Ok(found);
    }
    // The number was an ended domain's.
    if let Some(old) = thread
        .seats
        .iter()
        .position(|place| &raw const *place.seat == found)
    {
        // SAFETY: as above.
        unsafe { *slot = std::ptr::null_mut() };
        thread.seats.swap_remove(old).leave();
    }
    let place = Place::new(core)?;
    let seat = (&raw const *place.seat).cast_mut();
    lock(&core.seats).push(SeatAt(seat));
    thread.seats.push(place);
    // SAFETY: nothing in this process but checked code uses %gs. The table lives as long as the process.
    unsafe { core.view.load() };
    // SAFETY: as above.
    unsafe { *slot = seat };
    Ok(seat)
}

impl Place {
    fn new(core: &'static Core) -> io::Result<Place> {
        let locals = core
            .module
            .parts
            .tls
            .as_ref()
            .map_or(0, |tls| tls.bytes + 2 * PAGE);
        let bytes = (core.limits.stack.clamp(64 << 10, 6 << 20) + locals).next_multiple_of(PAGE);
        let waiting = lock(&core.stacks).pop();
        let region = match waiting {
            Some(region) => region,
            None => {
                let none = || io::Error::from_raw_os_error(libc::ENOMEM);
                let region = world().stacks.take().ok_or_else(none)?;
                let at = region + STACK_REGION - STACK_MARGIN - bytes;
                let both = libc::PROT_READ | libc::PROT_WRITE;
                world().stacks.memory.map(at, bytes, both)?;
                let words = Range::bytes(at, bytes).expect("whole words");
                let own = Permission::ReadWrite;
                world()
                    .supervisor()
                    .mprot_export(&ROOT, core.id, words, own)
                    .map_err(io::Error::other)?;
                region
            }
        };
        let mut visit = world().inside.visit(core.id);
        visit.leave();
        let top = fresh_top(core, region);
        let seat = Box::new(Seat {
            inner: (&raw const core.inner).cast::<Inner>(),
            stack: top,
            counter: visit.counter(),
            depth: AtomicU64::new(0),
            top,
            low: region + STACK_REGION - STACK_MARGIN - bytes,
            streak: 0,
            latest: 0,
            policy: std::ptr::null(),
            repeated: 0,
            edition: 0,
            arguments: [0; 6],
            masks: [0; 6],
        });
        Ok(Place {
            seat,
            _visit: visit,
            core,
            region,
        })
    }
}

/// Writes the thread-locals and the thread pointer at the top of a data stack. Where the stack begins.
fn fresh_top(core: &Core, region: u64) -> u64 {
    let slot = region + THREAD_POINTER_SLOT;
    let mut top = slot - 8;
    let mut pointer = 0;
    if let Some(tls) = &core.module.parts.tls {
        // The thread pointer is a multiple of the alignment, points to itself, and the block lies below it.
        let alignment = tls.alignment.max(16);
        pointer = (slot - 16) & !(alignment - 1);
        // As linkers count: the distance from the pointer is a multiple of the segment's own alignment, and no more.
        let start = pointer - tls.bytes.next_multiple_of(tls.alignment);
        let content = &core.module.parts.bytes[tls.content.clone()];
        // SAFETY: `Module::new` has seen that it is at most 1 MiB, for which the stack has room, and no code of the
        // domain runs on this stack now.
        unsafe {
            let to = start as *mut u8;
            to.write_bytes(0, (pointer - start) as usize);
            to.copy_from_nonoverlapping(content.as_ptr(), content.len());
            (pointer as *mut u64).write(pointer);
        }
        top = start & !15;
    }
    // SAFETY: the slot is in the mapped part.
    unsafe { (slot as *mut u64).write(pointer) };
    // As at a function's entry: the first stack argument is at a multiple of 16.
    top & !15
}

/// Fresh thread-locals for all threads of a domain that nobody is in.
pub(crate) fn fresh_seats(core: &Core) {
    for seat in lock(&core.seats).iter() {
        // SAFETY: the seat lives, and its top does not change.
        let top = unsafe { (*seat.0).top };
        fresh_top(core, top & !(STACK_REGION - 1));
    }
}

impl Thread {
    /// Whether an address is in the part below the control stack that is never mapped.
    pub(crate) fn is_control_guard(&self, address: u64) -> bool {
        (self.control.base()..self.control.base() + GUARD).contains(&address)
    }

    pub(crate) fn deadline(&self) -> &AtomicU64 {
        &self.clock.deadline
    }

    /// The call was ended: no more signals for it.
    pub(crate) fn is_over(&self) {
        self.deadline().store(0, Ordering::Relaxed);
    }

    pub(crate) fn has_refusal(&self) -> bool {
        self.refusal.is_some()
    }

    /// Whether its call has run out of time.
    pub(crate) fn is_late(&self, now: u64) -> bool {
        let deadline = self.clock.deadline.load(Ordering::Relaxed);
        deadline != 0 && now >= deadline
    }
}
