//! Waiting for a domain that is being started or restarted.
//!
//! One board for the process: such waiting is rare, and whoever is woken for another domain's news looks
//! again. A thread that waits says so before it looks; a thread that changes something looks whether
//! anybody waits after it has changed it. Of the two, one sees the other.

use crate::clock::TICK;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

static WAITING: AtomicUsize = AtomicUsize::new(0);
static NEWS: Mutex<u64> = Mutex::new(0);
static TOLD: Condvar = Condvar::new();

/// Something has changed that others may wait for.
#[inline]
pub(crate) fn tell() {
    if WAITING.load(Ordering::SeqCst) != 0 {
        wake();
    }
}

#[cold]
fn wake() {
    let mut news = NEWS.lock().unwrap_or_else(PoisonError::into_inner);
    *news = news.wrapping_add(1);
    TOLD.notify_all();
}

/// Looks until there is an answer, `at_most` so long. It looks at every tick too, since not everything is
/// told: a time limit is not.
#[cold]
pub(crate) fn wait<T>(at_most: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let begun = Instant::now();
    let _waiting = Waiting::new();
    loop {
        let seen = *NEWS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(answer) = look() {
            return Some(answer);
        }
        let left = at_most.checked_sub(begun.elapsed())?;
        let news = NEWS.lock().unwrap_or_else(PoisonError::into_inner);
        if *news == seen {
            let woken = TOLD.wait_timeout(news, left.min(TICK));
            drop(woken.unwrap_or_else(PoisonError::into_inner));
        }
    }
}

/// Looks until there is an answer, `at_most` so long, at what nobody tells of: often at first, then
/// twenty times in a millisecond.
pub fn until<T>(at_most: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let begun = Instant::now();
    for looks in 0_u32.. {
        if let Some(answer) = look() {
            return Some(answer);
        }
        if begun.elapsed() >= at_most {
            return None;
        }
        match looks {
            0..100 => std::thread::yield_now(),
            _ => std::thread::sleep(Duration::from_micros(50)),
        }
    }
    None
}

struct Waiting;

impl Waiting {
    fn new() -> Self {
        WAITING.fetch_add(1, Ordering::SeqCst);
        Self
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        WAITING.fetch_sub(1, Ordering::SeqCst);
    }
}
