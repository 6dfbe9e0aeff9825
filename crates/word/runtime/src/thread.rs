//! What a thread has of the word wall: a control stack, and a data stack and a seat in each domain that it enters.
//!
//! ```text
//!   private block   2 MiB, of which nobody is ever granted a word:
//!                   | guard | room for handlers |  1 MiB control stack: frames, return addresses  | guard | handlers' stack | list of seats |
//!   data stack      region of 8 MiB:  | never mapped ... | the domain's own words | thread-locals | TP | 32 KiB never mapped |
//! ```

use crate::callback::Callback;
use crate::core::{Core, Principal, Record, SeatAt};
use crate::gates::{Frame, HOST_RESERVE, Here, Inner, Seat, here};
use crate::holder::Holder;
use crate::lent::Loans;
use crate::memory::{PAGE, lock};
use crate::refuse::Refusal;
use crate::rights::ROOT;
use crate::signals;
use crate::world::{PRIVATE, world};
use mullion_supervisor::{Permission, Range};
use mullion_word_abi::{OWN_FIRST, OWN_LAST, STACK_MARGIN, STACK_REGION, THREAD_POINTER_SLOT};
use mullion_word_table::Visit;
use std::arch::asm;
use std::cell::RefCell;
use std::io;
use std::ops;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const CONTROL: u64 = 1 << 20;
/// Below the control stack, never mapped.
const GUARD: u64 = 64 << 10;
/// Between the two, closed: for handlers of the host that do not fit into what a module has left (`room.rs`).
const ROOM_FOR_HANDLERS: u64 = 192 << 10;
/// What an entry finds of the control stack at least: 16,000 calls. No caller can take that from a module, nor from a handler
/// that interrupts a gate.
const RESERVE: u64 = 128 << 10;
/// Notes of learning domains run there, too.
const ALTERNATE: u64 = 256 << 10;

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

    /// The same behind code of a domain. It may have left the stack of the x87 full, and the next value on it would be
    /// none. No value is returned there.
    pub(crate) fn load_behind_a_domain(self) {
        // SAFETY: it empties the stack of the x87, where nobody but the domain has anything: compiled code has nothing
        // there at a call.
        unsafe {
            asm!(
                "fnclex", "emms",
                out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
                out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
                options(nostack, nomem),
            );
        }
        self.load();
    }
}

/// Its memory, and what it has to give back.
pub(crate) struct Thread {
    pub(crate) record: Record,
    /// The host's control words of floating point, while a domain runs that may change them.
    pub(crate) words: Words,
    /// Why the host refuses to go on, by the frame of the call that a trap ends for it. Calls nest, so there may be several.
    pub(crate) refusals: Vec<(*const Frame, Refusal)>,
    /// Whose call has run out of time, and has not come back yet.
    pub(crate) late: *const Inner,
    /// For which instances the host has said that it calls, the latest last.
    pub(crate) scopes: Vec<(&'static Principal, u64)>,
    /// How many calls were ended in this thread.
    pub(crate) ended: u64,
    /// Integer arguments of the calls of learning domains that have not returned.
    pub(crate) calls: Vec<[u64; 6]>,
    /// What the host's calls of functions mean that a module has passed to it (`callback.rs`).
    pub(crate) callbacks: Vec<Callback>,
    /// Whether the room for handlers is open.
    pub(crate) is_room_open: bool,
    private: Block,
    seats: Vec<Place>,
}

/// The thread's private block.
#[derive(Clone, Copy)]
struct Block(u64);

impl Block {
    fn room(self) -> u64 {
        self.0 + GUARD
    }

    fn control(self) -> u64 {
        self.room() + ROOM_FOR_HANDLERS
    }

    fn alternate(self) -> u64 {
        self.control() + CONTROL + GUARD
    }

