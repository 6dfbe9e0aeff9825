//! Calls that are cancelled from other threads: they end, and nothing else does.

mod support;

use mullion_runtime::{
    CallArguments, CallError, CallLimits, Canceller, Cause, Claimed, Error, Limits, Returned,
};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::time::{Duration, Instant};
use support::{Loaded, Program, host};

/// Counts to its argument; never returns; calls its import once, or for ever.
const PROGRAM: &str = "
    import outside
    export count
        xorl %eax, %eax
    1:  addl $1, %eax
        cmpl %edi, %eax
        jb 1b
        ret
    export forever
        jmp forever
    export ask
        subq $8, %r15
        call outside
        addq $8, %r15
        testb $0, -8(%r15)
        ret
    export ask_forever
        subq $8, %r15
    2:  call outside
        jmp 2b
";

const LONG: Duration = Duration::from_secs(3600);

fn load(
    outside: impl Fn(&mut mullion_runtime::GateCall<'_>) -> Result<u64, mullion_runtime::CallEnd>
    + Send
    + Sync
    + 'static,
) -> Loaded {
    static PROGRAM_ONCE: OnceLock<Program> = OnceLock::new();
    let program = PROGRAM_ONCE.get_or_init(|| Program::new(PROGRAM));
    program.load_with(vec![host(outside)], Limits::default())
}

fn quiet() -> Loaded {
    load(|_| Ok(7))
}

fn call(
    loaded: &Loaded,
    name: &str,
    argument: u64,
    canceller: &Canceller,
) -> Result<Returned, CallError> {
    let entry = loaded.domain.entry(Claimed(loaded.address(name)))?;
    let arguments = CallArguments::new(&[argument]);
    let called =
        loaded
            .domain
            .call_cancellable(entry, &arguments, None, std::slice::from_ref(canceller));
    called.map_err(|error| *error)
}

/// Whether it was ended; anything but that and a result is wrong.
fn was_cancelled(result: Result<Returned, CallError>) -> bool {
    match result {
        Ok(_) => false,
        Err(CallError::Fault(fault)) if fault.cause == Cause::Cancelled => true,
        Err(CallError::NotMade(Error::Cancelled)) => true,
        Err(other) => panic!("neither returned nor cancelled: {other:?}"),
    }
}

/// Cancels when `ready` has been told, or a little later.
fn cancelled_soon(loaded: &Loaded, name: &str) -> Result<Returned, CallError> {
    let canceller = Canceller::new();
    std::thread::scope(|scope| {
        let other = canceller.clone();
        scope.spawn(move || {
            std::thread::sleep(Duration::from_millis(5));
            other.cancel();
        });
        call(loaded, name, 0, &canceller)
    })
}

#[test]
fn a_call_that_would_never_end_is_ended_and_its_domain_with_it() {
    let mut loaded = quiet();
    for name in ["forever", "ask_forever"] {
        let fault = match cancelled_soon(&loaded, name) {
            Err(CallError::Fault(fault)) => fault,
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(fault.cause, Cause::Cancelled);
        assert!(
            fault.to_string().contains("cancelled by the host"),
            "{fault}"
        );
        assert!(loaded.domain.has_ended());
        loaded.domain.restart().unwrap();
        loaded.domain.open();
        assert_eq!(loaded.call("count", &[9]).unwrap().integer, 9);
    }
}

#[test]
fn a_call_that_is_cancelled_before_is_not_made() {
    let loaded = quiet();
    let canceller = Canceller::new();
    canceller.cancel();
    canceller.cancel();
    assert!(canceller.is_cancelled());
    let refused = call(&loaded, "count", 1, &canceller);
    assert!(matches!(refused, Err(CallError::NotMade(Error::Cancelled))));
    assert!(!loaded.domain.has_ended());
    assert_eq!(loaded.call("count", &[3]).unwrap().integer, 3);
}

/// One canceller for calls of several threads: all of them end, and one without it goes on.
#[test]
fn all_calls_of_one_canceller_end_and_no_other() {
    let canceller = Canceller::new();
    let (begun, waits) = mpsc::channel();
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for _ in 0..3 {
            let (canceller, begun) = (canceller.clone(), begun.clone());
            threads.push(scope.spawn(move || {
                let loaded = load(move |_| {
                    let _sent = begun.send(());
                    Ok(0)
                });
                was_cancelled(call(&loaded, "ask_forever", 0, &canceller))
            }));
        }
        drop(begun);
        for _ in 0..100 {
            waits.recv().unwrap();
        }
        let stays = scope.spawn(|| {
            let loaded = quiet();
            was_cancelled(call(&loaded, "count", 50_000_000, &Canceller::new()))
        });
        std::thread::sleep(Duration::from_millis(2));
        canceller.cancel();
        while waits.recv().is_ok() {}
        for thread in threads {
            assert!(thread.join().unwrap());
        }
        assert!(!stays.join().unwrap());
    });
}

