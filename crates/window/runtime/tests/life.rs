//! Where the life of a domain meets its callers: constructors, restarts and ends under traffic.

mod support;

use mullion_runtime::{
    CallArguments, CallError, Claimed, Entry, Error, Limits, LinkOptions, Returned, WindowDomain,
};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::{Loaded, Program, host};

/// `construct` takes a few microseconds to make the variable what `get` demands; `through` calls
/// what stands behind the import `ask`.
const PROGRAM: &str = "
    import ask
    import back
    .data
    value: .quad 0
    .text
    export construct
        movl $3000, %eax
    1:  subl $1, %eax
        jnz 1b
        movq $7, value(%rip)
        ret
    export get
        movq value(%rip), %rax
        cmpq $7, %rax
        je 1f
        ud2
    1:  ret
    export through
        subq $24, %r15
        call ask
        addq $24, %r15
        testb $0, -8(%r15)
        ret
    export call_back
        subq $24, %r15
        call back
        addq $24, %r15
        testb $0, -8(%r15)
        ret
    export wrong
        ud2
";

const PATIENT: Duration = Duration::from_secs(60);

fn patient(start_wait: Duration) -> Limits {
    Limits {
        start_wait,
        ..Limits::default()
    }
}

fn load(program: &Program, start_wait: Duration) -> Loaded {
    let nothing = || host(|_| Ok(1));
    program.load_with(vec![nothing(), nothing()], patient(start_wait))
}

fn entry(loaded: &Loaded, name: &str) -> Entry {
    let address = Claimed(loaded.address(name));
    loaded.domain.entry(address).unwrap()
}

fn start(loaded: &Loaded) -> Result<Returned, CallError> {
    let construct = entry(loaded, "construct");
    loaded
        .domain
        .start(construct, &CallArguments::default())
        .map_err(|error| *error)
}

/// What a link does with a call that fails: counts those that were refused as not open.
fn counting(refused: &Arc<AtomicU64>) -> LinkOptions {
    let refused = refused.clone();
    LinkOptions {
        failed: Some(Arc::new(move |error| match error {
            CallError::NotMade(Error::NotOpen) => {
                refused.fetch_add(1, Ordering::Relaxed);
                let integer = 7;
                Ok(Returned {
                    integer,
                    ..Returned::default()
                })
            }
            other => Err(Box::new(other)),
        })),
        ..LinkOptions::default()
    }
}

/// Restarts of one domain, each of which succeeds, while others call it all the time. No call
/// finds it half made.
fn restarts_under_traffic(count: u64, start_wait: Duration) -> u64 {
    let program = Program::new(PROGRAM);
    let callers = [(); 2].map(|()| load(&program, start_wait));
    let mut callee = load(&program, start_wait);
    callee.domain.restart().unwrap();
    start(&callee).unwrap();
    let refused = Arc::new(AtomicU64::new(0));
    for caller in &callers {
        let get = entry(&callee, "get");
        let options = counting(&refused);
        let link = caller.domain.link(0, &callee.domain, get, options);
        link.unwrap();
    }
    let (stop, calls) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let threads = callers.each_ref().map(|caller| {
            let (stop, calls) = (&stop, &calls);
            scope.spawn(move || {
                let through = entry(caller, "through");
                while !stop.load(Ordering::Relaxed) {
                    let called = caller.domain.call(through, &CallArguments::default());
                    assert_eq!(called.expect("whole or refused").integer, 7);
                    calls.fetch_add(1, Ordering::Relaxed);
                }
            })
        });
        let stopped = Stop(&stop);
        // On a busy machine all restarts could be over before the first call.
        while calls.load(Ordering::Relaxed) == 0
            && !threads.iter().any(|thread| thread.is_finished())
        {
            std::thread::yield_now();
        }
        for round in 0..count {
            let restarted = callee.domain.restart_when_idle(PATIENT);
            restarted.unwrap_or_else(|error| panic!("restart {round}: {error}"));
            start(&callee).unwrap_or_else(|error| panic!("start {round}: {error}"));
        }
        drop(stopped);
    });
    let calls = calls.into_inner();
    println!("{count} restarts, {calls} calls, {refused:?} refused");
    assert!(calls > 0);
    refused.load(Ordering::Relaxed)
}

