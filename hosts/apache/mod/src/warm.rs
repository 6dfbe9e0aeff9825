//! Fields of requests that modules have written of late. They are granted all at once when a request begins. They are taken back
//! all at once when its pool goes, because each taking back waits for threads.

use crate::apr;
use crate::frame::Root;
use crate::layout::{self, read};
use crate::walled::{Walled, lock};
use mullion_word_runtime::Granted;
use std::ffi::c_int;
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// Modules that have written a field of a request, in the order in which they first did. Beyond so many, fields are granted
/// when they are written, and not before.
const MOST: usize = 256;
static ALL: [AtomicPtr<Walled>; MOST] = [const { AtomicPtr::new(std::ptr::null_mut()) }; MOST];
static COUNT: AtomicUsize = AtomicUsize::new(0);
static TURN: Mutex<()> = Mutex::new(());

/// So many grants of one request. What is beyond them is granted when it is written.
const ROOM: usize = 24;

/// What was granted for a request; lies in its pool.
struct Lent {
    granted: [Option<Granted>; ROOM],
}

/// From now on the fields that the module has written are granted when a request begins.
pub(crate) fn add(walled: &'static Walled) {
    let _turn = lock(&TURN);
    let count = COUNT.load(Ordering::Relaxed);
    let new = std::ptr::from_ref(walled).cast_mut();
    let mut known = ALL.iter().take(count);
    if known.any(|one| one.load(Ordering::Relaxed) == new) {
        return;
    }
    if let Some(place) = ALL.get(count) {
        place.store(new, Ordering::Relaxed);
        COUNT.store(count + 1, Ordering::Release);
    }
}

/// A request begins: the core's hook `create_request`.
pub(crate) extern "C" fn begin(r: u64) -> c_int {
    let count = COUNT.load(Ordering::Acquire);
    let mut lent: Option<Lent> = None;
    let mut next = 0;
    for walled in ALL.iter().take(count) {
        // SAFETY: a place below the count has a module, which is never freed.
        let walled: &'static Walled = unsafe { &*walled.load(Ordering::Relaxed) };
        if walled.domain.is_ended() {
            continue;
        }
        // SAFETY: the core passes a request with its pool and its configurations.
        let (_, pieces) = unsafe { walled.pieces(Root::Request(r)) };
        for (at, piece) in pieces {
            if next < ROOM
                && piece.is_warm()
                && let Ok(granted) = walled.grant(at + piece.at, piece.bytes)
            {
                let lent = lent.get_or_insert_with(|| Lent {
                    granted: [const { None }; ROOM],
                });
                lent.granted[next] = Some(granted);
                next += 1;
            }
        }
    }
    if let Some(lent) = lent {
        let (plain, child) = (end as *const () as usize, nothing as *const () as usize);
        // SAFETY: the request's pool lives, and runs this before its memory goes.
        unsafe {
            let pool = read(r + layout::R_POOL);
            let at = apr::apr_palloc(pool, size_of::<Lent>() as u64);
            (at as *mut Lent).write(lent);
            apr::apr_pool_cleanup_register(pool, at, plain, child);
        }
    }
    0
}

extern "C" fn end(at: u64) -> c_int {
    // SAFETY: `begin` has put it there, and this runs once.
    let lent = unsafe { (at as *mut Lent).read() };
    Granted::end_all(lent.granted.into_iter().flatten());
    0
}

extern "C" fn nothing(_: u64) -> c_int {
    0
}