/// The call is in a host function, which is in a call of another domain: both end. A host function that
/// waits in the kernel is interrupted.
#[test]
fn what_is_nested_in_the_call_ends_too() {
    let inner = Arc::new(quiet());
    let nested = inner.clone();
    let outer = load(move |_| match nested.call("forever", &[]) {
        Err(CallError::Fault(fault)) => {
            assert_eq!(fault.cause, Cause::Cancelled);
            Ok(1)
        }
        other => panic!("{other:?}"),
    });
    assert!(was_cancelled(cancelled_soon(&outer, "ask_forever")));
    assert!(outer.domain.has_ended() && inner.domain.has_ended());

    let slept = Arc::new(AtomicU64::new(0));
    let noted = slept.clone();
    let waiting = load(move |caller| {
        let begun = Instant::now();
        while !caller.is_out_of_time() {
            let time = libc::timespec {
                tv_sec: 3600,
                tv_nsec: 0,
            };
            // SAFETY: plain structures.
            unsafe { libc::nanosleep(&time, std::ptr::null_mut()) };
        }
        noted.store(begun.elapsed().as_secs(), Ordering::Relaxed);
        Ok(0)
    });
    assert!(was_cancelled(cancelled_soon(&waiting, "ask")));
    assert!(slept.load(Ordering::Relaxed) < 3000);
}

/// What was called on the way, and has a limit of its own, has the number of its own too: it ends, and what
/// it was nested in as well. What the thread does next does not.
#[test]
fn a_nested_call_with_a_limit_of_its_own_ends_and_the_next_call_does_not() {
    let inner = Arc::new(quiet());
    let nested = inner.clone();
    let outer = load(move |_| {
        let limits = CallLimits {
            time: Some(LONG),
            ..CallLimits::default()
        };
        let entry = nested
            .domain
            .entry(Claimed(nested.address("forever")))
            .unwrap();
        let called = nested
            .domain
            .call_limited(entry, &CallArguments::default(), &limits);
        // The outer one may get as far as here again before it is ended as well.
        match called.map_err(|error| *error) {
            Err(CallError::NotMade(Error::Ended)) => {}
            other => assert!(was_cancelled(other)),
        }
        Ok(0)
    });
    assert!(was_cancelled(cancelled_soon(&outer, "ask_forever")));
    assert!(inner.domain.has_ended());
    let other = quiet();
    assert_eq!(
        other.call("count", &[30_000_000]).unwrap().integer,
        30_000_000
    );
}

/// A call within a cancellable one that is itself cancelled: only that one ends.
#[test]
fn the_inner_of_two_cancellable_calls_ends_alone() {
    let inner = Arc::new(quiet());
    let nested = inner.clone();
    let outer = load(move |_| {
        assert!(was_cancelled(cancelled_soon(&nested, "forever")));
        Ok(5)
    });
    let canceller = Canceller::new();
    assert_eq!(call(&outer, "ask", 0, &canceller).unwrap().integer, 5);
    assert_eq!(call(&outer, "count", 9, &canceller).unwrap().integer, 9);
    assert!(inner.domain.has_ended() && !outer.domain.has_ended());
}

