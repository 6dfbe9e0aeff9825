//! A lock that one thread may take again and again without an atomic instruction, which costs more than a short decision.
//!
//! ```text
//!   the thread that has the bias              another one
//!   ------------------------------------      -----------------------------------------
//!   busy = yes                                takes the turn
//!   bias is mine: it has the lock             bias = none
//!   ... reads and writes ...                  membarrier: every thread passes a full barrier
//!   busy = no                                 waits until busy = no: it has the lock
//! ```
//!
//! If the thread's look at the bias comes before the barrier, so does its `busy = yes`, and the other one waits. If it comes behind, the
//! thread finds no bias, and takes the turn as anybody does. Only `membarrier` makes that true without a fence of the thread, as in
//! `inside.rs` of the table.
//!
//! `tests/keep.rs` has that as a model, in every order that the memory of x86 allows.
//!
//! A thread gets the bias after a number of turns in a row. Each time that the bias is taken away, the number doubles: where several
//! threads take turns, this is soon a plain lock.

use crate::gates::here;
use crate::memory;
use mullion_word_table::barrier;
use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::ops::{Deref, DerefMut};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering, compiler_fence};
use std::sync::{Mutex, MutexGuard};

/// So many turns in a row get a thread the bias at first.
const STREAK: u32 = 256;
const MOST: u32 = 1 << 24;

/// The lock, and what it guards.
pub struct Biased<T> {
    /// Who may take it by `busy` alone: an address of the thread's own. Changes under `turn`.
    bias: AtomicPtr<c_void>,
    /// Whether that thread has it. Only that thread writes it.
    busy: AtomicBool,
    turn: Mutex<Turns>,
    value: UnsafeCell<T>,
}

/// Who had the latest turns, and how many.
struct Turns {
    latest: *mut c_void,
    count: u32,
    wanted: u32,
}

// SAFETY: the address is compared, and not followed.
unsafe impl Send for Turns {}
// SAFETY: one thread at a time has the value, as the head of this file argues, and it may be any.
unsafe impl<T: Send> Sync for Biased<T> {}

/// Has the lock until it is dropped.
pub struct Guard<'a, T> {
    lock: &'a Biased<T>,
    /// None: by the bias.
    turn: Option<MutexGuard<'a, Turns>>,
}

impl<T> Biased<T> {
    /// Nobody has it.
    pub const fn new(value: T) -> Biased<T> {
        Biased {
            bias: AtomicPtr::new(ptr::null_mut()),
            busy: AtomicBool::new(false),
            turn: Mutex::new(Turns {
                latest: ptr::null_mut(),
                count: 0,
                wanted: STREAK,
            }),
            value: UnsafeCell::new(value),
        }
    }

    /// Waits until nobody else has it.
    ///
    /// # Panics
    /// If the thread has it by the bias already. Without the bias it would wait for ever.
    #[inline]
    pub fn lock(&self) -> Guard<'_, T> {
        let me = here().cast();
        if self.bias.load(Ordering::Relaxed) == me {
            assert!(!self.busy.load(Ordering::Relaxed), "a lock is taken twice");
            self.busy.store(true, Ordering::Relaxed);
            compiler_fence(Ordering::SeqCst);
            if self.bias.load(Ordering::Relaxed) == me {
                return Guard {
                    lock: self,
                    turn: None,
                };
            }
            self.busy.store(false, Ordering::Release);
        }
        self.take_turn(me)
    }

    /// As [`lock`](Self::lock), and nobody has the bias meanwhile: for a thread that copies the process.
    pub fn lock_whole(&self) -> Guard<'_, T> {
        self.take_turn(ptr::null_mut())
    }

    #[cold]
    fn take_turn(&self, me: *mut c_void) -> Guard<'_, T> {
        let mut turn = memory::lock(&self.turn);
        if !self.bias.load(Ordering::Relaxed).is_null() {
            self.bias.store(ptr::null_mut(), Ordering::Relaxed);
            barrier();
            while self.busy.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            turn.wanted = (turn.wanted * 2).min(MOST);
            turn.count = 0;
        }
        match turn.latest == me && !me.is_null() {
            true => turn.count += 1,
            false => (turn.latest, turn.count) = (me, 0),
        }
        Guard {
            lock: self,
            turn: Some(turn),
        }
    }

    /// The thread gets the bias at the end of its turn.
    #[cold]
    fn give(&self, turn: &mut Turns) {
        turn.count = 0;
        self.bias.store(turn.latest, Ordering::Release);
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the lock is this guard's.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the lock is this guard's, which is borrowed for it.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        match &mut self.turn {
            None => self.lock.busy.store(false, Ordering::Release),
            Some(turn) if turn.count >= turn.wanted => self.lock.give(turn),
            Some(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Host;

    #[test]
    fn threads_add_up_what_they_count() {
        let _registered = Host::new().expect("Linux, with address space");
        let sum = Biased::new(0u64);
        let rounds = 4 * u64::from(STREAK);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for round in 0..rounds {
                        *sum.lock() += 1;
                        if round % 700 == 0 {
                            std::thread::yield_now();
                        }
                    }
                });
            }
        });
        assert_eq!(*sum.lock(), 3 * rounds);
        // The thread that is left gets the bias, and loses it to the next one.
        let is_biased = || !sum.bias.load(Ordering::Relaxed).is_null();
        let mut wanted = 0;
        while !is_biased() {
            *sum.lock() += 1;
            wanted += 1;
            assert!(wanted < 1 << 20);
        }
        *sum.lock() += 1;
        std::thread::scope(|scope| {
            scope.spawn(|| *sum.lock() += 1);
        });
        assert!(!is_biased());
        drop(sum.lock_whole());
        assert_eq!(*sum.lock(), 3 * rounds + wanted + 2);
    }
}
