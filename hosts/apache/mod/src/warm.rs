//! Fields of requests that modules have written of late. They are granted all at once when a request begins. They are taken back
//! all at once when its pool goes, because each taking back waits for threads.

use crate::apr;
use crate::configs;
use crate::frame::Root;
use crate::layout::{self, read};
use crate::walled::{Walled, lock};
use mullion_word_runtime::Granted;
use std::ffi::c_int;
use std::mem::MaybeUninit;
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

/// What was granted for a request. It lies in the request's pool, where it is written once.
struct Lent {
    /// So many places are written.
    count: usize,
    granted: [MaybeUninit<Granted>; ROOM],
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
    // SAFETY: the core passes a request here.
    unsafe { configs::begin(r) };
    let count = COUNT.load(Ordering::Acquire);
    // SAFETY: the core passes a request, whose pool lives.
    let mut lending = Lending {
        // SAFETY: the core has passed the request, and no module writes this field.
        pool: unsafe { read(r + layout::R_POOL) },
        lent: None,
    };
    for walled in ALL.iter().take(count) {
        // SAFETY: a place below the count has a module, which is never freed.
        let walled: &'static Walled = unsafe { &*walled.load(Ordering::Relaxed) };
        if walled.domain.is_ended() {
            continue;
        }
        // SAFETY: the core passes a request with its pool and its configurations.
        let (_, pieces) = unsafe { walled.pieces(Root::Request(r)) };
        // Fields come in their order: those that adjoin are one grant.
        let mut open = None::<(u64, u64)>;
        for (at, piece) in pieces.filter(|(_, piece)| piece.is_warm()) {
            let start = at + piece.at;
            match &mut open {
                Some((_, end)) if *end == start => *end += piece.bytes,
                _ => {
                    lending.grant(walled, open.replace((start, start + piece.bytes)));
                }
            }
        }
        lending.grant(walled, open);
    }
    0
}

/// Grants for a request that begins.
struct Lending {
    pool: u64,
    lent: Option<&'static mut Lent>,
}

impl Lending {
    fn grant(&mut self, walled: &'static Walled, range: Option<(u64, u64)>) {
        let Some((start, end)) = range else {
            return;
        };
        let lent = match &mut self.lent {
            Some(lent) => lent,
            None => self.lent.insert(begin_lent(self.pool)),
        };
        if let Some(place) = lent.granted.get_mut(lent.count)
            && let Ok(granted) = walled.grant(start, end - start)
        {
            place.write(granted);
            lent.count += 1;
        }
    }
}

/// None are granted yet; the pool takes back those that will be.
fn begin_lent(pool: u64) -> &'static mut Lent {
    let (plain, child) = (end as *const () as usize, nothing as *const () as usize);
    // SAFETY: the request's pool lives, gives memory for any kind of value, and runs `end` before that goes. Until then `begin` alone
    // knows of it. Places of `granted` need not be written.
    unsafe {
        let at = apr::apr_palloc(pool, size_of::<Lent>() as u64);
        let lent = at as *mut Lent;
        (&raw mut (*lent).count).write(0);
        apr::apr_pool_cleanup_register(pool, at, plain, child);
        &mut *lent
    }
}

extern "C" fn end(at: u64) -> c_int {
    // SAFETY: `begin` has put it there, and this runs once.
    let lent = unsafe { &*(at as *const Lent) };
    let all = lent.granted.iter().take(lent.count);
    // SAFETY: so many places were written, and each is read once.
    Granted::end_all(all.map(|granted| unsafe { granted.assume_init_read() }));
    0
}

extern "C" fn nothing(_: u64) -> c_int {
    0
}
