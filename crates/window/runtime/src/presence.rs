//! A value that many threads use at the same time, and that is changed only while
//! nobody does. Nobody waits: to change it while it is used is refused, and so is to
//! use it while it is changed.
//!
//! As a lock for readers this would be two locked instructions for each use, which take
//! as long as half a call. Uses are frequent and changes are not, so a change pays for
//! both, by a barrier on every processor that runs the process (membarrier):
//!
//! | use | change |
//! | --- | --- |
//! | note in a place of this thread's what is used | say that it is being looked at |
//! | (compiler barrier) | membarrier: every thread passes a full barrier |
//! | look whether it is being changed; if not, go on | look at all places; if nobody is there, go on |
//!
//! Of the two, one sees the other. Where the thread passes the barrier before its note, it looks later than
//! that and sees the change. Where behind, the change sees the note. Who wants to wait for users to leave
//! closes it first ([`Used::close`]): new users are refused, those who use it already may use it again.
//!
//! Without membarrier (a kernel before 4.14, or a filter of system calls) every use has a
//! full barrier of its own.

use crate::barrier::membarrier;
use crate::news;
use std::cell::{Cell, UnsafeCell};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering, compiler_fence, fence};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// What a thread can use at the same time with a place for each. One cache line, with
/// what is behind them.
const PLACES: usize = 7;

/// A value that is used by many, and changed while nobody uses it.
#[derive(Debug, Default)]
pub struct Used<T> {
    value: UnsafeCell<T>,
    /// `IDLE`, `ASKED`, `CHANGED` or `CLOSED`.
    state: AtomicU32,
    /// Uses that have no place.
    others: AtomicUsize,
}

const IDLE: u32 = 0;
/// Somebody looks whether it is used.
const ASKED: u32 = 1;
/// Somebody changes it.
const CHANGED: u32 = 2;
/// Somebody waits to change it: for those alone who use it already.
const CLOSED: u32 = 3;

// SAFETY: it hands out shared references to several threads, and an exclusive one to
// one thread at a time, which need not be the one that made the value.
unsafe impl<T: Send + Sync> Sync for Used<T> {}

/// What one thread uses.
#[repr(align(64))]
struct Places {
    used: [AtomicPtr<()>; PLACES],
    /// There is no membarrier.
    fences: bool,
}

/// Those of all threads. They stay where they are: a thread that ends leaves them to the next.
static ALL: Mutex<Threads> = Mutex::new(Threads {
    all: Vec::new(),
    free: Vec::new(),
});

struct Threads {
    all: Vec<&'static Places>,
    free: Vec<&'static Places>,
}

thread_local! {
    static HERE: Cell<Option<&'static Places>> = const { Cell::new(None) };
    static OWNER: Owner = const { Owner };
}

/// Gives the thread's places back when it ends.
struct Owner;

impl Drop for Owner {
    fn drop(&mut self) {
        let empty = |places: &&Places| {
            let mut used = places.used.iter();
            used.all(|place| place.load(Ordering::Relaxed).is_null())
        };
        // With something in them, they stay nobody's: a use that has been forgotten, or
        // one that ends later in this thread's end.
        if let Some(places) = HERE.take().filter(empty) {
            threads().free.push(places);
        }
    }
}

impl<T> Used<T> {
    /// A value that nobody uses yet.
    pub const fn new(value: T) -> Self {
        Self {
            value: UnsafeCell::new(value),
            state: AtomicU32::new(IDLE),
            others: AtomicUsize::new(0),
        }
    }

