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
    /// The request that ends when that function has returned. Its frame has the request until then.
    static ENDS: Cell<u64> = const { Cell::new(0) };
}

/// Those that are to come, by numbers that nobody has twice.
static TIMERS: Mutex<Option<(u64, HashMap<u64, Timer>)>> = Mutex::new(None);

fn take(number: u64) -> Option<Timer> {
    lock(&TIMERS).as_mut()?.1.remove(&number)
}

extern "C" fn ring(number: u64) {
    let Some(timer) = take(number) else {
        return;
    };
    let before = (RINGS.replace(timer.request), ENDS.replace(0));
    // SAFETY: it stands for a function of the module's, and stays. Its request lives, or there would be no timer any more.
    unsafe {
        let call: extern "C" fn(u64, u64) -> u64 = std::mem::transmute(timer.function);
        call(timer.data, timer.request);
    }
    let ends = ENDS.get();
    RINGS.set(before.0);
    ENDS.set(before.1);
    if ends != 0
        && let Some(real) = apr::symbol(AFTER)
    {
        // SAFETY: it is httpd's function, for a request that was suspended, and that no frame of this thread has.
        let real: extern "C" fn(u64) = unsafe { std::mem::transmute(real) };
        real(ends);
    }
}

const AFTER: &str = "ap_process_request_after_handler";

/// The request ends here, so a timer's function alone may call it, for its own request. The call in which the request was suspended
/// must be over: it holds the request's lock.
pub(crate) extern "C" fn ap_process_request_after_handler(r: u64) -> u64 {
    mediate(|frame| {
        if r == 0 || RINGS.get() != r || !frame.has_request(r) {
            return Err(format!(
                "ap_process_request_after_handler: {r:#x} is not the request of this timer"
            ));
        }
        // SAFETY: the timer's request lives, and has its lock as long as it does.
        let is_free = unsafe {
            let mutex = read(r + layout::R_INVOKE_MTX);
            mutex != 0
                && apr::apr_thread_mutex_trylock(mutex) == 0
                && apr::apr_thread_mutex_unlock(mutex) == 0
        };
        if !is_free {
            return Err(
                "ap_process_request_after_handler: a call works with the request".to_owned(),
            );
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
        let real =
            apr::symbol("ap_mpm_register_timed_callback").ok_or("the server does not have it")?;
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
            let real: extern "C" fn(u64, usize, u64) -> i32 = std::mem::transmute(real);
            Ok(real(time, ring as *const () as usize, number) as u32 as u64)
        }
    })
}
