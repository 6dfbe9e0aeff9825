//! What was granted for a call stays in the table when the call is over, as long as no code of the domain runs. The
//! next call may grant the same. So a call that repeats the one before it writes nothing.
//!
//! ```text
//!   call, grants p        over          call, grants p          over        call, grants q
//!   |-- in force --------|-- kept -----|-- in force, reused ---|-- kept ---|-- p taken back, q in force --
//! ```
//!
//! One thread may keep: the domain's *bias* is its seat. It reuses without a lock. Whoever else wants to enter the
//! domain, or changes what it has, takes the bias away first:
//!
//! ```text
//!   the biased thread                          another one
//!   ------------------------------------       -----------------------------------------
//!   depth = 1                                  bias = none
//!   bias is mine: what is kept is mine         membarrier: every thread passes a full barrier
//!   what is kept becomes this call's           depth is 0: takes back what is kept
//!   settled = 1                                settled is 1: leaves it to the thread
//!   ... the call ...                           else: looks again
//!   settled = 0
//!   depth = 0
//!   bias is not mine: takes back
//! ```
//!
//! Depth 1 tells only that the thread is at the gate or behind it. The call may have other arguments: then what is kept is still that of
//! the call before. So the thread says behind its decision that what is kept is what its call is granted (`settled`), and
//! takes that word back before it leaves. The other one waits until it is said, or the thread has left. The decision is made by the thread
//! alone: where only the places differ, what is kept is moved to them ([`shift`]).
//!
//! A third one may come between that and the taking back. It finds no bias, but an `owner`, and does the same: it waits for
//! the other one's turn. So nobody enters before all is taken back, or left to a thread that is inside.
//!
//! If the other one reads depth 0, the thread's next call comes behind the barrier, and finds no bias. If it reads 1,
//! the thread's look at the bias behind `depth = 0` comes behind the barrier, too. Either may find that the other one has
//! taken back already: `owner` says so, under the lock.
//!
//! A thread gets the bias after a number of calls with grants between which nobody else had it, if nobody else is
//! inside. It sets the bias and looks at the depths of the others. They set their depth and look at the bias, with the
//! same barrier between.
//!
//! `tests/keep.rs` has the picture as a model, in every order that the memory of x86 allows.

use crate::core::{Core, SeatAt};
use crate::gates::{Inner, Registers, Seat};
use crate::holder::Holder;
use crate::measure::Arguments;
use crate::memory::lock;
use crate::policy::FunctionPolicy;
use crate::rights::{self, Decider, GrantError, Raised, words};
use crate::thread;
use crate::wanted::{Keep, Kept, Wanted};
use crate::world::world;
use mullion_word_table::barrier;
use std::ptr;
use std::sync::atomic::{Ordering, compiler_fence};

/// So many calls in a row get a thread the bias.
const STREAK: u64 = 64;

/// What ends with a call.
#[must_use = "end it"]
pub(crate) enum Granted {
    /// It is kept.
    Kept,
    /// What is at the seat from here on.
    Raised(usize),
}

impl Keep {
    /// In front of an entry that is counted already: nobody else's rights are kept any more.
    #[inline]
    pub(crate) fn enter(&self, core: &Core, seat: *mut Seat) {
        let bias = core.inner.bias.load(Ordering::Acquire);
        // Without a bias, too, something may be kept still: whoever has taken the bias is about to take it back.
        if bias != seat && (!bias.is_null() || self.is_kept()) {
            self.settle_for(core, seat);
        }
    }

    /// Grants what a call wants. `may_keep`: the thread has no other call in the domain, which has no instances.
    ///
    /// # Safety
    /// The seat is the thread's in this domain, and its depth is not 0.
    #[inline]
    pub(crate) unsafe fn grant(
        &self,
        core: &'static Core,
        holder: &'static Holder,
        seat: *mut Seat,
        wanted: &Wanted,
        may_keep: bool,
    ) -> Result<Granted, GrantError> {
        if may_keep {
            // The bias went while the thread was at the gate.
            self.leave(core, seat);
        }
        if !may_keep || !wanted.is_small() || !self.is_mine(core, seat, wanted) {
            if may_keep && core.inner.bias.load(Ordering::Relaxed) == seat {
                // SAFETY: the thread has the bias and is inside, so `kept` is its own (see the head of this file), as is the seat.
                unsafe {
                    (*seat).repeated = 0;
                    (*self.kept.get()).take_back();
                }
            } else if may_keep {
                // The bias may have gone behind the first look.
                self.leave(core, seat);
            }
            // SAFETY: the seat is the thread's own, and nobody else refers to what is raised there.
            let raised = unsafe { &mut (*seat).raised };
            let mark = raised.len();
            raise_all(holder, wanted, raised)?;
            return Ok(Granted::Raised(mark));
        }
        // SAFETY: the thread has the bias and is inside, so `kept` is its own (see the head of this file), as is the seat.
        let (kept, seat) = unsafe { (&mut *self.kept.get(), &mut *seat) };
        let edition = core.inner.edition.load(Ordering::Acquire);
        if kept.edition != edition || kept.wanted != *wanted {
            seat.repeated = 0;
            kept.change(core, wanted, edition)?;
            seat.edition = edition;
        }
        Ok(Granted::Kept)
    }