    /// Uses the value; `None` while it is being changed, or is closed and this thread does not use it.
    #[inline]
    pub fn enter(&self) -> Option<Using<'_, T>> {
        let Some(places) = HERE.get() else {
            return self.enter_anew();
        };
        let mut all = places.used.iter();
        let Some(place) = all.find(|place| place.load(Ordering::Relaxed).is_null()) else {
            return self.enter_without_place();
        };
        place.store(self.name(), Ordering::Relaxed);
        if places.fences {
            fence(Ordering::SeqCst);
        }
        compiler_fence(Ordering::SeqCst);
        // As long as `using` lives the place has the value's name.
        let using = self.using(Some(place));
        match self.state.load(Ordering::Acquire) {
            IDLE => Some(using),
            _ => {
                drop(using);
                self.enter_again()
            }
        }
    }

    /// As [`Used::enter`], waiting for a change to end, `at_most` so long, unless `give_up` says otherwise.
    pub fn enter_within(
        &self,
        at_most: Duration,
        mut give_up: impl FnMut() -> bool,
    ) -> Option<Using<'_, T>> {
        let look = || match self.enter() {
            None if give_up() => Some(None),
            None => None,
            entered => Some(entered),
        };
        news::wait(at_most, look).flatten()
    }

    /// As [`Used::enter`], and while it is closed too: for who keeps its users from leaving.
    pub fn enter_closed(&self) -> Option<Using<'_, T>> {
        loop {
            self.others.fetch_add(1, Ordering::SeqCst);
            let using = self.using(None);
            match self.state.load(Ordering::SeqCst) {
                IDLE | CLOSED => return Some(using),
                CHANGED => return None,
                _ => {
                    drop(using);
                    std::thread::yield_now();
                }
            }
        }
    }

    /// Changes the value; `None` while somebody uses or changes it, or waits to.
    pub fn change(&self) -> Option<Changing<'_, T>> {
        self.change_from(IDLE)
    }

    /// Closes the value to all but those who use it already, until the answer is dropped. `None` while
    /// somebody changes it, or has closed it.
    pub fn close(&self) -> Option<Closed<'_, T>> {
        self.leave_for(IDLE, CLOSED).then(|| Closed { of: self })
    }

    /// Whether this thread uses it, as far as it has had a place for that.
    #[must_use]
    pub fn is_used_here(&self) -> bool {
        let name = self.name();
        let is_there = |place: &AtomicPtr<()>| place.load(Ordering::Relaxed) == name;
        HERE.get()
            .is_some_and(|places| places.used.iter().any(is_there))
    }

    /// From one state to another; whether it was there. While somebody asks, nothing is known.
    fn leave_for(&self, from: u32, to: u32) -> bool {
        while let Err(state) =
            self.state
                .compare_exchange(from, to, Ordering::SeqCst, Ordering::Acquire)
        {
            if state != ASKED {
                return false;
            }
            std::thread::yield_now();
        }
        true
    }

    fn change_from(&self, before: u32) -> Option<Changing<'_, T>> {
        if !self.leave_for(before, ASKED) {
            return None;
        }
        // Asking failed only if it is not what this process has registered for: then
        // nothing is known, and the answer must be no.
        let asked = !has_membarrier() || membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED);
        fence(Ordering::SeqCst);
        let name = self.name();
        let is_there = |place: &AtomicPtr<()>| place.load(Ordering::Acquire) == name;
        let used = !asked
            || self.others.load(Ordering::Acquire) != 0
            || threads()
                .all
                .iter()
                .any(|places| places.used.iter().any(is_there));
        let state = if used { before } else { CHANGED };
        self.state.store(state, Ordering::Release);
        (!used).then(|| Changing { of: self, before })
    }

    /// What stands in places for it. A value that moves has been changed, and is not used.
    #[inline]
    fn name(&self) -> *mut () {
        ptr::from_ref(self).cast_mut().cast()
    }

    #[inline]
    fn using(&self, place: Option<&'static AtomicPtr<()>>) -> Using<'_, T> {
        Using {
            of: self,
            place,
            thread: PhantomData,
        }
    }

    /// The thread's first use of anything.
    #[cold]
    fn enter_anew(&self) -> Option<Using<'_, T>> {
        // Whoever uses something in the very end of a thread needs no place.
        match OWNER.try_with(|_| HERE.set(Some(new_places()))) {
            Ok(()) => self.enter(),
            Err(_) => self.enter_without_place(),
        }
    }

    /// Somebody changes it, or asks whether it is used.
    #[cold]
    fn enter_again(&self) -> Option<Using<'_, T>> {
        // The thread that asks is another one, and waits for nobody.
        while self.state.load(Ordering::Acquire) == ASKED {
            std::thread::yield_now();
        }
        match self.state.load(Ordering::Acquire) {
            CHANGED => None,
            // Nobody changes it before this thread has left it.
            CLOSED if self.is_used_here() => self.enter_closed(),
            CLOSED => None,
            _ => self.enter(),
        }
    }

    #[cold]
    fn enter_without_place(&self) -> Option<Using<'_, T>> {
        self.others.fetch_add(1, Ordering::SeqCst);
        let using = self.using(None);
        match self.state.load(Ordering::SeqCst) {
            IDLE => Some(using),
            CHANGED => None,
            CLOSED if self.is_used_here() => Some(using),
            CLOSED => None,
            _ => {
                drop(using);
                std::thread::yield_now();
                self.enter_without_place()
            }
        }
    }
}

