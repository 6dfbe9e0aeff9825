//! Timers, and being told of what happens to keys.

use crate::api::{host, mediators};
use crate::frame::{Given, Walled, mediate};
use crate::memory::{ERR, OK};
use mullion_bridge::gate;
use std::cell::Cell;
use std::ffi::{c_char, c_int};
use std::sync::atomic::{AtomicUsize, Ordering};

mediators! { ALL;
    CreateTimer = create;
    StopTimer = stop;
    GetTimerInfo = information;
    SubscribeToKeyspaceEvents = subscribe;
    SubscribeToServerEvent = subscribe_to_server;
}

/// A timer of a module's.
struct Timer {
    walled: &'static Walled,
    function: u64,
    data: u64,
    life: u64,
    number: Cell<u64>,
}

extern "C" fn expired(context: usize, timer: *mut Timer) {
    // SAFETY: `create` has made it, and Redis passes it once.
    let timer = unsafe { Box::from_raw(timer) };
    let walled = timer.walled;
    walled.timers.borrow_mut().remove(&timer.number.get());
    if timer.life != walled.module.life() {
        return;
    }
    let given = Given {
        context,
        ..Given::default()
    };
    walled.enter(given, |frame| {
        gate!(timer.function, fn(u64, u64))(frame.token(), timer.data);
        Some(())
    });
}

extern "C" fn create(context: u64, period: i64, function: u64, data: u64) -> u64 {
    mediate(|frame| {
        let (context, walled) = (frame.context(context)?, frame.walled);
        let timer = Box::into_raw(Box::new(Timer {
            walled,
            function: walled.module.function(function)?,
            data,
            life: walled.module.life(),
            number: Cell::new(0),
        }));
        type Expired = extern "C" fn(usize, *mut Timer);
        let create = host!(CreateTimer: fn(usize, i64, Expired, *mut Timer) -> u64);
        let number = create(context, period, expired, timer);
        // SAFETY: made above; Redis calls later.
        unsafe { (*timer).number.set(number) };
        walled.timers.borrow_mut().insert(number, timer as usize);
        Ok(number)
    })
}

extern "C" fn stop(context: u64, number: u64, data: u64) -> c_int {
    mediate(|frame| {
        let context = frame.context(context)?;
        let Some(timer) = frame.walled.timers.borrow_mut().remove(&number) else {
            return Ok(ERR);
        };
        let stop = host!(StopTimer: fn(usize, u64, *mut usize) -> c_int);
        let code = stop(context, number, std::ptr::null_mut());
        if code == OK {
            // SAFETY: `create` has made it, and Redis has forgotten it.
            let timer = unsafe { Box::from_raw(timer as *mut Timer) };
            if data != 0 {
                frame.walled.module.write(data, &timer.data.to_ne_bytes())?;
            }
        }
        Ok(code)
    })
}

extern "C" fn information(context: u64, number: u64, remaining: u64, data: u64) -> c_int {
    mediate(|frame| {
        let context = frame.context(context)?;
        let Some(timer) = frame.walled.timers.borrow().get(&number).copied() else {
            return Ok(ERR);
        };
        let mut left = 0u64;
        let find = host!(GetTimerInfo: fn(usize, u64, *mut u64, *mut usize) -> c_int);
        let code = find(context, number, &raw mut left, std::ptr::null_mut());
        // SAFETY: it is on the list, so Redis has not called it yet.
        let of_module = unsafe { (*(timer as *const Timer)).data };
        for (to, value) in [(remaining, left), (data, of_module)] {
            if code == OK && to != 0 {
                frame.walled.module.write(to, &value.to_ne_bytes())?;
            }
        }
        Ok(code)
    })
}

/// Who wants to be told of keys.
struct Subscription {
    walled: &'static Walled,
    function: Cell<u64>,
    life: Cell<u64>,
}

const MOST: usize = 16;
static SUBSCRIPTIONS: [AtomicUsize; MOST] = [const { AtomicUsize::new(0) }; MOST];
static NEXT: AtomicUsize = AtomicUsize::new(0);

type Notify = extern "C" fn(usize, c_int, *const c_char, usize) -> c_int;

extern "C" fn notify<const N: usize>(
    context: usize,
    kind: c_int,
    event: *const c_char,
    key: usize,
) -> c_int {
    let at = SUBSCRIPTIONS[N].load(Ordering::Acquire) as *const Subscription;
    // SAFETY: `subscribe` puts it there before Redis knows of this function, and it stays.
    let subscription = unsafe { &*at };
    let walled = subscription.walled;
    if subscription.life.get() != walled.module.life() {
        return OK;
    }
    let given = Given {
        context,
        argv: (&raw const key) as usize,
        argc: 1,
        ..Given::default()
    };
    let code = walled.enter(given, |frame| {
        // SAFETY: Redis's names of events end with a zero.
        let event = frame.lend(event.cast(), unsafe { libc::strlen(event) });
        let notify = gate!(
            subscription.function.get(),
            fn(u64, c_int, u64, u64) -> c_int
        );
        Some(notify(frame.token(), kind, event, key as u64))
    });
    code.unwrap_or(OK)
}

macro_rules! notifies {
    ($($number:literal)*) => { [$(notify::<$number>),*] };
}
const NOTIFY: [Notify; MOST] = notifies!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);

extern "C" fn subscribe(context: u64, kinds: c_int, function: u64) -> c_int {
    mediate(|frame| {
        let (context, walled) = (frame.context(context)?, frame.walled);
        let function = walled.module.function(function)?;
        let life = walled.module.life();
        let key = format!("keys {kinds:#x}");
        if let Some(at) = walled.registered.borrow().get(&key) {
            // SAFETY: subscriptions stay, and keys of different kinds begin with different words.
            let subscription = unsafe { &*(*at as *const Subscription) };
            if subscription.life.get() != life {
                subscription.function.set(function);
                subscription.life.set(life);
                return Ok(OK);
            }
        }
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let Some(slot) = SUBSCRIPTIONS.get(number) else {
            return Ok(ERR);
        };
        let subscription: &'static Subscription = Box::leak(Box::new(Subscription {
            walled,
            function: Cell::new(function),
            life: Cell::new(life),
        }));
        let at = std::ptr::from_ref(subscription) as usize;
        slot.store(at, Ordering::Release);
        walled.registered.borrow_mut().insert(key, at);
        let subscribe = host!(SubscribeToKeyspaceEvents: fn(usize, c_int, Notify) -> c_int);
        Ok(subscribe(context, kinds, NOTIFY[number]))
    })
}

/// Not there: a module is told so, as by a server that does not know the event.
extern "C" fn subscribe_to_server(context: u64, _: u64, _: u64, _: u64) -> c_int {
    mediate(|frame| {
        frame.context(context)?;
        Ok(ERR)
    })
}