/// A host function cancels the very call that it is in.
#[test]
fn a_call_cancels_itself() {
    let canceller = Canceller::new();
    let own = canceller.clone();
    let loaded = load(move |_| {
        own.cancel();
        Ok(0)
    });
    assert!(was_cancelled(call(&loaded, "ask", 0, &canceller)));
    assert!(loaded.domain.has_ended());
}

/// A panic of a host function passes through a cancellable call, and leaves nothing of it behind.
#[test]
fn a_panic_takes_the_call_off_the_list() {
    let loaded = load(|_| panic!("on purpose"));
    let canceller = Canceller::new();
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        call(&loaded, "ask", 0, &canceller)
    }));
    assert!(caught.is_err());
    canceller.cancel();
    assert_eq!(
        loaded.call("count", &[20_000_000]).unwrap().integer,
        20_000_000
    );
}

/// 100,000 times a call ends just as it is cancelled, and its thread goes on at once with a call of another
/// domain, with a limit or without: that one always returns. Both outcomes are seen.
#[test]
fn cancels_that_race_with_the_end_hit_nothing_else() {
    let races: u64 = match std::env::var("MULLION_RACES") {
        Ok(text) => text.parse().expect("a number"),
        Err(_) => 100_000,
    };
    let mut first = load(|_| Ok(1));
    let other = quiet();
    let next = Arc::new(Mutex::new(None::<Canceller>));
    let begun = Arc::new(AtomicU64::new(0));
    let cancels = {
        let (next, begun) = (next.clone(), begun.clone());
        std::thread::spawn(move || {
            for race in 1..=races {
                while begun.load(Ordering::Acquire) < race {
                    std::thread::yield_now();
                }
                for _ in 0..race % 200 {
                    std::hint::spin_loop();
                }
                let canceller = next.lock().unwrap().take();
                canceller.expect("one for each race").cancel();
            }
        })
    };
    let mut seen = [0_u64; 3];
    let mut length = 2_000_u64;
    for race in 0..races {
        let canceller = Canceller::new();
        // The one before has been taken.
        while next.lock().unwrap().is_some() {
            std::thread::yield_now();
        }
        *next.lock().unwrap() = Some(canceller.clone());
        begun.store(race + 1, Ordering::Release);
        let name = ["count", "count", "ask"][race as usize % 3];
        let result = call(&first, name, length, &canceller);
        // The length follows the race, so that both ends come close to each other.
        let outcome = match &result {
            Ok(_) => 0,
            Err(CallError::NotMade(_)) => 1,
            Err(_) => 2,
        };
        seen[outcome] += 1;
        length = match outcome {
            0 => (length + length / 16 + 1).min(1_000_000),
            _ => (length - length / 16).max(16),
        };
        let ended = was_cancelled(result) && outcome == 2;
        // What the thread does next is not ended, though the other one may still be cancelling.
        let after = match race % 2 {
            0 => other.call("count", &[500]),
            _ => {
                let limits = CallLimits {
                    time: Some(LONG),
                    ..CallLimits::default()
                };
                let entry = other.domain.entry(Claimed(other.address("count"))).unwrap();
                let arguments = CallArguments::new(&[500]);
                other
                    .domain
                    .call_limited(entry, &arguments, &limits)
                    .map_err(|error| *error)
            }
        };
        assert_eq!(
            after.expect("nobody cancels it").integer,
            500,
            "race {race}"
        );
        assert_eq!(first.domain.has_ended(), ended, "race {race}");
        if ended {
            first.domain.restart().unwrap();
            first.domain.open();
        }
    }
    cancels.join().unwrap();
    println!("returned, not made, ended: {seen:?}");
    assert!(seen[0] > races / 100 && seen[2] > races / 100, "{seen:?}");
}
