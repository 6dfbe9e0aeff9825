//! One test for each limit, which exceeds it.

use crate::{IMAGE, fault, imports};
use mullion::{CallLimits, Caller, Cause, Domain, DomainMemory, Error, Imports, Limits, Ptr};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

fn limited(limits: Limits, imports: Imports) -> Domain {
    let domain = IMAGE.domain().limits(limits).imports(imports);
    domain.load().expect("a domain")
}

fn count(domain: &Domain) -> Result<i32, Error> {
    domain.function::<fn() -> i32>("count")?.call()
}

/// An extension calls itself through the host, so many times.
fn deeper() -> (Imports, Arc<OnceLock<Domain>>) {
    let own: Arc<OnceLock<Domain>> = Arc::default();
    let inside = own.clone();
    let imports = imports().function("host_again", move |_: &Caller<'_>, depth: i32| {
        let domain = inside.get().expect("set before the call");
        domain.function::<fn(i32) -> i32>("down")?.call(depth)
    });
    (imports, own)
}

#[test]
fn time_of_a_call() {
    let domain = limited(Limits::default(), imports());
    let granted = Duration::from_millis(10);
    let limits = CallLimits {
        time: Some(granted),
        ..CallLimits::default()
    };
    let spin = domain.function::<fn()>("loop_forever").unwrap();
    let fault = fault(spin.limited(limits).call());
    assert_eq!(*fault.cause(), Cause::TimeLimit { granted });
    domain.restart().unwrap();
    let down = domain.function::<fn(i32) -> i32>("down").unwrap();
    assert_eq!(down.limited(limits).call(0).unwrap(), 0, "it is in time");
}

/// The module's own code is interrupted wherever it is. A host function is not: it runs to its end, although its call's
/// time is over, and the call is stopped at its return. Nothing of the module runs in between.
#[test]
fn time_that_ends_in_a_host_function_stops_the_call_at_its_return() {
    let granted = Duration::from_millis(10);
    let limits = CallLimits {
        time: Some(granted),
        ..CallLimits::default()
    };
    let done: Arc<Mutex<Vec<&str>>> = Arc::default();
    let log = done.clone();
    let imports = imports().function("host_lock", move |caller: &Caller<'_>| {
        log.lock().unwrap().push("begun");
        assert!(!caller.is_out_of_time());
        while !caller.is_out_of_time() {
            std::hint::spin_loop();
        }
        // The signal has come. More of the host's own work follows, and a lock is held meanwhile.
        let mut log = log.lock().unwrap();
        std::thread::sleep(2 * granted);
        log.push("ended");
        7u64
    });
    let domain = limited(Limits::default(), imports);
    let locks = domain.function::<fn(i32) -> i32>("lock_and").unwrap();
    let stopped = fault(locks.limited(limits).call(0));
    assert_eq!(*stopped.cause(), Cause::TimeLimit { granted });
    assert_eq!(stopped.symbol().as_deref(), Some("lock_and"));
    // The module would have called it a second time.
    assert_eq!(*done.lock().unwrap(), ["begun", "ended"]);
    domain.restart().unwrap();

    let spin = domain.function::<fn()>("loop_forever").unwrap();
    let stopped = fault(spin.limited(limits).call());
    assert_eq!(*stopped.cause(), Cause::TimeLimit { granted });
    assert_eq!(stopped.symbol().as_deref(), Some("loop_forever"));
}

#[test]
fn time_of_all_calls() {
    let granted = Duration::from_millis(20);
    let limits = Limits {
        total_time: Some(granted),
        ..Limits::default()
    };
    let domain = limited(limits, imports());
    let spin = domain.function::<fn()>("loop_forever").unwrap();
    assert_eq!(
        *fault(spin.call()).cause(),
        Cause::TotalTimeLimit { granted }
    );
    domain.restart().unwrap();
    // Used up by host functions, in many calls that return.
    let (imports, own) = deeper();
    let slow = imports.function("host_again", |_: &Caller<'_>, _: i32| {
        std::thread::sleep(Duration::from_millis(7));
        0
    });
    drop(own);
    let limits = Limits {
        total_time: Some(granted),
        ..Limits::default()
    };
    let domain = limited(limits, slow);
    let down = domain.function::<fn(i32) -> i32>("down").unwrap();
    let error = (0..5)
        .find_map(|_| down.call(1).err())
        .expect("35 ms are more than 20");
    match error {
        Error::TimeSpent { granted: all, .. } => assert_eq!(all, granted),
        other => assert_eq!(
            *other.fault().expect("a fault").cause(),
            Cause::TotalTimeLimit { granted }
        ),
    }
}