impl<T> Drop for Used<T> {
    /// A use that was forgotten, and not ended, has left the name in a place. Whatever lies at
    /// this address next is not used by that.
    fn drop(&mut self) {
        let name = self.name();
        let all = threads();
        let places = all.all.iter().flat_map(|places| &places.used);
        for place in places.filter(|place| place.load(Ordering::Relaxed) == name) {
            // Its thread has nothing to do with a place that is not empty.
            place.store(ptr::null_mut(), Ordering::Release);
        }
    }
}

/// Somebody uses the value: it stays as it is.
#[derive(Debug)]
pub struct Using<'a, T> {
    of: &'a Used<T>,
    place: Option<&'static AtomicPtr<()>>,
    /// The place is this thread's, who alone looks for an empty one.
    thread: PhantomData<*const ()>,
}

// SAFETY: several threads may look at the value through it, as at any shared reference;
// only its owner, on its thread, ends it.
unsafe impl<T: Send + Sync> Sync for Using<'_, T> {}

impl<T> Deref for Using<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: nobody has an exclusive reference: `change` gives none while the place
        // or the count says that this one is there (see the head of the file).
        unsafe { &*self.of.value.get() }
    }
}

impl<T> Drop for Using<'_, T> {
    #[inline]
    fn drop(&mut self) {
        match self.place {
            Some(place) => place.store(ptr::null_mut(), Ordering::Release),
            None => {
                self.of.others.fetch_sub(1, Ordering::Release);
            }
        }
    }
}

/// Somebody changes the value: nobody else sees it.
#[derive(Debug)]
pub struct Changing<'a, T> {
    of: &'a Used<T>,
    /// The state to be in again.
    before: u32,
}

/// Nobody begins to use the value but those who use it already.
#[derive(Debug)]
pub struct Closed<'a, T> {
    of: &'a Used<T>,
}

impl<T> Closed<'_, T> {
    /// Changes the value, which is closed again afterwards; `None` while somebody uses it.
    #[must_use]
    pub fn change(&self) -> Option<Changing<'_, T>> {
        self.of.change_from(CLOSED)
    }
}

impl<T> Drop for Closed<'_, T> {
    fn drop(&mut self) {
        self.of.leave_for(CLOSED, IDLE);
        news::tell();
    }
}

impl<T> Deref for Changing<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: this is the only one, and nobody uses the value: see `change`.
        unsafe { &*self.of.value.get() }
    }
}

impl<T> DerefMut for Changing<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this is the only one, borrowed alone, and nobody uses the value: see `change`.
        unsafe { &mut *self.of.value.get() }
    }
}

impl<T> Drop for Changing<'_, T> {
    fn drop(&mut self) {
        self.of.state.store(self.before, Ordering::SeqCst);
        news::tell();
    }
}

fn threads() -> MutexGuard<'static, Threads> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

fn new_places() -> &'static Places {
    let fences = !has_membarrier();
    let mut threads = threads();
    if let Some(places) = threads.free.pop() {
        return places;
    }
    let places: &'static Places = Box::leak(Box::new(Places {
        used: [const { AtomicPtr::new(ptr::null_mut()) }; PLACES],
        fences,
    }));
    threads.all.push(places);
    places
}