    /// Nothing is kept for this thread from here on: what the module may do is what it has without this call.
    ///
    /// # Safety
    /// As [`grant`](Self::grant), and the thread has no other call in the domain.
    #[cold]
    pub(crate) unsafe fn give_up(&self, core: &Core, seat: *mut Seat) {
        self.leave(core, seat);
        if core.inner.bias.load(Ordering::Relaxed) == seat {
            // SAFETY: the thread has the bias and is inside, so `kept` is its own (see the head of this file), as is the seat.
            unsafe {
                (*seat).repeated = 0;
                (*self.kept.get()).take_back();
            }
        } else {
            // The bias may have gone behind the first look.
            self.leave(core, seat);
        }
    }

    /// Whether something may be kept that is not for the owner's own call. `owner` is read first, and written last.
    #[inline]
    fn is_kept(&self) -> bool {
        !self.owner.load(Ordering::Acquire).is_null() && !self.is_left.load(Ordering::Acquire)
    }

    /// Whether the thread has the bias, or gets it now.
    #[inline]
    fn is_mine(&self, core: &Core, seat: *mut Seat, wanted: &Wanted) -> bool {
        let bias = core.inner.bias.load(Ordering::Relaxed);
        if bias == seat {
            return true;
        }
        // SAFETY: the seat is the thread's own.
        let streak = unsafe { &mut (*seat).streak };
        *streak += u64::from(wanted.count > 0);
        if *streak < STREAK || wanted.count == 0 {
            return false;
        }
        *streak = 0;
        self.take(core, seat)
    }

    #[cold]
    fn take(&self, core: &Core, seat: *mut Seat) -> bool {
        let _turn = lock(&self.turn);
        let none = ptr::null_mut();
        let (yes, no) = (Ordering::AcqRel, Ordering::Relaxed);
        if core
            .inner
            .bias
            .compare_exchange(none, seat, yes, no)
            .is_err()
        {
            return false;
        }
        barrier();
        let is_alone = lock(&core.seats).iter().all(|other| {
            // SAFETY: a seat on the list lives, and its depth is atomic.
            ptr::eq(other.0, seat) || unsafe { (*other.0).depth.load(Ordering::Acquire) } == 0
        });
        if !is_alone {
            // Or another one has taken it already.
            let _taken = core.inner.bias.compare_exchange(seat, none, yes, no);
            return false;
        }
        self.take_back();
        // SAFETY: the seat is the thread's own. Nothing is kept for it now.
        unsafe { (*seat).repeated = 0 };
        self.owner.store(seat, Ordering::Release);
        true
    }

    /// With the turn: what is kept goes.
    fn take_back(&self) {
        if self.owner.load(Ordering::Relaxed).is_null() {
            return;
        }
        // SAFETY: the caller has the turn. The owner does not have the bias, or is outside and finds that it does not
        // when it comes back, or is the caller.
        let kept = unsafe { &mut *self.kept.get() };
        kept.take_back();
        // Only now: who finds no owner enters.
        self.owner.store(ptr::null_mut(), Ordering::Release);
        self.is_left.store(false, Ordering::Release);
    }

    /// Behind the end of the outermost call, with the depth at 0.
    #[inline]
    pub(crate) fn leave(&self, core: &Core, seat: *mut Seat) {
        compiler_fence(Ordering::SeqCst);
        let is_owner = self.owner.load(Ordering::Relaxed) == seat;
        if is_owner && core.inner.bias.load(Ordering::Relaxed) != seat {
            self.take_back_of(seat);
        }
    }

    #[cold]
    fn take_back_of(&self, seat: *mut Seat) {
        let _turn = lock(&self.turn);
        if self.owner.load(Ordering::Relaxed) == seat {
            self.take_back();
        }
    }