#[test]
fn gate_calls_of_a_domain_and_of_a_call() {
    let limits = Limits {
        gate_calls: Some(3),
        ..Limits::default()
    };
    // In the first, each nested call has its own; in the second, all are of one.
    let (first, own) = deeper();
    let domain = limited(limits, first);
    own.set(domain.clone()).expect("once");
    let down = domain.function::<fn(i32) -> i32>("down").unwrap();
    assert_eq!(down.call(9).unwrap(), 9);
    let text = domain.string_in("text").unwrap();
    let speak = domain.function::<fn(Ptr<u8>) -> i32>("speak").unwrap();
    let few = CallLimits {
        gate_calls: Some(1),
        ..CallLimits::default()
    };
    let fault_of_speak = fault(speak.limited(few).call(text.ptr()));
    assert_eq!(*fault_of_speak.cause(), Cause::GateLimit { granted: 1 });

    let (second, own) = deeper();
    let domain = limited(Limits::default(), second);
    own.set(domain.clone()).expect("once");
    let down = domain.function::<fn(i32) -> i32>("down").unwrap();
    let limits = CallLimits {
        gate_calls: Some(3),
        ..CallLimits::default()
    };
    assert_eq!(down.limited(limits).call(3).unwrap(), 3);
    let error = down.limited(limits).call(4).unwrap_err();
    let inner = error.to_string();
    assert!(inner.contains("limit of 3 gate calls exceeded"), "{inner}");
}

#[test]
fn depth_of_a_domain_and_of_a_call() {
    let limits = Limits {
        depth: 5,
        ..Limits::default()
    };
    let (imports, own) = deeper();
    let domain = limited(limits, imports);
    own.set(domain.clone()).expect("once");
    let down = domain.function::<fn(i32) -> i32>("down").unwrap();
    assert_eq!(down.call(4).unwrap(), 4);
    let deep = |error: Error| error.to_string().contains("invocations are nested");
    assert!(deep(down.call(5).unwrap_err()));
    let limits = CallLimits {
        depth: Some(3),
        ..CallLimits::default()
    };
    assert_eq!(down.limited(limits).call(2).unwrap(), 2);
    assert!(deep(down.limited(limits).call(3).unwrap_err()));
    assert_eq!(down.call(4).unwrap(), 4, "afterwards as before");
}

#[test]
fn output_to_streams_and_by_host_functions() {
    let limits = || Limits {
        output: Some(40),
        ..Limits::default()
    };
    let domain = limited(limits(), imports());
    let speak = domain.function::<fn(Ptr<u8>) -> i32>("speak").unwrap();
    for _ in 0..2 {
        let text = domain.string_in("12345").unwrap();
        assert_eq!(speak.call(text.ptr()).unwrap(), 0, "22 bytes");
        let fault = fault(speak.call(text.ptr()));
        assert_eq!(*fault.cause(), Cause::OutputLimit { granted: 40 });
        domain.restart().unwrap();
    }
    let log = imports().function("host_log", |caller: &Caller<'_>, _: u32, text: Ptr<i8>| {
        let text = text.string(caller, 100)?;
        caller.charge_output(text.len() as u64)
    });
    let domain = limited(limits(), log);
    let log_it = domain.function::<fn(u32)>("log_it").unwrap();
    for _ in 0..3 {
        log_it.call(1).unwrap();
    }
    let fault = fault(log_it.call(1));
    assert_eq!(*fault.cause(), Cause::OutputLimit { granted: 40 });
    assert!(fault.to_string().contains("output limit of 40 bytes"));
    assert!(matches!(count(&domain), Err(Error::Ended { .. })));
}

#[test]
fn memory() {
    let limits = Limits {
        memory: 1 << 20,
        ..Limits::default()
    };
    let domain = limited(limits, imports());
    let buffer = domain.alloc::<u8>(1 << 20);
    assert!(matches!(buffer.err(), Some(Error::NoMemory { .. })));
    assert!(domain.alloc::<u8>(1 << 16).is_ok());
    let none = IMAGE.domain().imports(imports()).limits(Limits {
        memory: 4096,
        ..Limits::default()
    });
    let refused = none.load().unwrap_err();
    assert!(refused.to_string().contains("bytes of memory"), "{refused}");
}

#[test]
fn threads() {
    let limits = Limits {
        threads: 1,
        ..Limits::default()
    };
    let domain = limited(limits, imports());
    count(&domain).unwrap();
    let other = std::thread::scope(|scope| scope.spawn(|| count(&domain)).join().unwrap());
    let error = other.unwrap_err();
    assert!(error.to_string().contains("data stacks"), "{error}");
}
