//! Pools and parts of requests that modules make and end themselves. Nobody ends a pool that the core is about to end, or a
//! request that the core works on.
//!
//! ```text
//!   core or module ends a pool ──► our function, before any other of the pool ──► the module cannot end it any more
//!                                  the module's functions ──► the memory goes
//! ```

use crate::apr;
use crate::backends::here;
use crate::call::{is_request, mediate};
use crate::copied::Names;
use crate::frame::{self, Frame, Held};
use crate::homes::Homes;
use crate::layout::{self, read};
use crate::object::Kind;
use crate::turns;
use crate::walled::{Answer, Walled, lock};
use std::cell::RefCell;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

impl Walled {
    /// Whether the module has made a pool, or a part of a request that has this pool.
    pub(crate) fn knows_pool(&self, pool: u64) -> bool {
        let mut kinds = [Kind::Pool, Kind::OfRequest, Kind::Going].into_iter();
        kinds.any(|kind| self.knows(pool, kind))
    }
}

static HOMES: Mutex<Option<Homes>> = Mutex::new(None);

fn homes<R>(act: impl FnOnce(&mut Homes) -> R) -> R {
    act(lock(&HOMES).get_or_insert_default())
}

/// The pool of the process that serves.
static CHILD: AtomicU64 = AtomicU64::new(0);

/// Whether the process serves, by several threads.
static SERVES: AtomicBool = AtomicBool::new(false);

/// A process begins to serve with its own pool, or there is none yet.
pub(crate) fn begin(pool: u64) {
    turns::fresh();
    CHILD.store(pool, Ordering::Relaxed);
}

/// From now on several threads call modules.
pub(crate) fn serve() {
    SERVES.store(true, Ordering::Relaxed);
}

/// Whether several threads call modules.
/// Refuses what writes a list of the process that threads go through without a lock, once the server serves.
pub(crate) fn before_serving(name: &str) -> Result<(), String> {
    match serves() {
        true => Err(format!("{name}: the server serves already")),
        false => Ok(()),
    }
}

/// The pool of the configuration, and a copy of a string in it: lists of the process have what lasts as long as they.
pub(crate) fn lasting() -> Result<u64, String> {
    let at = apr::symbol("apr_hook_global_pool").ok_or("the server does not have it")?;
    // SAFETY: it is a variable of APR's, in which httpd puts this pool when it starts.
    match unsafe { crate::layout::read(at as u64) } {
        0 => Err("the server has no pool of its configuration yet".to_owned()),
        pool => Ok(pool),
    }
}

/// A copy in the pool of the configuration.
///
/// # Safety
/// One thread works with that pool, as before the server serves.
pub(crate) unsafe fn lasting_copy(text: &[u8]) -> Result<u64, String> {
    let pool = lasting()?;
    // SAFETY: the pool lives, and gives that much.
    unsafe {
        let at = apr::apr_palloc(pool, text.len() as u64);
        (at as *mut u8).copy_from_nonoverlapping(text.as_ptr(), text.len());
        Ok(at)
    }
}

/// The same of a string that may be null.
///
/// # Safety
/// As [`lasting_copy`].
pub(crate) unsafe fn lasting_or_null(text: Option<&Vec<u8>>) -> Result<u64, String> {
    match text {
        None => Ok(0),
        // SAFETY: the caller has seen that the server does not serve yet.
        Some(text) => unsafe { lasting_copy(text) },
    }
}

/// The same of a list of strings.
///
/// # Safety
/// As [`lasting_copy`].
pub(crate) unsafe fn lasting_names(names: &Names) -> Result<u64, String> {
    let mut words = Vec::new();
    for name in names.names() {
        // SAFETY: the caller has seen that the server does not serve yet.
        words.extend(unsafe { lasting_copy(name)? }.to_ne_bytes());
    }
    words.extend([0; 8]);
    // SAFETY: by the caller. APR aligns what a pool gives.
    unsafe { lasting_copy(&words) }
}

pub(crate) fn serves() -> bool {
    SERVES.load(Ordering::Relaxed)
}