    /// A thread's seat ends; it is outside.
    pub(crate) fn forget(&self, core: &Core, seat: *mut Seat) {
        let none = ptr::null_mut();
        let (yes, no) = (Ordering::AcqRel, Ordering::Relaxed);
        let _was = core.inner.bias.compare_exchange(seat, none, yes, no);
        self.take_back_of(seat);
    }

    /// Nothing is kept when this returns, but what a call that runs was granted: its thread takes that back when it leaves.
    pub(crate) fn settle(&self, core: &Core) {
        let own = thread::known_seat(core, None).unwrap_or(ptr::null_mut());
        self.settle_for(core, own);
    }

    /// As [`settle`](Self::settle); the thread's own seat.
    fn settle_for(&self, core: &Core, own: *mut Seat) {
        let biased = core.inner.bias.swap(ptr::null_mut(), Ordering::AcqRel);
        if biased.is_null() && !self.is_kept() {
            return;
        }
        // Also where another one has taken the bias: its barrier may be still to come.
        barrier();
        while !self.settle_once(core, own) {
            std::thread::yield_now();
        }
    }

    /// Whether it is settled: otherwise the owner's thread is at a gate, and about to take back, or to leave.
    fn settle_once(&self, core: &Core, own: *mut Seat) -> bool {
        let _turn = lock(&self.turn);
        let owner = self.owner.load(Ordering::Relaxed);
        // With the bias it is a later one, that has begun to keep behind this call's beginning.
        if owner.is_null() || core.inner.bias.load(Ordering::Relaxed) == owner {
            return true;
        }
        // The owner is on the list: it takes back what it keeps before it goes.
        let seats = lock(&core.seats);
        let seat = seats.iter().find(|seat| ptr::eq(seat.0, owner));
        // SAFETY: a seat on the list lives, and both are atomic. The depth is read first.
        let is_inside = seat.map(|seat| unsafe {
            let is_outside = (*seat.0).depth.load(Ordering::Acquire) == 0;
            (!is_outside).then(|| (*seat.0).settled.load(Ordering::Acquire) != 0)
        });
        match is_inside.flatten() {
            None => self.take_back(),
            Some(false) if owner != own => return false,
            Some(_) => self.is_left.store(true, Ordering::Release),
        }
        true
    }
}

impl Kept {
    #[cold]
    fn change(
        &mut self,
        core: &'static Core,
        wanted: &Wanted,
        edition: u64,
    ) -> Result<(), GrantError> {
        self.wanted.clear();
        let outcome = {
            let mut supervisor = world().supervisor();
            let pieces = wanted.pieces();
            rights::exchange(&mut supervisor, &core.holder, &mut self.raised, pieces)
        };
        if let Err(error) = outcome {
            self.take_back();
            return Err(error);
        }
        self.wanted.copy(wanted);
        self.edition = edition;
        Ok(())
    }

    fn take_back(&mut self) {
        self.wanted = Wanted::default();
        lower_to(&mut self.raised, 0);
    }

    /// Gives a call other words in the place of those that are kept, if the policy wants as many pieces for it. If this is not
    /// done, nothing is kept.
    #[inline]
    fn shift(
        &mut self,
        holder: &'static Holder,
        policy: &FunctionPolicy,
        registers: &Registers,
    ) -> bool {
        let arguments = Arguments {
            registers,
            caller: None,
            host: None,
            callee: None,
        };
        let mut decider = world().supervisor();
        let mut count = 0;
        for effect in &policy.effects {
            let Some((at, size, wanted)) = effect.lent() else {
                return false;
            };
            let address = registers.argument(at);
            let bytes = match arguments.bytes(size) {
                Ok(0) => continue,
                Ok(bytes) if address != 0 => bytes,
                Ok(_) => continue,
                Err(_) => return false,
            };
            let (range, piece) = (words(address, bytes), self.wanted.piece(count));
            let (Ok(range), Some((piece, permission))) = (range, piece) else {
                return false;
            };
            // Pieces without bytes are left out, so this one may have been another argument's.
            if permission != wanted {
                return false;
            }
            let now = (range.start(), range.count());
            if *piece != now {
                let raised = &mut self.raised[count];
                if !rights::shift(&mut decider, holder, raised, (range, permission)) {
                    return false;
                }
                *piece = now;
            }
            count += 1;
        }
        count == self.wanted.count
    }
}