/// Threads end when the test does, however that is.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// `scripts/restarts` asks for many more.
fn count() -> u64 {
    let asked = std::env::var("MULLION_RESTARTS").ok();
    asked.and_then(|asked| asked.parse().ok()).unwrap_or(2000)
}

#[test]
fn callers_that_wait_never_see_a_restart() {
    let refused = restarts_under_traffic(count(), PATIENT);
    assert_eq!(refused, 0, "they wait");
}

#[test]
fn callers_that_do_not_wait_are_refused_by_name() {
    restarts_under_traffic(count(), Duration::ZERO);
}

#[test]
fn others_find_a_domain_closed_until_it_is_started() {
    let program = Program::new(PROGRAM);
    let caller = load(&program, Duration::ZERO);
    let mut callee = load(&program, Duration::ZERO);
    let get = entry(&callee, "get");
    let link = caller
        .domain
        .link(0, &callee.domain, get, LinkOptions::default());
    link.unwrap();
    callee.domain.restart().unwrap();
    let error = caller.call("through", &[]).unwrap_err();
    assert!(error.to_string().contains("not open"), "{error}");
    start(&callee).unwrap();
    assert_eq!(caller.call("through", &[]).unwrap().integer, 7);
    let error = start(&callee).unwrap_err();
    assert!(
        matches!(error, CallError::NotMade(Error::NotOpen)),
        "{error}"
    );
}

/// A restart that is refused: the call that is in the domain calls back, and calls other
/// domains, and returns as if nothing had been.
#[test]
fn a_refused_restart_harms_no_call_in_flight() {
    let program = Program::new(PROGRAM);
    let caller = load(&program, Duration::ZERO);
    let shared: Arc<Mutex<Option<Loaded>>> = Arc::default();
    let held = shared.clone();
    let back = host(move |call| {
        let get = {
            let mut held = held.lock().unwrap();
            let callee = held.as_mut().unwrap();
            for _ in 0..3 {
                assert!(matches!(callee.domain.restart(), Err(Error::Busy)));
                let waited = callee.domain.restart_when_idle(Duration::from_millis(2));
                assert!(matches!(waited, Err(Error::Busy)));
            }
            assert!(!callee.domain.has_ended());
            // Closed to those that come, not to what is inside.
            assert!(callee.domain.close());
            Claimed(callee.address("get"))
        };
        let entry = call.entry(get).unwrap();
        let found = call
            .call(entry, &CallArguments::default(), None)
            .unwrap()
            .integer;
        held.lock().unwrap().as_ref().unwrap().domain.reopen();
        // Another thread asks all the time.
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut held = held.lock().unwrap();
                let callee = held.as_mut().unwrap();
                while !stop.load(Ordering::Relaxed) {
                    assert!(matches!(callee.domain.restart(), Err(Error::Busy)));
                }
            });
            let _stop = Stop(&stop);
            for _ in 0..20_000 {
                let nested = call.call(entry, &CallArguments::default(), None);
                assert_eq!(nested.unwrap().integer, 7);
            }
        });
        Ok(found)
    });
    let callee = program.load_with(vec![host(|_| Ok(1)), back], Limits::default());
    callee.call("construct", &[]).unwrap();
    let call_back = entry(&callee, "call_back");
    let link = caller
        .domain
        .link(0, &callee.domain, call_back, LinkOptions::default());
    link.unwrap();
    *shared.lock().unwrap() = Some(callee);
    assert_eq!(caller.call("through", &[]).unwrap().integer, 7);
    assert_eq!(caller.call("through", &[]).unwrap().integer, 7, "as it was");
}