thread_local! {
    /// Parts of requests that this thread's calls have the core run.
    static RUNS: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

fn number(walled: &Walled) -> usize {
    std::ptr::from_ref(walled) as usize
}

/// Whether a pool goes with a request or a connection. One that was given while the server serves does, unless it is the process's.
pub(crate) fn is_bound(pool: u64) -> bool {
    let made = homes(|homes| homes.is_bound(pool));
    made.unwrap_or_else(|| serves() && !is_lasting(pool))
}

/// Whether it is so, and no module has made the pool.
pub(crate) fn is_bound_of_core(pool: u64) -> bool {
    let made = homes(|homes| homes.is_bound(pool));
    made.is_none() && serves() && !is_lasting(pool)
}

/// Whether the frame's call may work with a pool that its module has something of, by what the pool goes with. A pool that a module
/// has made stays until the call of the host returns.
pub(crate) fn hold(frame: &Frame, pool: u64, is_bound: bool) -> bool {
    match homes(|homes| homes.hold(pool, here())) {
        Err(()) => false,
        Ok(None) => !is_bound || frame.is_here(pool),
        Ok(Some((hold, root))) => {
            frame.keep(Held::Pool(hold));
            !root.is_bound || frame.is_here(root.pool)
        }
    }
}

/// A call of the host has returned.
pub(crate) fn let_go(held: Held) {
    match held {
        Held::Pool(hold) => homes(|homes| homes.release(hold)),
        Held::Turn(at) => turns::end(at),
        Held::List(_) | Held::Nothing => {}
    }
}

/// The memory of a pool that a module has made goes.
pub(crate) fn gone(pool: u64) {
    homes(|homes| homes.gone(pool));
}

/// A module has made a part of a request, which has a pool of its own.
pub(crate) fn add_part(walled: &Walled, pool: u64) {
    // SAFETY: the core has just made the pool.
    let parent = unsafe { apr::apr_pool_parent_get(pool) };
    homes(|homes| homes.add(pool, number(walled), parent, serves()));
}

/// A pool is about to go. It runs before any function of the module's that the pool has.
extern "C" fn goes(pool: u64) -> c_int {
    if let Some(of) = homes(|homes| homes.goes(pool, here())) {
        // SAFETY: `number` has made it of a module, and those are never freed.
        unsafe { &*(of as *const Walled) }.going(pool);
    }
    0
}

/// Functions that run before a pool goes run from the newest to the oldest: ours is the newest.
///
/// # Safety
/// The pool lives, and is the module's.
pub(crate) unsafe fn watch(pool: u64) {
    let act = goes as *const () as usize;
    // SAFETY: the pool lives, as this function's own condition has it; `goes` takes the number of a pool.
    unsafe {
        apr::apr_pool_cleanup_kill(pool, pool, act);
        apr::apr_pool_pre_cleanup_register(pool, pool, act);
    }
}

/// Where a module's word for an allocator of pools leads: to nothing. Its pools get that of the pool above.
static ALLOCATOR: u64 = 0;

/// A module gets no allocator of its own, as APR would follow it. All pools of the server's own have one with a lock.
pub(crate) extern "C" fn apr_allocator_create(to: u64) -> u64 {
    mediate(|frame| {
        frame.walled.must_write(to, 8)?;
        // SAFETY: the module may write there.
        unsafe { (to as *mut u64).write(&raw const ALLOCATOR as u64) };
        Ok(0)
    })
}

macro_rules! allocators {
    ($($name:ident),*) => { $(
        pub(crate) extern "C" fn $name(_: u64, _: u64) -> u64 {
            0
        }
    )* };
}

allocators! {
    apr_allocator_destroy, apr_allocator_max_free_set, apr_allocator_mutex_set, apr_allocator_owner_set
}

/// A pool of the module's own, below one that it has or none.
pub(crate) extern "C" fn apr_pool_create_ex(to: u64, parent: u64, _: u64, _: u64) -> u64 {
    mediate(|frame| {
        let walled = frame.walled;
        frame.only_computes();
        walled.must_write(to, 8)?;
        // One without a parent is the server's own, and stays.
        if parent != 0 {
            walled.pool(frame, parent)?;
        }
        let mut made = 0;
        // SAFETY: the parent lives, or is APR's own. The module's function for the lack of memory is not passed on.
        let status = unsafe { apr::apr_pool_create_ex(&mut made, parent, 0, 0) };
        if status == 0 {
            let within = Some(parent).filter(|parent| *parent != 0);
            let bound = within.is_some_and(is_bound);
            homes(|homes| homes.add(made, number(walled), parent, bound));
            walled.know(frame, within, made, Kind::Pool)?;
            walled.pool(frame, made)?;
            // SAFETY: the pool was just made, and the module may write there.
            unsafe {
                watch(made);
                (to as *mut u64).write(made);
            }
        }
        Ok(status as u64)
    })
}

pub(crate) extern "C" fn apr_pool_clear(pool: u64) -> u64 {
    mediate(|frame| {
        let bound = is_bound(pool);
        own_pool(frame, pool)?;
        frame.take_turn(pool)?;
        // SAFETY: it is a pool that the module has made, and it lives behind this. Nobody else can end it meanwhile.
        let parent = unsafe {
            apr::apr_pool_clear(pool);
            watch(pool);
            apr::apr_pool_parent_get(pool)
        };
        homes(|homes| homes.add(pool, number(frame.walled), parent, bound));
        frame.walled.know(frame, None, pool, Kind::Pool)?;
        frame.walled.pool(frame, pool)?;
        Ok(0)
    })
}

pub(crate) extern "C" fn apr_pool_destroy(pool: u64) -> u64 {
    mediate(|frame| {
        own_pool(frame, pool)?;
        frame.take_turn(pool)?;
        // SAFETY: as above. Its cleanup has the module forget it.
        unsafe { apr::apr_pool_destroy(pool) };
        Ok(0)
    })
}

/// The pools that a pool is below, with itself.
pub(crate) fn upwards(pool: u64) -> impl Iterator<Item = u64> {
    // SAFETY: a pool that lives has parents that do.
    let parent = |pool: &u64| Some(unsafe { apr::apr_pool_parent_get(*pool) }).filter(|p| *p != 0);
    std::iter::successors(Some(pool).filter(|pool| *pool != 0), parent).take(1024)
}

/// Which of two pools goes first: the one that is below the other. None stands above 0, which is for ever. None: neither is below
/// the other.
pub(crate) fn first_to_go(one: u64, other: u64) -> Option<u64> {
    let is_below = |pool: u64, above: u64| above == 0 || upwards(pool).any(|at| at == above);
    match (one, other) {
        (0, pool) | (pool, 0) => Some(pool),
        (one, other) if is_below(one, other) => Some(one),
        (one, other) => is_below(other, one).then_some(other),
    }
}

/// Whether what goes with a pool is there as long as another pool is.
pub(crate) fn outlives(home: u64, pool: u64) -> bool {
    home == 0 || pool != 0 && first_to_go(home, pool) == Some(pool)
}

/// Whether a module has made a pool, and so may end it.
pub(crate) fn is_made(pool: u64) -> bool {
    homes(|homes| homes.is_bound(pool)).is_some()
}

/// Whether the module that has made a pool has it still.
fn is_made_by(pool: u64, maker: Option<usize>) -> bool {
    // SAFETY: `number` has made it of a module, and those are never freed.
    maker.is_some_and(|of| unsafe { &*(of as *const Walled) }.has_made(pool, Kind::Pool))
}

/// Takes a pool from the module, which is about to end it.
fn own_pool(frame: &Frame, pool: u64) -> Answer<()> {
    let walled = frame.walled;
    let not_own = || Err(format!("{pool:#x} is no pool that the module has made"));
    // One that another module has made below a pool of this one goes with that, so this module may end it, too.
    let maker = homes(|homes| homes.maker_below(pool, number(walled)));
    let is_own = maker.is_some() && (walled.knows(pool, Kind::Pool) || is_made_by(pool, maker));
    if !is_own || frame.has_pool(pool) {
        return not_own();
    }
    // Below the pool of a request or a connection it belongs to the thread that works on that.
    let held = homes(|homes| {
        homes
            .hold(pool, here())
            .map(|held| held.inspect(|(hold, _)| homes.release(*hold)))
    });
    let Ok(Some((_, root))) = held else {
        return not_own();
    };
    if root.is_bound && !frame.is_here(root.pool) {
        return Err(format!("{pool:#x} is a pool of another request"));
    }
    let is_run = |r: &u64| {
        // SAFETY: the core works on the request, so it lives.
        upwards(unsafe { read(r + layout::R_POOL) }).any(|above| above == pool)
    };
    if RUNS.with_borrow(|runs| runs.iter().any(is_run)) {
        return Err(format!("{pool:#x} is a pool of a request that runs"));
    }
    // Whoever begins first ends it.
    let begun = homes(|homes| homes.begin_end(pool, maker.unwrap_or(0), here()));
    begun.map_err(|why| format!("{pool:#x} {why}"))?;
    match maker {
        // SAFETY: `number` has made it of a module, and those are never freed.
        Some(of) => unsafe { &*(of as *const Walled) }.going(pool),
        None => walled.going(pool),
    };
    Ok(())
}

/// The pools of the process and of the configuration.
fn is_lasting(pool: u64) -> bool {
    if pool == CHILD.load(Ordering::Relaxed) {
        return true;
    }
    // SAFETY: they are the core's own structures.
    let pools = frame::main_server().map(|s| unsafe {
        let process = read(s + layout::S_PROCESS);
        [
            read(process + layout::P_POOL),
            read(process + layout::P_PCONF),
        ]
    });
    pools.into_iter().flatten().any(|known| known == pool) || is_global(pool)
}

/// The pool of the configuration, which APR's macros for hooks use by a variable.
pub(crate) fn is_global(pool: u64) -> bool {
    static AT: OnceLock<Option<usize>> = OnceLock::new();
    let at = *AT.get_or_init(|| apr::symbol("apr_hook_global_pool"));
    // SAFETY: it is APR's variable.
    at.is_some_and(|at| unsafe { read(at as u64) } == pool)
}

/// A part of a request that the module has made, of a request of this call, and that does not run.
fn own_part(frame: &Frame, r: u64, name: &str) -> Answer<()> {
    let walled = frame.walled;
    // SAFETY: what is known as a request lives.
    let is_own = walled.knows(r, Kind::Request)
        && walled.knows(unsafe { read(r + layout::R_POOL) }, Kind::OfRequest);
    if !is_own {
        return Err(format!(
            "{name}: {r:#x} is no part of a request that the module has made"
        ));
    }
    // SAFETY: a part lives no longer than what it is part of.
    let up = |r: &u64| Some(unsafe { read(r + layout::R_MAIN) }).filter(|r| *r != 0);
    let whole = std::iter::successors(Some(r), up).take(256).last();
    if !whole.is_some_and(|whole| frame.has_request(whole)) {
        return Err(format!("{name}: {r:#x} is part of another request"));
    }
    // One that runs is in use with all that it is part of.
    let runs = |run: &u64| {
        let mut all = std::iter::successors(Some(*run), up).take(256);
        all.any(|one| one == r)
    };
    match RUNS.with_borrow(|all| all.iter().any(runs)) {
        true => Err(format!("{name}: {r:#x} runs")),
        false => Ok(()),
    }
}

fn real(name: &str) -> Answer<extern "C" fn(u64, u64) -> u64> {
    let real = apr::symbol(name).ok_or("the server does not have it")?;
    // SAFETY: each caller has a function of httpd's for at most two integers.
    Ok(unsafe { std::mem::transmute::<usize, extern "C" fn(u64, u64) -> u64>(real) })
}

pub(crate) extern "C" fn ap_run_sub_req(r: u64) -> u64 {
    const NAME: &str = "ap_run_sub_req";
    mediate(|frame| {
        own_part(frame, r, NAME)?;
        let real = real(NAME)?;
        RUNS.with_borrow_mut(|runs| runs.push(r));
        let status = real(r, 0);
        RUNS.with_borrow_mut(|runs| runs.pop());
        Ok(status as u32 as u64)
    })
}

pub(crate) extern "C" fn ap_destroy_sub_req(r: u64) -> u64 {
    const NAME: &str = "ap_destroy_sub_req";
    mediate(|frame| {
        own_part(frame, r, NAME)?;
        let real = real(NAME)?;
        // This call has looked at it, and uses it no more.
        frame.let_go(0);
        // SAFETY: it was seen to be a part that lives.
        let pool = unsafe { read(r + layout::R_POOL) };
        let begun = homes(|homes| homes.begin_end(pool, number(frame.walled), here()));
        begun.map_err(|why| format!("{NAME}: {pool:#x} {why}"))?;
        // Nobody ends it twice.
        frame.walled.forget_object(r);
        real(r, 0);
        Ok(0)
    })
}

/// A request becomes what a part of it is. It has strings of the part from then on, so the part stays as long as it does.
pub(crate) extern "C" fn ap_internal_fast_redirect(part: u64, r: u64) -> u64 {
    const NAME: &str = "ap_internal_fast_redirect";
    mediate(|frame| {
        own_part(frame, part, NAME)?;
        // SAFETY: it was seen to be a part, which has what it is part of.
        if !is_request(frame, r) || unsafe { read(part + layout::R_MAIN) } != r {
            return Err(format!("{NAME}: {part:#x} is no part of {r:#x}"));
        }
        let real = real(NAME)?;
        frame.walled.forget_object(part);
        real(part, r);
        Ok(0)
    })
}