fn raise_all(
    holder: &'static Holder,
    wanted: &Wanted,
    raised: &mut Vec<Raised>,
) -> Result<(), GrantError> {
    if wanted.count == 0 {
        return Ok(());
    }
    let mark = raised.len();
    let mut supervisor = world().supervisor();
    for (range, permission) in wanted.pieces() {
        let right = raised.push_mut(Raised::Already);
        if let Err(error) = rights::raise_into(&mut supervisor, holder, range, permission, right) {
            drop(supervisor);
            lower_to(raised, mark);
            return Err(error);
        }
    }
    Ok(())
}

impl Seat {
    /// Its thread ends. So do the calls that have not returned, and what they were granted.
    pub(crate) fn end_grants(&mut self) {
        lower_to(&mut self.raised, 0);
    }
}

/// Takes what is behind `mark` back.
fn lower_to(raised: &mut Vec<Raised>, mark: usize) {
    if raised.len() > mark {
        lower_with(&mut world().supervisor(), raised, mark);
    }
}

fn lower_with(supervisor: &mut Decider, raised: &mut Vec<Raised>, mark: usize) {
    while raised.len() > mark
        && let Some(right) = raised.pop()
    {
        rights::lower(supervisor, &right);
    }
}

/// In a copy of the process: what the calls of threads that are not there were granted goes, and what is kept for them.
///
/// # Safety
/// The seats are those of such threads, whose memory is there still, and this thread is the only one.
pub(crate) unsafe fn end_in_copy(core: &Core, seats: &[SeatAt], supervisor: &mut Decider) {
    for seat in seats {
        let seat = seat.0.cast_mut();
        // SAFETY: their memory is there still, and no thread runs that uses it. Both change with the supervisor's lock alone,
        // which nobody had at the copy.
        unsafe {
            lower_with(supervisor, &mut (*seat).raised, 0);
            if core.keep.owner.load(Ordering::Relaxed) == seat {
                let kept = &mut *core.keep.kept.get();
                kept.wanted = Wanted::default();
                lower_with(supervisor, &mut kept.raised, 0);
                core.keep.owner.store(ptr::null_mut(), Ordering::Relaxed);
                core.keep.is_left.store(false, Ordering::Relaxed);
            }
        }
        let none = ptr::null_mut();
        let (yes, no) = (Ordering::AcqRel, Ordering::Relaxed);
        let _was = core.inner.bias.compare_exchange(seat, none, yes, no);
    }
}

impl Granted {
    /// The call is over.
    ///
    /// # Safety
    /// The seat is the call's, of this thread.
    #[inline]
    pub(crate) unsafe fn end(self, seat: *mut Seat) {
        if let Granted::Raised(mark) = self {
            // SAFETY: the seat is this thread's, lives, and nobody else refers to what is raised there.
            lower_to(unsafe { &mut (*seat).raised }, mark);
        }
    }
}

/// A call of the host like the one before it, with other arguments: what is kept is what it is granted when this answers yes.
/// Otherwise nothing is kept.
// SAFETY: no other symbol has this name.
#[unsafe(export_name = "mullion_word_shift")]
pub(crate) extern "C" fn shift(seat: *mut Seat, registers: *const Registers) -> bool {
    // SAFETY: the gate gives the thread's own seat, and its own frame's registers. The thread has the bias and is inside, so what
    // is kept is its own. A policy lives as long as its domain's `Core`, for ever.
    let (core, seat, registers, policy) = unsafe {
        let policy = (*seat).policy.cast::<FunctionPolicy>().as_ref();
        ((*(*seat).inner).core(), &mut *seat, &*registers, policy)
    };
    // SAFETY: the thread has the bias and is inside, so what is kept is its own, and nobody else refers to it.
    let kept = unsafe { &mut *core.keep.kept.get() };
    let is_done = match policy {
        Some(policy) if seat.latest == seat.repeated => kept.shift(&core.holder, policy, registers),
        _ => false,
    };
    match is_done {
        true => seat.arguments = registers.integers,
        false => {
            seat.repeated = 0;
            kept.take_back();
        }
    }
    is_done
}

/// Behind a repeated call, if the thread has lost the bias meanwhile.
// SAFETY: no other symbol has this name.
#[unsafe(export_name = "mullion_word_take_back")]
pub(crate) extern "C" fn take_back(inner: *const Inner, seat: *mut Seat) {
    // SAFETY: the gate gives a domain, which lives for ever.
    let core = unsafe { (*inner).core() };
    core.keep.leave(core, seat);
}
