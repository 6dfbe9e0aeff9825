//! Memory that a module has lent. It went to a function of the host that works on it, or to another module that has it
//! as an argument. As long as such a call runs, nothing of it can be freed or handed over. That goes for another thread of the
//! module or by a call within that call. What lies there next would be somebody else's.
//!
//! ```text
//!   the thread that lends                        another one, that frees
//!   ------------------------------------         -----------------------------------------
//!   writes the loan at its seat                  takes the right away; threads pass a full barrier
//!   looks whether it has the right               looks at the loans of all seats
//!   calls
//!   takes the loan off
//! ```
//!
//! Either the second thread sees the loan, or the first one's look comes behind the barrier and finds no right. The barrier is
//! that of the revocation (`docs/word.md`). It is left out only where no other thread is registered. A thread
//! that registers makes one of its own, before it lends.
//!
//! A loan is written by its thread alone, without an atomic exchange. Its beginning is [`NOTHING`] while its end
//! changes, and the seat counts its loans. So a reader that sees the same beginning and the same count before and behind
//! the end has a loan that there was. The beginning alone would not do: bytes that are lent again and again, in turn with
//! others, bring it back.

use crate::memory::lock;
use std::hint;
use std::ops::Range;
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering, compiler_fence};

/// So many are at the seat itself. Calls with many pieces, or that nest deeply, have more.
const PLACES: usize = 24;

/// The beginning of a loan that is being written: no bytes meet it.
const NOTHING: u64 = u64::MAX;

/// The loans of a seat: a stack, as its calls are. Only its thread changes it. Those that have no place there are in [`MORE`].
#[repr(C)]
pub(crate) struct Loans {
    count: AtomicU64,
    places: [[AtomicU64; 2]; PLACES],
    /// How often a place was written.
    writes: AtomicU64,
}

/// Loans beyond the places of their seats, by the address of the seat's, each behind those before it.
static MORE: Mutex<Vec<(usize, Range<u64>)>> = Mutex::new(Vec::new());

impl Default for Loans {
    fn default() -> Loans {
        Loans {
            count: AtomicU64::new(0),
            places: [const { [const { AtomicU64::new(0) }; 2] }; PLACES],
            writes: AtomicU64::new(0),
        }
    }
}

impl Loans {
    /// How many there are: where a call's own begin.
    #[inline]
    pub(crate) fn mark(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Lends these bytes until [`end`](Self::end). The caller looks at the module's right behind this.
    #[inline]
    pub(crate) fn lend(&self, address: u64, bytes: u64) {
        let at = self.mark();
        let end = address.saturating_add(bytes);
        match self.places.get(at as usize) {
            Some([first, last]) => {
                let writes = self.writes.load(Ordering::Relaxed).wrapping_add(1);
                self.writes.store(writes, Ordering::Relaxed);
                // Whoever sees what is written from here on sees the count.
                first.store(NOTHING, Ordering::Release);
                last.store(end, Ordering::Release);
                first.store(address, Ordering::Release);
            }
            None => self.lend_more(address..end),
        }
        self.count.store(at + 1, Ordering::Release);
        // The look at the right comes behind it; the barrier is the other thread's.
        compiler_fence(Ordering::SeqCst);
    }

    #[cold]
    fn lend_more(&self, bytes: Range<u64>) {
        lock(&MORE).push((ptr::from_ref(self).addr(), bytes));
    }

    /// Takes those behind a mark off.
    #[inline]
    pub(crate) fn end(&self, mark: u64) {
        if self.mark() > PLACES as u64 {
            self.end_more(mark);
        }
        self.count.store(mark, Ordering::Release);
    }

    #[cold]
    fn end_more(&self, mark: u64) {
        let (own, mut seen) = (ptr::from_ref(self).addr(), PLACES as u64);
        lock(&MORE).retain(|(seat, _)| {
            seen += u64::from(*seat == own);
            *seat != own || seen <= mark
        });
    }

    /// Whether something of these bytes is among the first `limit` loans.
    pub(crate) fn touch(&self, bytes: &Range<u64>, limit: u64) -> bool {
        let meets = |first: u64, end: u64| first < bytes.end && bytes.start < end;
        let count = self.count.load(Ordering::Acquire).min(limit);
        let places = self.places.iter().take(count as usize);
        let mut places = places.map(|place| self.whole(place));
        if places.any(|(first, end)| meets(first, end)) {
            return true;
        }
        if count <= PLACES as u64 {
            return false;
        }
        let (own, more) = (ptr::from_ref(self).addr(), lock(&MORE));
        let more = more.iter().filter(|(seat, _)| *seat == own);
        let mut more = more.take(count as usize - PLACES);
        more.any(|(_, lent)| meets(lent.start, lent.end))
    }

    /// A loan's beginning and end, as they were at one time: the count changes before the beginning, and the beginning
    /// before the end and behind it.
    fn whole(&self, [first, last]: &[AtomicU64; 2]) -> (u64, u64) {
        loop {
            let writes = self.writes.load(Ordering::Acquire);
            let begin = first.load(Ordering::Acquire);
            let end = last.load(Ordering::Acquire);
            let same = first.load(Ordering::Acquire) == begin;
            if same && self.writes.load(Ordering::Relaxed) == writes {
                return (begin, end);
            }
            hint::spin_loop();
        }
    }
}

impl Drop for Loans {
    /// A call that the host has left by a jump has taken nothing off.
    fn drop(&mut self) {
        self.end(0);
    }
}

/// What the seats of a module say of some bytes.
#[derive(Clone, Copy)]
pub(crate) struct Lent {
    /// Something of them is lent.
    pub(crate) is_lent: bool,
    /// No other thread has a seat in the module, so none lends anything meanwhile.
    pub(crate) is_alone: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn loans_are_a_stack_however_many() {
        let loans = Loans::default();
        for at in 0..100 {
            assert_eq!(loans.mark(), at);
            loans.lend(0x1000 + 16 * at, 8);
        }
        let lent = |at: u64| loans.touch(&(at..at + 4), u64::MAX);
        for at in 0..100 {
            let place = 0x1000 + 16 * at;
            assert!(lent(place) && lent(place + 4) && lent(place - 3) && !lent(place + 8));
            assert!(
                !loans.touch(&(place..place + 8), at),
                "only those before it"
            );
        }
        for mark in [70, 24, 23, 5, 0] {
            loans.end(mark);
            for at in 0..100 {
                assert_eq!(lent(0x1000 + 16 * at), at < mark, "{at} {mark}");
            }
        }
        loans.lend(0x9000, 1);
        assert!(lent(0x9000) && lent(0x8ffd) && !lent(0x9001));
    }

    /// What is lent all the time is seen all the time, and what never is, never: also where a place has one loan's
    /// beginning and another one's end for a moment.
    #[test]
    fn a_reader_sees_loans_whole() {
        let (loans, done) = (Loans::default(), AtomicBool::new(false));
        loans.lend(0x4000, 64);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 0..200_000u64 {
                    let mark = loans.mark();
                    loans.lend(if round % 2 == 0 { 0x1000 } else { 0x10_0000 }, 16);
                    loans.end(mark);
                }
                done.store(true, Ordering::Release);
            });
            while !done.load(Ordering::Acquire) {
                assert!(loans.touch(&(0x4020..0x4024), u64::MAX));
                assert!(!loans.touch(&(0x8000..0x9000), u64::MAX));
            }
        });
    }
}
