//! Calls that are started: awaited, waited for, cancelled, dropped.

use crate::{IMAGE, imports};
use mullion::{Call, CallLimits, Caller, Canceller, Cause, Domain, Error, Limits, Ptr};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

/// One whose callers wait while it is restarted.
fn domain() -> Domain {
    let limits = Limits {
        start_wait: PATIENCE,
        ..Limits::default()
    };
    let domain = IMAGE.domain().imports(imports()).limits(limits);
    domain.load().unwrap()
}

/// The smallest executor.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(result) => return result,
            Poll::Pending => std::thread::park(),
        }
    }
}

fn forever(domain: &Domain) -> Call<()> {
    domain
        .function::<fn()>("loop_forever")
        .unwrap()
        .start()
        .unwrap()
}

/// The name of the function in which the call was cancelled.
///
/// The call of a new thread first runs the C library's start of that thread, which is code of the
/// domain, too. Only a call that has told the host that it runs is known to be past it.
fn assert_cancelled<R: std::fmt::Debug>(result: Result<R, Error>) -> Option<String> {
    match result {
        Err(Error::Cancelled {
            fault: Some(fault), ..
        }) => {
            assert_eq!(*fault.cause(), Cause::Cancelled);
            fault.symbol().map(String::from)
        }
        other => panic!("not cancelled in the domain: {other:?}"),
    }
}

/// Waits until a call has come into the domain.
fn in_use(domain: &Domain) {
    while !matches!(domain.restart(), Err(Error::InUse { .. })) {
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn works_again(domain: &Domain) {
    assert!(domain.has_ended().unwrap());
    domain.restart_when_idle(PATIENCE).unwrap();
    assert_eq!(
        domain
            .function::<fn() -> i32>("count")
            .unwrap()
            .call()
            .unwrap(),
        42
    );
}

#[test]
fn started_calls_are_awaited_several_at_once() {
    let domain = domain();
    let down = domain.function::<fn(i8, u16) -> i8>("narrow").unwrap();
    let calls: Vec<_> = (0..8).map(|a| down.start(a, 1).unwrap()).collect();
    for (a, call) in (0..).zip(calls) {
        assert_eq!(block_on(call).unwrap(), a + 1);
    }
    assert_eq!(down.start(3, 4).unwrap().wait().unwrap(), 7);
    // Each call's thread has given its stack back when the result is there.
    let limits = Limits {
        threads: 1,
        ..Limits::default()
    };
    let domain = IMAGE
        .domain()
        .imports(imports())
        .limits(limits)
        .load()
        .unwrap();
    drop(std::thread::scope(|scope| {
        // This thread has none, as the constructors would have taken it.
        scope
            .spawn(|| domain.restart_when_idle(PATIENCE).unwrap())
            .join()
    }));
    let add = domain.function::<fn(i8, u16) -> i8>("narrow").unwrap();
    for _ in 0..200 {
        assert_eq!(add.start(1, 1).unwrap().wait().unwrap(), 2);
    }
}

#[test]
fn a_call_is_cancelled_awaited_and_the_domain_restarted() {
    let domain = domain();
    let mut ended = 0;
    while ended < 20 {
        let call = forever(&domain);
        assert!(!call.has_ended());
        let waited = call.wait_for(Duration::from_millis(2));
        assert!(waited.is_none(), "it goes on");
        call.cancel();
        match block_on(call) {
            // Its thread had not come so far.
            Err(Error::Cancelled { fault: None, .. }) => continue,
            other => drop(assert_cancelled(other)),
        }
        works_again(&domain);
        ended += 1;
    }
}

#[test]
fn a_cancelled_call_names_the_function_that_it_was_in() {
    let (entered, waits) = std::sync::mpsc::channel();
    let imports = imports().function("host_lock", move |_: &Caller<'_>| {
        entered.send(()).unwrap();
        0u64
    });
    let domain = IMAGE.domain().imports(imports).load().unwrap();
    let holds = domain.function::<fn(i32) -> i32>("lock_then").unwrap();
    for _ in 0..20 {
        let call = holds.start(6).unwrap();
        waits.recv().unwrap();
        call.cancel();
        let place = assert_cancelled(call.wait());
        assert_eq!(place.as_deref(), Some("lock_then"));
        domain.restart_when_idle(PATIENCE).unwrap();
    }
}

/// What a program does that gives up on a call: the future goes, and with it the call.
#[test]
fn a_dropped_future_cancels_its_call() {
    let domain = domain();
    let waker = Waker::noop();
    for polled in [false, true, true] {
        let mut call = forever(&domain);
        if polled {
            let polled = std::pin::Pin::new(&mut call).poll(&mut Context::from_waker(waker));
            assert!(polled.is_pending());
        }
        let refused = domain.restart();
        drop(call);
        // While it ran, the domain was in use; if it had not begun, it never does.
        assert!(
            matches!(refused, Ok(()) | Err(Error::InUse { .. })),
            "{refused:?}"
        );
        domain.restart_when_idle(PATIENCE).unwrap();
        assert_eq!(
            domain
                .function::<fn() -> i32>("count")
                .unwrap()
                .call()
                .unwrap(),
            42
        );
    }
}

/// One canceller for a request: calls on several threads, started and not, and those that come too late.
#[test]
fn one_canceller_for_several_calls() {
    let (one, two) = (domain(), domain());
    let canceller = Canceller::new();
    let spin = |domain: &Domain| {
        let function = domain.function::<fn()>("loop_forever").unwrap();
        let limits = CallLimits {
            time: Some(PATIENCE),
            ..CallLimits::default()
        };
        function.cancellable(&canceller).limited(limits)
    };
    let started = spin(&one).start().unwrap();
    in_use(&one);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| spin(&two).call());
        in_use(&two);
        std::thread::sleep(Duration::from_millis(50));
        canceller.cancel();
        assert_cancelled(waits.join().unwrap());
    });
    assert_cancelled(started.wait());
    works_again(&one);
    works_again(&two);
    let late = spin(&one).call().unwrap_err();
    assert!(
        matches!(&late, Error::Cancelled { fault: None, .. }),
        "{late}"
    );
    assert!(late.is_cancelled() && late.to_string().contains("before it began"));
    assert!(!one.has_ended().unwrap());
    // A call's own canceller ends no other call of the same function.
    let count = one
        .function::<fn() -> i32>("count")
        .unwrap()
        .cancellable(&Canceller::new());
    drop(count.start().unwrap());
    let _whatever = one.restart_when_idle(PATIENCE);
    assert!(count.call().is_ok());
}

