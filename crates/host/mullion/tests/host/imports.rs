//! Host functions: arguments, errors, panics, calls back, what belongs to an invocation.

use crate::{IMAGE, domain, fault, imports};
use mullion::{Caller, Domain, Error, Held, Ptr};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

#[test]
fn arguments_arrive_and_results_return() {
    let said = Arc::new(Mutex::new(Vec::new()));
    let inside = said.clone();
    let imports = imports()
        .function(
            "host_log",
            move |caller: &Caller<'_>, level: u32, message: Ptr<i8>| {
                let message = message.string(caller, 100)?;
                inside
                    .lock()
                    .unwrap()
                    .push((caller.name().to_owned(), level, message));
                Ok::<(), Error>(())
            },
        )
        .function(
            "host_mix",
            |_: &Caller<'_>, a: f64, b: u32, c: f32, d: i8| {
                a + f64::from(b) * 10.0 + f64::from(c) * 100.0 + f64::from(d) * 1000.0
            },
        );
    let domain = IMAGE
        .domain()
        .name("talker")
        .imports(imports)
        .load()
        .unwrap();
    domain
        .function::<fn(u32)>("log_it")
        .unwrap()
        .call(7)
        .unwrap();
    assert_eq!(
        *said.lock().unwrap(),
        [("talker".to_owned(), 7, "from inside".to_owned())]
    );
    let mix = domain.function::<fn() -> f64>("mix").unwrap();
    assert_eq!(mix.call().unwrap(), 1.5 + 20.0 + 325.0 - 4000.0);
}

#[test]
fn a_host_function_calls_back_a_pointer_that_it_was_given() {
    let domain = domain();
    let apply = domain.function::<fn(i32) -> i32>("apply_here").unwrap();
    assert_eq!(apply.call(50).unwrap(), 100);
    let wrong = domain
        .function::<fn(i32) -> i32>("apply_wrong")
        .unwrap()
        .call(1);
    let Err(Error::Refused { source, .. }) = wrong else {
        panic!("data was called as a function: {wrong:?}");
    };
    let source = source.downcast::<Error>().unwrap();
    assert!(matches!(*source, Error::NotAFunction { .. }), "{source}");
    assert_eq!(apply.call(1).unwrap(), 2, "the domain goes on");
}

#[test]
fn calls_nest_through_two_domains_and_back() {
    // host -> A -> host -> B -> host -> A ...
    let domains: Arc<OnceLock<[Domain; 2]>> = Arc::default();
    let deepest = Arc::new(AtomicU32::new(0));
    let make = |own: usize| {
        let (domains, deepest) = (domains.clone(), deepest.clone());
        let imports = imports().function("host_again", move |_: &Caller<'_>, depth: i32| {
            deepest.fetch_add(1, Ordering::Relaxed);
            let other = &domains.get().expect("set before the call")[1 - own];
            other.function::<fn(i32) -> i32>("down")?.call(depth)
        });
        IMAGE.domain().imports(imports).load().unwrap()
    };
    let both = [make(0), make(1)];
    domains.set(both.clone()).expect("set once");
    let down = both[0].function::<fn(i32) -> i32>("down").unwrap();
    assert_eq!(down.call(40).unwrap(), 40);
    assert_eq!(deepest.load(Ordering::Relaxed), 40);
    let too_deep = down.call(1000);
    assert!(
        matches!(root(&too_deep), Some(Error::Depth { depth: 100, .. })),
        "{too_deep:?}"
    );
    assert_eq!(down.call(3).unwrap(), 3);
}

/// The innermost of errors that host functions have passed on.
fn root<T>(result: &Result<T, Error>) -> Option<&Error> {
    let mut error = result.as_ref().err()?;
    while let Error::Refused { source, .. } = error {
        error = source.downcast_ref()?;
    }
    Some(error)
}

#[test]
fn an_export_can_be_called_from_a_host_function() {
    let imports = imports().function("host_again", |caller: &Caller<'_>, depth: i32| {
        caller.export::<fn(i32) -> i32>("down")?.call(caller, depth)
    });
    let domain = IMAGE.domain().imports(imports).load().unwrap();
    assert_eq!(
        domain
            .function::<fn(i32) -> i32>("down")
            .unwrap()
            .call(20)
            .unwrap(),
        20
    );
}

