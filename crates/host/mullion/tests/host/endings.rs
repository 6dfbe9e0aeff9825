//! Each way in which a call ends, on its own, in a callback and in the call of another domain, on two threads at once:
//! what its host is told, what becomes of the domain, and that what the call held is given back, and nothing else.

use crate::{IMAGE, imports};
use mullion::{Attempt, CallLimits, Caller, Cause, Domain, Error, Fault, Function, Limits};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What is held now.
#[derive(Clone, Default)]
struct Locks(Arc<AtomicU32>);

struct Guard(Locks);

impl Locks {
    fn hold(&self, caller: &Caller<'_>) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed);
        caller.hold(Guard(self.clone())).number()
    }
    fn held(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How a call ended; `None`: with a panic of the host's.
type Ended = Option<Result<i32, Error>>;

fn ended(call: impl FnOnce() -> Result<i32, Error>) -> Ended {
    catch_unwind(AssertUnwindSafe(call)).ok()
}

type IsEnd = fn(&Ended) -> bool;

/// The ways that `lock_then` knows, and what each must come to.
const WAYS: [(i32, IsEnd); 13] = [
    (0, |ended| matches!(ended, Some(Ok(7)))),
    (1, |ended| {
        let write = |cause: &Cause| {
            matches!(
                cause,
                Cause::Access {
                    attempt: Attempt::Write,
                    ..
                }
            )
        };
        fault(ended, write)
            .is_some_and(|fault| fault.address().map(|address| address & 0xffff_ffff) == Some(0x18))
    }),
    (2, |ended| {
        fault(ended, |cause| *cause == Cause::Division).is_some()
    }),
    (3, |ended| {
        fault(ended, |cause| *cause == Cause::FailedLabel).is_some()
    }),
    (4, |ended| {
        fault(ended, |cause| *cause == Cause::Trap).is_some()
    }),
    (5, |ended| {
        let overflow = |cause: &Cause| matches!(cause, Cause::DataStackOverflow { .. });
        fault(ended, overflow).is_some()
    }),
    (LOOPS, |ended| {
        let time = |cause: &Cause| matches!(cause, Cause::TimeLimit { .. });
        fault(ended, time).is_some()
    }),
    (7, |ended| {
        fault(ended, |cause| *cause == Cause::Raised { signal: 6 }).is_some()
    }),
    (8, |ended| {
        matches!(ended, Some(Err(Error::Exit { status: 3, .. })))
    }),
    (9, |ended| matches!(ended, Some(Err(Error::Refused { .. })))),
    (10, |ended| ended.is_none()),
    (11, |ended| {
        let output = |cause: &Cause| *cause == Cause::OutputLimit { granted: 500 };
        fault(ended, output).is_some()
    }),
    (12, |ended| {
        let gates = |cause: &Cause| *cause == Cause::GateLimit { granted: GATES };
        fault(ended, gates).is_some()
    }),
];
const LOOPS: i32 = 6;
const GATES: u64 = 100;

/// The fault, if it has such a cause, and names the domain, the function and its line.
fn fault(ended: &Ended, is_it: fn(&Cause) -> bool) -> Option<&Fault> {
    let fault = ended.as_ref()?.as_ref().err()?.fault()?;
    // Innermost may be the C library's function, which has no lines.
    let frames = fault.backtrace();
    let source = frames
        .iter()
        .flat_map(|frame| &frame.locations)
        .find(|location| {
            let file = location.file.as_deref();
            location.line.is_some() && file.is_some_and(|file| file.ends_with("everything.c"))
        });
    let named = fault.domain() == "wrong" && fault.symbol().is_some() && source.is_some();
    (named && is_it(fault.cause())).then_some(fault)
}

/// A domain whose `lock_then` goes wrong, and whose `down` calls `again`.
fn load(locks: &Locks, again: impl Fn(&Caller<'_>) + Send + Sync + 'static) -> Domain {
    let locks = locks.clone();
    let imports = imports()
        .function("host_lock", move |caller: &Caller<'_>| locks.hold(caller))
        .function(
            "host_again",
            move |caller: &Caller<'_>, what: i32| match what {
                -9 => Err(Error::LongString { longest: 9 }),
                -10 => panic!("on purpose"),
                _ => {
                    again(caller);
                    Ok(0)
                }
            },
        );
    let limits = Limits {
        stack: 1 << 17,
        output: Some(500),
        gate_calls: Some(GATES),
        ..Limits::default()
    };
    let domain = IMAGE.domain().name("wrong").imports(imports).limits(limits);
    domain.load().expect("a domain")
}

/// With a limit on time for the way that loops, and for no other: a busy machine lets them wait.
fn limited(domain: &Domain, name: &str, how: i32) -> Function<fn(i32) -> i32> {
    let function = domain.function::<fn(i32) -> i32>(name).expect("an export");
    function.limited(CallLimits {
        time: (how == LOOPS).then_some(Duration::from_millis(20)),
        ..CallLimits::default()
    })
}

/// Whether the domain takes calls as the ending demands; then it is as new.
fn is_marked(domain: &Domain, ended: &Ended) {
    let over = matches!(ended, Some(Err(Error::Fault(_) | Error::Exit { .. })));
    assert_eq!(domain.has_ended().unwrap(), over);
    let count = domain.function::<fn() -> i32>("count").unwrap();
    assert_eq!(matches!(count.call(), Err(Error::Ended { .. })), over);
    domain.restart().unwrap();
    assert_eq!(count.call().unwrap(), 42);
}

fn alone(how: i32, is_right: fn(&Ended) -> bool) {
    let locks = Locks::default();
    let domain = load(&locks, |_| {});
    let ended = ended(|| limited(&domain, "lock_then", how).call(how));
    assert!(is_right(&ended), "{how}: {ended:?}");
    assert_eq!(locks.held(), 0, "{how}");
    is_marked(&domain, &ended);
}

/// Host, `outer`, host, and there `inner`, which is `outer` itself or another one.
fn nested(how: i32, is_right: fn(&Ended) -> bool, other: Option<Domain>, locks: &Locks) {
    let seen: Arc<Mutex<Option<Ended>>> = Arc::default();
    let (told, inside, inner) = (seen.clone(), locks.clone(), other.clone());
    let outer = load(locks, move |caller| {
        inside.hold(caller);
        let ended = ended(|| match &inner {
            None => caller
                .export::<fn(i32) -> i32>("lock_then")?
                .call(caller, how),
            Some(inner) => limited(inner, "lock_then", how).call(how),
        });
        assert_eq!(
            inside.held(),
            1,
            "{how}: the outer call's own, and it alone"
        );
        *told.lock().unwrap() = Some(ended);
    });
    // It goes on, or ends with the inner one: that is not looked at here.
    let _outer = ended(|| limited(&outer, "down", how).call(1));
    assert_eq!(locks.held(), 0, "{how}");
    let ended = seen.lock().unwrap().take().expect("it was there");
    assert!(is_right(&ended), "{how}: {ended:?}");
    match &other {
        None => is_marked(&outer, &ended),
        Some(inner) => {
            is_marked(inner, &ended);
            // Its time was up as well, if that was it.
            assert_eq!(outer.has_ended().unwrap(), how == LOOPS);
        }
    }
}

#[test]
fn however_a_call_ends_its_host_is_told_and_nothing_stays_held() {
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for (how, is_right) in WAYS {
                    alone(how, is_right);
                    nested(how, is_right, None, &Locks::default());
                    let locks = Locks::default();
                    let inner = load(&locks, |_| {});
                    nested(how, is_right, Some(inner), &locks);
                }
            });
        }
    });
}
