//! Functions of modules that the server calls at a later time, for the request of the call that has asked for it.

use crate::apr;
use crate::back;
use crate::call::mediate;
use crate::interface::back as kind;
use crate::layout::{self, read};
use crate::walled::lock;
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Mutex;

struct Timer {
    function: u64,
    data: u64,
    request: u64,
}

thread_local! {
    /// The request for which a timer's function runs.
    static RINGS: Cell<u64> = const { Cell::new(0) };
    /// The lock of that request.
    static LOCKED: Cell<u64> = const { Cell::new(0) };
    /// The request that ends when that function has returned. Its frame has the request until then.
    static ENDS: Cell<u64> = const { Cell::new(0) };
}

/// Those that are to come, by numbers that nobody has twice.
static TIMERS: Mutex<Option<(u64, HashMap<u64, Timer>)>> = Mutex::new(None);

fn take(number: u64) -> Option<Timer> {
    lock(&TIMERS).as_mut()?.1.remove(&number)
}

/// What a timer finds when its time has come.
enum Found {
    /// A request that waits for it, with its lock, which this thread has by now.
    Waits(Timer, u64),
    /// The request's own thread works on it.
    IsBusy,
    /// The request has ended, or nobody waits for the timer any more.
    Nothing,
}

/// A request goes no further than its timers while they are looked at: the cleanup that forgets them waits.
fn find(number: u64) -> Found {
    let mut timers = lock(&TIMERS);
    let Some((_, timers)) = timers.as_mut() else {
        return Found::Nothing;
    };
    let Some(timer) = timers.get(&number) else {
        return Found::Nothing;
    };
    // SAFETY: the request lives, or its cleanup would have taken the timer. No module writes these words.
    let (mutex, is_suspended) = unsafe {
        let main = |r: &u64| Some(read(r + layout::R_MAIN)).filter(|main| *main != 0);
        let mut wholes = std::iter::successors(Some(timer.request), main).take(CHAIN);
        let mutex = wholes.find_map(|r| Some(read(r + layout::R_INVOKE_MTX)).filter(|at| *at != 0));
        let Some(mutex) = mutex.filter(|mutex| apr::apr_thread_mutex_trylock(*mutex) == 0) else {
            return Found::IsBusy;
        };
        let state = read(read(timer.request + layout::R_CONNECTION) + layout::C_CS);
        (
            mutex,
            state != 0 && (state as *const u32).read() == SUSPENDED,
        )
    };
    match timers.remove(&number).filter(|_| is_suspended) {
        Some(timer) => Found::Waits(timer, mutex),
        None => {
            // SAFETY: this thread has just locked it.
            unsafe { apr::apr_thread_mutex_unlock(mutex) };
            Found::Nothing
        }
    }
}

/// So many requests a part of one is within.
const CHAIN: usize = 32;
/// `CONN_STATE_SUSPENDED`, which httpd sets before it gives back the request's lock.
const SUSPENDED: u32 = 4;
/// Microseconds until it is looked again whether a request is free.
const AGAIN: u64 = 5_000;

/// Whether this thread has a request's lock for a timer's function, which need not take it.
pub(crate) fn has_locked(mutex: u64) -> bool {
    LOCKED.get() == mutex && mutex != 0
}

extern "C" fn ring(number: u64) {
    let (timer, mutex) = match find(number) {
        Found::Waits(timer, mutex) => (timer, mutex),
        Found::IsBusy => {
            set(AGAIN, number);
            return;
        }
        Found::Nothing => return,
    };
    let request = timer.request;
    let locked = LOCKED.replace(mutex);
    let before = (RINGS.replace(timer.request), ENDS.replace(0));
    // SAFETY: it stands for a function of the module's, and stays. Its request lives, or there would be no timer any more.
    unsafe {
        let call: extern "C" fn(u64, u64) -> u64 = std::mem::transmute(timer.function);
        call(timer.data, timer.request);
    }
    let ends = ENDS.get();
    RINGS.set(before.0);
    ENDS.set(before.1);
    LOCKED.set(locked);
    if ends != 0 {
        // No other timer of the request begins.
        if let Some((_, timers)) = lock(&TIMERS).as_mut() {
            timers.retain(|_, timer| timer.request != request);
        }
    }
    // SAFETY: this thread has locked it, and its request has not ended.
    unsafe { apr::apr_thread_mutex_unlock(mutex) };
    if ends != 0
        && let Some(real) = apr::symbol(AFTER)
    {
        // SAFETY: it is httpd's function, for a request that was suspended, and that no frame of this thread has.
        let real: extern "C" fn(u64) = unsafe { std::mem::transmute(real) };
        real(ends);
    }
}

/// The server calls [`ring`] in so many microseconds.
fn set(time: u64, number: u64) -> i32 {
    let Some(real) = apr::symbol("ap_mpm_register_timed_callback") else {
        return libc::ENOSYS;
    };
    // SAFETY: it is httpd's function, which passes on the number.
    let real: extern "C" fn(u64, usize, u64) -> i32 = unsafe { std::mem::transmute(real) };
    real(time, ring as *const () as usize, number)
}

const AFTER: &str = "ap_process_request_after_handler";

/// The request ends here, so a timer's function alone may call it, for its own request, which waits.
pub(crate) extern "C" fn ap_process_request_after_handler(r: u64) -> u64 {
    mediate(|frame| {
        if r == 0 || RINGS.get() != r || !frame.has_request(r) {
            return Err(format!(
                "ap_process_request_after_handler: {r:#x} is not the request of this timer"
            ));
        }
        // Once: it goes when the function has returned.
        RINGS.set(0);
        ENDS.set(r);
        Ok(0)
    })
}

/// The request has ended before.
extern "C" fn forget(number: u64) -> i32 {
    take(number);
    0
}

pub(crate) extern "C" fn ap_mpm_register_timed_callback(
    time: u64,
    function: u64,
    data: u64,
) -> u64 {
    mediate(|frame| {
        let request = frame.requests().next();
        let request = request.ok_or("a timer outside of a request")?;
        if !frame.walled.is_gate(function) {
            return Err(format!("{function:#x} is no function of the module"));
        }
        let timer = Timer {
            function: back::stand_in(frame, kind("timed"), function)?,
            data,
            request,
        };
        let number = {
            let mut timers = lock(&TIMERS);
            let (last, timers) = timers.get_or_insert_default();
            *last += 1;
            timers.insert(*last, timer);
            *last
        };
        // SAFETY: the request is the core's, and its pool runs the cleanup before it goes. httpd passes on the number.
        unsafe {
            let pool = read(request + layout::R_POOL);
            let cleanup = forget as *const () as usize;
            apr::apr_pool_cleanup_register(pool, number, cleanup, cleanup);
        }
        Ok(set(time, number) as u32 as u64)
    })
}

/// A module gets no threads of its own, in which it would use what belongs to others: it is told that there is no set of them, as
/// mod_proxy_hcheck is without threads.
pub(crate) extern "C" fn apr_thread_pool_create(to: u64, _: u64, _: u64, _: u64) -> u64 {
    mediate(|frame| {
        frame.walled.must_write(to, 8)?;
        // SAFETY: the module may write there.
        unsafe { (to as *mut u64).write(0) };
        Ok(0)
    })
}

/// `APR_ENOTIMPL`.
const NOT_HERE: u64 = 70023;

pub(crate) extern "C" fn apr_thread_pool_destroy(_: u64) -> u64 {
    NOT_HERE
}

pub(crate) extern "C" fn apr_thread_pool_push(_: u64, _: u64, _: u64, _: u64, _: u64) -> u64 {
    NOT_HERE
}