#[test]
fn an_error_ends_the_call_and_not_the_domain() {
    let imports = imports().function("host_again", |_: &Caller<'_>, _: i32| {
        Err::<i32, _>(std::io::Error::other("not today"))
    });
    let domain = IMAGE.domain().imports(imports).load().unwrap();
    let down = domain.function::<fn(i32) -> i32>("down").unwrap();
    let error = down.call(1).unwrap_err();
    assert!(matches!(error, Error::Refused { .. }));
    assert!(
        error
            .to_string()
            .ends_with("a host function ended the call: not today"),
        "{error}"
    );
    assert_eq!(down.call(0).unwrap(), 0);
}

#[test]
fn a_panic_goes_on_behind_the_domain() {
    let imports = imports().function("host_again", |_: &Caller<'_>, _: i32| -> i32 {
        panic!("on purpose")
    });
    let domain = IMAGE.domain().imports(imports).load().unwrap();
    let down = domain.function::<fn(i32) -> i32>("down").unwrap();
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| down.call(1)));
    let payload = caught.unwrap_err();
    assert_eq!(payload.downcast_ref::<&str>(), Some(&"on purpose"));
    assert_eq!(down.call(0).unwrap(), 0);
    domain.restart().expect("nothing holds it any more");
    domain.unload().unwrap();
}

#[test]
fn what_an_invocation_holds_is_released_when_it_faults_and_when_it_returns() {
    struct Guard(Arc<AtomicU32>);
    impl Drop for Guard {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::Relaxed);
        }
    }
    let locked = Arc::new(AtomicU32::new(0));
    let imports = imports()
        .function("host_lock", |caller: &Caller<'_>| {
            let locked = caller.user::<Arc<AtomicU32>>().expect("attached").clone();
            locked.fetch_add(1, Ordering::Relaxed);
            caller.hold(Guard(locked)).number()
        })
        .function("host_unlock", |caller: &Caller<'_>, number: u64| {
            i32::from(caller.release(Held::<Guard>::from_number(number)).is_some())
        });
    let domain = IMAGE
        .domain()
        .imports(imports)
        .user(locked.clone())
        .load()
        .unwrap();
    let lock_and = domain.function::<fn(i32) -> i32>("lock_and").unwrap();
    assert_eq!(lock_and.call(0).unwrap(), 1, "it was released");
    assert_eq!(
        locked.load(Ordering::Relaxed),
        0,
        "what it had not released is"
    );
    fault(lock_and.call(1));
    assert_eq!(locked.load(Ordering::Relaxed), 0);
    domain.restart().unwrap();
    let unlock = domain.function::<fn(u64) -> i32>("unlock").unwrap();
    for number in [0, 1, 2, 3, u64::MAX] {
        assert_eq!(
            unlock.call(number).unwrap(),
            0,
            "{number} is nobody's any more"
        );
    }
}

#[test]
fn a_domain_does_not_release_what_another_ones_call_holds() {
    let release = |caller: &Caller<'_>, number: u64| {
        i32::from(caller.release(Held::<u32>::from_number(number)).is_some())
    };
    let other = IMAGE
        .domain()
        .imports(imports().function("host_unlock", release));
    let other = other.load().unwrap();
    // What the one holds, the other one is asked to release, on top of that very call.
    let imports = imports()
        .function("host_lock", |caller: &Caller<'_>| {
            caller.hold(7u32).number()
        })
        .function("host_unlock", move |caller: &Caller<'_>, number: u64| {
            let unlock = other.function::<fn(u64) -> i32>("unlock")?;
            assert_eq!(unlock.call(number)?, 0, "it is not the other one's");
            Ok::<_, Error>(
                caller
                    .release(Held::<u32>::from_number(number))
                    .unwrap_or(0) as i32,
            )
        });
    let one = IMAGE.domain().imports(imports).load().unwrap();
    let lock_and = one.function::<fn(i32) -> i32>("lock_and").unwrap();
    assert_eq!(lock_and.call(0).unwrap(), 7);
}