    fn seats(self) -> u64 {
        self.alternate() + ALTERNATE
    }
}

/// Pointers to seats: one for each domain that there can be.
const SEATS: u64 = (((OWN_LAST - OWN_FIRST) as u64 + 1) * 8).next_multiple_of(PAGE);
const _: () = assert!(2 * GUARD + ROOM_FOR_HANDLERS + CONTROL + ALTERNATE + SEATS <= PRIVATE);

struct Place {
    seat: Box<Seat>,
    _visit: Visit,
    core: &'static Core,
    holder: &'static Holder,
    region: u64,
}

/// The size of the host's stacks, to which they are aligned, if it switches fibres itself (`fibre.rs`); otherwise 0.
pub(crate) static FIBRES: AtomicU64 = AtomicU64::new(0);

fn has_fibres() -> bool {
    FIBRES.load(Ordering::Relaxed) != 0
}

/// What a module's calls leave of a fibre's stack at least.
const ROOM: u64 = 16 << 10;

/// What takes the place of [`stack_low`] for the stack that is in use.
fn fibre_low() -> u64 {
    let mark = 0u8;
    let low = (&raw const mark as u64) & !(FIBRES.load(Ordering::Relaxed) - 1);
    // Gates compare with a reserve that is larger than such a stack.
    low.wrapping_add(ROOM).wrapping_sub(HOST_RESERVE)
}

struct Owner(*mut Thread);

thread_local! {
    static OWNER: RefCell<Option<Owner>> = const { RefCell::new(None) };
}

impl Drop for Owner {
    fn drop(&mut self) {
        // SAFETY: it is the thread's own block; the thread runs no domain's code any more.
        unsafe {
            let here = here();
            // Whoever calls later in this thread begins anew: frames of calls that have not returned go with the block.
            here.write(std::mem::zeroed());
            drop(Box::from_raw(self.0));
        }
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        for place in self.seats.drain(..) {
            place.leave();
        }
        alternate_off(self.private.alternate());
        world().private.give(self.private.0);
    }
}

impl Place {
    /// The stack waits for the domain's next thread, or goes with the domain.
    fn leave(mut self) {
        // The host may have ended the thread within a call.
        self.seat.end_grants();
        let at = SeatAt(&raw const *self.seat);
        self.core
            .keep
            .forget(self.core, (&raw const *self.seat).cast_mut());
        // Whoever clears stacks has this lock, and finds each either by its seat or on its holder's list.
        let life = lock(&self.core.life);
        lock(&self.core.seats).retain(|seat| *seat != at);
        match life.is_gone {
            true => world().stacks.give(self.region),
            false => lock(&self.holder.stacks).push(self.region),
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

fn make(here: *mut Here) -> io::Result<*mut Thread> {
    let private = &world().private;
    let none = || io::Error::from_raw_os_error(libc::ENOMEM);
    let block = Block(private.take().ok_or_else(none)?);
    let both = libc::PROT_READ | libc::PROT_WRITE;
    let made = private
        .memory
        .map(block.control(), CONTROL, both)
        .and_then(|()| {
            private
                .memory
                .map(block.alternate(), ALTERNATE + SEATS, both)
        })
        .and_then(|()| match has_fibres() {
            true => Ok(()),
            false => alternate_on(block.alternate()),
        })
        .and_then(|()| signals::open());
    if let Err(error) = made {
        private.give(block.0);
        return Err(error);
    }
    let top = block.control() + CONTROL;
    let seats = block.seats() as *mut *mut Seat;
    let limit = block.control() + RESERVE;
    let thread = Box::into_raw(Box::new(Thread {
        record: Record::default(),
        words: Words::now(),
        refusals: Vec::new(),
        late: std::ptr::null(),
        scopes: Vec::new(),
        ended: 0,
        calls: Vec::new(),
        callbacks: Vec::new(),
        is_room_open: false,
        private: block,
        seats: Vec::new(),
    }));
    // A thread that has ended its thread-locals already keeps what it has: `try_with` fails.
    // The host says when a fibre ends.
    if !has_fibres() {
        let _kept = OWNER.try_with(|owner| *owner.borrow_mut() = Some(Owner(thread)));
    }
    // SAFETY: it is the calling thread's, and no gate runs.
    unsafe {
        (*here).control = top;
        (*here).limit = limit;
        (*here).host_low = match has_fibres() {
            true => fibre_low(),
            false => stack_low(),
        };
        (*here).seats = seats;
    }
    Ok(thread)
}

/// Sees to it that calls in this thread can be ended, whatever the host has done to its signals since its first call.
pub(crate) fn prepare() -> io::Result<()> {
    let thread = this()?;
    if !has_fibres() {
        alternate_on(thread.private.alternate())?;
    }
    mullion_signals::open_in_handlers(libc::SIGSEGV);
    signals::open()
}

/// In a copy of the process, whose only thread this is: the seats of others, by domain. They are on no list any more.
pub(crate) fn in_copy(cores: &[&'static Core]) -> Vec<(&'static Core, Vec<SeatAt>)> {
    // SAFETY: `here` is the thread's own, and so is what it points to.
    let thread = unsafe { (*here()).thread.cast::<Thread>().as_ref() };
    let id = number();
    for place in thread.into_iter().flat_map(|thread| &thread.seats) {
        place.seat.id.store(id, Ordering::Relaxed);
    }
    let is_own = |seat: &mut SeatAt| {
        let mut own = thread.into_iter().flat_map(|thread| &thread.seats);
        own.any(|place| std::ptr::eq(&raw const *place.seat, seat.0))
    };
    let others = cores.iter().filter_map(|core| {
        // A thread that is gone may have had it locked: then nobody can use the domain here.
        let mut seats = core.seats.try_lock().ok()?;
        let others = seats.extract_if(.., |seat| !is_own(seat)).collect();
        Some((*core, others))
    });
    others.collect()
}

/// Whether a call of this thread that has not returned is limited in time.
pub(crate) fn is_limited() -> bool {
    // SAFETY: `here` is the thread's own, and so is what it points to.
    let thread = unsafe { (*here()).thread.cast::<Thread>().as_ref() };
    let mut seats = thread.into_iter().flat_map(|thread| &thread.seats);
    seats.any(|place| {
        place.core.limits.time.is_some() && place.seat.depth.load(Ordering::Relaxed) != 0
    })
}

/// The calling thread's number for the system.
fn number() -> i32 {
    // SAFETY: it asks for a number.
    unsafe { libc::gettid() }
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

fn alternate_on(at: u64) -> io::Result<()> {
    let stack = libc::stack_t {
        ss_sp: at as *mut _,
        ss_flags: 0,
        ss_size: ALTERNATE as usize,
    };
    // SAFETY: the memory is ours as long as the thread has its block.
    match unsafe { libc::sigaltstack(&stack, std::ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn alternate_off(at: u64) {
    // SAFETY: it asks what is in force, and switches it off only if it is ours.
    unsafe {
        let mut now: libc::stack_t = std::mem::zeroed();
        let asked = libc::sigaltstack(std::ptr::null(), &mut now);
        if asked == 0 && now.ss_sp as u64 == at {
            now.ss_flags = libc::SS_DISABLE;
            libc::sigaltstack(&now, std::ptr::null_mut());
        }
    }
}

/// The calling thread's seat in a domain, if it has one.
#[inline]
pub(crate) fn known_seat(core: &Core, of: Option<&'static Principal>) -> Option<*mut Seat> {
    // SAFETY: `here` is the thread's own; its table has a slot for each index, and a seat in the table lives.
    unsafe {
        let seats = (*here()).seats;
        let seat = match seats.is_null() {
            true => std::ptr::null_mut(),
            false => *seats.add(index(core, of)),
        };
        let is_it = !seat.is_null() && is_of(&*seat, core, of);
        is_it.then_some(seat)
    }
}

/// The place of a module's seat in a thread's list, or of its instance's.
fn index(core: &Core, of: Option<&'static Principal>) -> usize {
    of.map_or(core.inner.index, |principal| principal.index()) as usize
}

fn is_of(seat: &Seat, core: &Core, of: Option<&'static Principal>) -> bool {
    let principal = of.map_or(std::ptr::null(), |of| std::ptr::from_ref(of).cast());
    std::ptr::eq(seat.inner, &raw const core.inner) && seat.principal == principal
}

/// The calling thread's seat in a domain, made if it has none.
pub(crate) fn seat(core: &'static Core, of: Option<&'static Principal>) -> io::Result<*mut Seat> {
    let thread = this()?;
    let index = index(core, of);
    let slot = (thread.private.seats() as *mut *mut Seat).wrapping_add(index);
    // SAFETY: the table has a slot for each index, and is the thread's own.
    let found = unsafe { *slot };
    // SAFETY: a seat in the table lives.
    if !found.is_null() && is_of(unsafe { &*found }, core, of) {
        return Ok(found);
    }
    // The number was an ended domain's.
    if let Some(old) = thread
        .seats
        .iter()
        .position(|place| &raw const *place.seat == found)
    {
        // SAFETY: the slot is the thread's own: its table has one for each index.
        unsafe { *slot = std::ptr::null_mut() };
        thread.seats.swap_remove(old).leave();
    }
    let place = Place::new(core, of)?;
    let seat = (&raw const *place.seat).cast_mut();
    lock(&core.seats).push(SeatAt(seat));
    thread.seats.push(place);
    // SAFETY: nothing in this process but checked code uses %gs. The table lives as long as the process.
    unsafe { core.holder.view.load() };
    // SAFETY: the slot is the thread's own: its table has one for each index.
    unsafe { *slot = seat };
    Ok(seat)
}

impl Place {
    fn new(core: &'static Core, of: Option<&'static Principal>) -> io::Result<Place> {
        let holder = of.map_or(&core.holder, |principal| &principal.holder);
        let bytes = stack_bytes(core);
        let region = stack(core, holder)?;
        let mut visit = world().inside.visit(holder.id);
        visit.leave();
        let top = fresh_top(core, region);
        let seat = Box::new(Seat {
            inner: (&raw const core.inner).cast::<Inner>(),
            stack: top,
            counter: visit.counter(),
            depth: AtomicU64::new(0),
            entries: AtomicU64::new(0),
            seen: AtomicU64::new(0),
            since: AtomicU64::new(0),
            id: number().into(),
            top,
            low: region + STACK_REGION - STACK_MARGIN - bytes,
            streak: 0,
            latest: 0,
            policy: std::ptr::null(),
            repeated: 0,
            edition: 0,
            settled: AtomicU64::new(0),
            arguments: [0; 6],
            masks: [0; 6],
            own: holder.view.own(),
            principal: of.map_or(std::ptr::null(), |of| std::ptr::from_ref(of).cast()),
            is_used: AtomicBool::new(false),
            loans: Loans::default(),
            raised: Vec::new(),
        });
        Ok(Place {
            seat,
            _visit: visit,
            core,
            holder,
            region,
        })
    }
}

/// A region with a data stack, on which nothing is: one that waits, or a new one.
fn stack(core: &Core, holder: &Holder) -> io::Result<u64> {
    let waiting = lock(&holder.stacks).pop();
    if let Some(region) = waiting {
        // It has what a thread before has left there, and an instance that ended since. Whoever clears stacks for the next one finds
        // this region on no list until the seat is on one.
        return clear(core, region)
            .inspect_err(|_| lock(&holder.stacks).push(region))
            .map(|()| region);
    }
    let none = || io::Error::from_raw_os_error(libc::ENOMEM);
    let region = world().stacks.take().ok_or_else(none)?;
    let grant = || {
        let (words, own) = (stack_words(core, region), Permission::ReadWrite);
        let mut supervisor = world().supervisor();
        supervisor.mprot_export(&ROOT, holder.id, words, own)
    };
    clear(core, region)
        .and_then(|()| grant().map_err(io::Error::other))
        .inspect_err(|_| world().stacks.give(region))
        .map(|()| region)
}

/// Mapped bytes of a data stack, at the end of its region's part below the margin.
fn stack_bytes(core: &Core) -> u64 {
    let tls = core.module.parts.tls.as_ref();
    let locals = tls.map_or(0, |tls| tls.bytes + 2 * PAGE);
    (core.limits.stack.clamp(64 << 10, 6 << 20) + locals).next_multiple_of(PAGE)
}

/// The words of a data stack.
fn stack_words(core: &Core, region: u64) -> Range {
    let bytes = stack_bytes(core);
    Range::bytes(region + STACK_REGION - STACK_MARGIN - bytes, bytes).expect("whole words")
}

/// Fresh memory for a data stack on which nobody runs.
fn clear(core: &Core, region: u64) -> io::Result<()> {
    let bytes = stack_bytes(core);
    let at = region + STACK_REGION - STACK_MARGIN - bytes;
    let both = libc::PROT_READ | libc::PROT_WRITE;
    world().stacks.memory.map(at, bytes, both)
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

/// Clears the data stacks of an instance that nobody is in: what comes next must not find what was there.
pub(crate) fn clear_stacks(core: &Core, of: &'static Principal) -> io::Result<()> {
    let _life = lock(&core.life);
    for seat in lock(&core.seats).iter() {
        // SAFETY: the seat lives; what is read does not change, and the flag is atomic.
        let seat = unsafe { &*seat.0 };
        if is_of(seat, core, Some(of)) && seat.is_used.swap(false, Ordering::Relaxed) {
            let region = seat.low & !(STACK_REGION - 1);
            clear(core, region)?;
            fresh_top(core, region);
        }
    }
    // Those of threads that have ended. Another domain may get the region, and the place has a right there.
    let waiting = std::mem::take(&mut *lock(&of.holder.stacks));
    for region in waiting {
        let (id, words) = (of.holder.id, stack_words(core, region));
        let mut supervisor = world().supervisor();
        supervisor
            .mprot_export(&ROOT, id, words, Permission::None)
            .map_err(io::Error::other)?;
        drop(supervisor);
        world().stacks.give(region);
    }
    Ok(())
}

/// Fresh data stacks and thread-locals for all threads of a domain that nobody is in. Those to come get fresh ones (`stack`).
pub(crate) fn fresh_seats(core: &'static Core) -> io::Result<()> {
    for seat in lock(&core.seats).iter() {
        // SAFETY: the seat lives, and its lowest address does not change.
        let region = unsafe { (*seat.0).low } & !(STACK_REGION - 1);
        clear(core, region)?;
        fresh_top(core, region);
    }
    Ok(())
}

impl Thread {
    /// Whether the host has refused to go on with the call that has this frame.
    pub(crate) fn is_refused(&self, frame: *const Frame) -> bool {
        self.refusals.iter().any(|(of, _)| *of == frame)
    }

    /// Whether it has refused to go on with another one.
    pub(crate) fn refuses_besides(&self, frame: *const Frame) -> bool {
        self.refusals.iter().any(|(of, _)| *of != frame)
    }

    /// Takes out why the call with this frame was refused: what was said first.
    pub(crate) fn take_refusal(&mut self, frame: *const Frame) -> Option<Refusal> {
        let all = std::mem::take(&mut self.refusals);
        let (own, others) = all.into_iter().partition(|(of, _)| *of == frame);
        self.refusals = others;
        let own: Vec<(*const Frame, Refusal)> = own;
        own.into_iter().next().map(|(_, what)| what)
    }

    /// Whether an address is below the control stack, where no module comes.
    pub(crate) fn is_control_guard(&self, address: u64) -> bool {
        (self.private.0..self.private.control()).contains(&address)
    }

    /// What lies below the control stack for handlers of the host.
    pub(crate) fn room(&self) -> ops::Range<u64> {
        self.private.room()..self.private.control()
    }

    /// The control stack.
    pub(crate) fn control(&self) -> ops::Range<u64> {
        self.private.control()..self.private.control() + CONTROL
    }
}