/// Whether the process may ask for barriers. Asked before the first use or change. Miri has none.
fn has_membarrier() -> bool {
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    if cfg!(miri) {
        return false;
    }
    *REGISTERED.get_or_init(|| membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    const CHANGES: u64 = if cfg!(miri) { 10 } else { 300 };

    #[test]
    fn it_is_changed_only_while_nobody_uses_it() {
        let value = Used::new(1);
        let uses: Vec<_> = (0..3 * PLACES).map(|_| value.enter().unwrap()).collect();
        assert_eq!(*uses[2 * PLACES], 1);
        for using in uses {
            assert!(value.change().is_none());
            drop(using);
        }
        let mut changing = value.change().unwrap();
        *changing = 2;
        assert!(value.enter().is_none());
        assert!(value.change().is_none());
        assert!(std::thread::scope(|scope| scope
            .spawn(|| value.enter().is_none())
            .join()
            .unwrap()));
        drop(changing);
        assert_eq!(*value.enter().unwrap(), 2);
    }

    #[test]
    fn a_closed_value_is_for_those_who_use_it() {
        let value = Used::new(1);
        let using = value.enter().unwrap();
        let closed = value.close().unwrap();
        assert!(value.close().is_none() && value.change().is_none());
        let again = value.enter().expect("nested");
        let enters = || value.enter().is_some();
        let other = || std::thread::scope(|scope| scope.spawn(enters).join().unwrap());
        assert!(!other());
        assert!(closed.change().is_none(), "in use");
        drop((using, again));
        assert!(!value.is_used_here());
        assert!(value.enter().is_none(), "this thread has left it");
        *closed.change().expect("nobody is there") = 2;
        assert!(!other(), "closed again");
        drop(closed);
        assert!(other());
        assert_eq!(*value.enter().unwrap(), 2);
    }

    /// A change that is refused leaves alone what another thread is changing by then.
    #[test]
    fn changes_by_several_threads_exclude_each_other() {
        let value = Used::new(0u64);
        let inside = AtomicUsize::new(0);
        let changes = || {
            for round in 0..20 * CHANGES {
                if round % 3 == 0 {
                    drop(value.enter());
                }
                if let Some(mut changing) = value.change() {
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two at once");
                    *changing += 1;
                    std::thread::yield_now();
                    inside.fetch_sub(1, Ordering::SeqCst);
                }
            }
        };
        std::thread::scope(|scope| {
            (0..3).for_each(|_| drop(scope.spawn(changes)));
        });
    }

    #[test]
    fn one_value_is_not_another() {
        let (one, two) = (Used::new(1), Used::new(2));
        let _using = one.enter().unwrap();
        assert!(two.change().is_some());
    }

    #[test]
    fn a_use_that_is_forgotten_ends_with_the_value() {
        let mut place = std::mem::MaybeUninit::<Used<u8>>::uninit();
        for round in 0..2 * PLACES {
            let value = place.write(Used::new(1));
            assert!(value.change().is_some(), "round {round}");
            std::mem::forget(value.enter().unwrap());
            assert!(value.change().is_none());
            // SAFETY: it was just written.
            unsafe { place.assume_init_drop() };
        }
    }

    /// Two numbers that are always alike to whoever may look, though a change makes
    /// them different for a while: by several threads, with and without places.
    #[test]
    fn nobody_sees_a_change_that_is_half_done() {
        let value = Used::new((0u64, 0u64));
        let stop = AtomicBool::new(false);
        let (mut changes, mut refused) = (0, 0);
        std::thread::scope(|scope| {
            for others in [0, 0, PLACES] {
                let (value, stop) = (&value, &stop);
                scope.spawn(move || {
                    let full: Vec<_> = (0..others).map(|_| Used::new(())).collect();
                    let _full: Vec<_> = full.iter().map(Used::enter).collect();
                    while !stop.load(Ordering::Relaxed) {
                        for _ in 0..100 {
                            if let Some(using) = value.enter() {
                                let both = std::hint::black_box(&*using);
                                assert_eq!(both.0, both.1);
                            }
                        }
                        std::thread::yield_now();
                    }
                });
            }
            while changes < CHANGES {
                match value.change() {
                    None => refused += 1,
                    Some(mut both) => {
                        both.0 += 1;
                        std::hint::spin_loop();
                        both.1 += 1;
                        changes += 1;
                    }
                }
            }
            stop.store(true, Ordering::Relaxed);
        });
        assert_eq!(*value.enter().unwrap(), (CHANGES, CHANGES));
        println!("{refused} changes refused");
    }

    #[test]
    fn a_thread_that_ends_gives_its_places_back() {
        let value = Used::new(());
        for _ in 0..20 {
            std::thread::scope(|scope| {
                scope.spawn(|| drop(value.enter().unwrap()));
            });
        }
        // Other tests run meanwhile, a few threads each.
        assert!(threads().all.len() < 20);
        assert!(value.change().is_some());
    }
}