/// Cancelled in a host function, it ends when that returns; a host function's panic is the waiter's.
#[test]
fn a_call_that_is_in_a_host_function() {
    let (entered, waits) = std::sync::mpsc::channel();
    let imports = imports()
        .function("host_log", |_: &Caller<'_>, level: u32, _: Ptr<i8>| {
            assert_eq!(level, 0, "on purpose");
        })
        .function("host_again", move |caller: &Caller<'_>, _: i32| {
            let _sent = entered.send(());
            while !caller.is_out_of_time() {
                std::thread::sleep(Duration::from_millis(1));
            }
            0
        });
    let domain = IMAGE.domain().imports(imports).load().unwrap();
    let call = domain
        .function::<fn(i32) -> i32>("down")
        .unwrap()
        .start(1)
        .unwrap();
    waits.recv().unwrap();
    call.cancel();
    let error = call.wait().unwrap_err();
    assert!(
        matches!(&error, Error::Cancelled { fault: Some(_), .. }),
        "{error}"
    );
    domain.restart_when_idle(PATIENCE).unwrap();
    let call = domain
        .function::<fn(u32)>("log_it")
        .unwrap()
        .start(1)
        .unwrap();
    catch_unwind(AssertUnwindSafe(|| call.wait())).expect_err("the panic goes on here");
}

/// Waiting for a domain to be open again is given up as well.
#[test]
fn a_call_that_waits_for_a_restart_is_cancelled() {
    let domain = domain();
    let inside = forever(&domain);
    in_use(&domain);
    std::thread::scope(|scope| {
        let restarts = scope.spawn(|| domain.restart_when_idle(PATIENCE));
        let waits = loop {
            let call = domain
                .function::<fn() -> i32>("count")
                .unwrap()
                .start()
                .unwrap();
            match call.wait_for(Duration::from_millis(20)) {
                // Before the domain was closed.
                Some(result) => drop(result.unwrap()),
                None => break call,
            }
        };
        waits.cancel();
        let error = waits.wait().unwrap_err();
        assert!(
            matches!(&error, Error::Cancelled { fault: None, .. }),
            "{error}"
        );
        inside.cancel();
        assert_cancelled(inside.wait());
        restarts.join().unwrap().unwrap();
    });
}