/// A fault on one thread, while another one asks for a restart again and again and is refused:
/// the domain has ended, and stays so.
#[test]
fn a_refused_restart_takes_back_no_end() {
    let program = Program::new(PROGRAM);
    for _ in 0..200 {
        let (caller, other) = (
            load(&program, Duration::ZERO),
            load(&program, Duration::ZERO),
        );
        let inside = Arc::new(AtomicBool::new(false));
        let leave = Arc::new(AtomicBool::new(false));
        let (enters, leaves) = (inside.clone(), leave.clone());
        // Keeps the callee busy all the while.
        let back = host(move |_| {
            enters.store(true, Ordering::SeqCst);
            while !leaves.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            Ok(7)
        });
        let mut callee = program.load_with(vec![host(|_| Ok(1)), back], Limits::default());
        let link = |from: &Loaded, callee: &Loaded, name| {
            let entry = entry(callee, name);
            let made = from
                .domain
                .link(0, &callee.domain, entry, LinkOptions::default());
            made.unwrap();
        };
        link(&caller, &callee, "call_back");
        link(&other, &callee, "wrong");
        std::thread::scope(|scope| {
            let _leave = Stop(&leave);
            let stays = scope.spawn(|| caller.call("through", &[]).unwrap().integer);
            while !inside.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            let faults = scope.spawn(|| other.call("through", &[]).unwrap_err());
            while !faults.is_finished() {
                assert!(matches!(callee.domain.restart(), Err(Error::Busy)));
            }
            let error = faults.join().unwrap();
            assert!(error.to_string().contains("trap"), "{error}");
            assert!(callee.domain.has_ended(), "the end was taken back");
            assert!(matches!(callee.domain.restart(), Err(Error::Busy)));
            assert!(callee.domain.has_ended());
            leave.store(true, Ordering::SeqCst);
            assert_eq!(stays.join().unwrap(), 7, "it was in flight");
        });
        callee.domain.restart().unwrap();
        assert!(!callee.domain.has_ended());
    }
}

/// A constructor that faults, or whose host function panics, leaves a domain that has ended.
#[test]
fn constructors_that_do_not_return_leave_an_end() {
    let program = Program::new(PROGRAM);
    let panics = host(|_| panic!("in a constructor"));
    let fresh = |back| -> WindowDomain {
        let imports = vec![host(|_| Ok(1)), back];
        WindowDomain::new(program.image.clone(), imports, Limits::default()).unwrap()
    };
    let entry_of = |domain: &WindowDomain, loaded: &Loaded, name: &str| {
        let offset = loaded.address(name) - loaded.domain.memory().base();
        let address = Claimed(domain.memory().base() + offset);
        domain.entry(address).unwrap()
    };
    let names = load(&program, Duration::ZERO);
    let domain = fresh(host(|_| Ok(1)));
    let wrong = entry_of(&domain, &names, "wrong");
    assert!(matches!(
        domain
            .start(wrong, &CallArguments::default())
            .map_err(|error| *error),
        Err(CallError::Fault(_))
    ));
    assert!(domain.has_ended());
    let domain = fresh(panics);
    let call_back = entry_of(&domain, &names, "call_back");
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        domain.start(call_back, &CallArguments::default())
    }));
    assert!(panicked.is_err() && domain.has_ended());
}

/// Two domains whose constructors call each other do not wait for ever.
#[test]
fn a_circle_of_constructors_is_an_error() {
    let program = Program::new(PROGRAM);
    let fresh = || {
        let imports = vec![host(|_| Ok(1)), host(|_| Ok(1))];
        let limits = patient(PATIENT);
        WindowDomain::new(program.image.clone(), imports, limits).unwrap()
    };
    let names = load(&program, Duration::ZERO);
    let entry_of = |domain: &WindowDomain, name: &str| {
        let offset = names.address(name) - names.domain.memory().base();
        domain
            .entry(Claimed(domain.memory().base() + offset))
            .unwrap()
    };
    let (one, two) = (fresh(), fresh());
    two.open();
    let link = |from: &WindowDomain, to: &WindowDomain| {
        let through = entry_of(to, "through");
        from.link(0, to, through, LinkOptions::default()).unwrap();
    };
    link(&one, &two);
    link(&two, &one);
    let error = one.start(entry_of(&one, "through"), &CallArguments::default());
    let error = error.unwrap_err().to_string();
    assert!(error.contains("not open"), "{error}");
}
