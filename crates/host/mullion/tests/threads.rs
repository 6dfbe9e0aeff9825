//! Several threads of the host in one extension: its C library and C++ run-time.

mod support;

use mullion::{Domain, Error, Host, Image, Limits, Ptr};
use std::collections::HashSet;
use std::path::Path;
use std::sync::{Barrier, LazyLock};

const THREADS: u32 = 8;

fn image(source: &str) -> Image {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/extensions")
        .join(source);
    let image = directory.path().join("threads.mx");
    support::build(&source, &image, &["-O2"]);
    Host::new().open(&image).expect("it is verified")
}

static C: LazyLock<Image> = LazyLock::new(|| image("threads.c"));

fn domain() -> Domain {
    C.domain().load().expect("the domain is made")
}

/// Runs it on so many threads at once, with numbers from 1.
fn together(work: impl Fn(u32) + Sync) {
    let barrier = Barrier::new(THREADS as usize);
    std::thread::scope(|scope| {
        for number in 1..=THREADS {
            let (barrier, work) = (&barrier, &work);
            scope.spawn(move || {
                barrier.wait();
                work(number);
            });
        }
    });
}

#[test]
fn memory_errno_and_thread_locals_belong_to_each_thread() {
    let domain = domain();
    let churn = domain.function::<fn(u32, i32) -> i32>("churn").unwrap();
    for round in 0..3 {
        together(|number| {
            assert_eq!(churn.call(number + 8 * round, 5000).unwrap(), 0);
        });
    }
    let all = domain.function::<fn() -> i64>("rounds_of_all").unwrap();
    assert_eq!(all.call().unwrap(), 3 * i64::from(THREADS) * 5000);
}

#[test]
fn a_thread_for_which_there_is_no_memory_makes_no_call_and_harms_nobody() {
    let limits = Limits {
        memory: 16 << 20,
        ..Limits::default()
    };
    let domain = C.domain().limits(limits).load().expect("it is made");
    let calls = domain.function::<fn() -> i64>("calls_of_thread").unwrap();
    let take = domain.function::<fn() -> i64>("take_all").unwrap();
    let free = domain.function::<fn()>("free_all").unwrap();
    let mut first = 1000;
    for _ in 0..3 {
        assert!(take.call().unwrap() > 0);
        std::thread::scope(|scope| {
            let others = [(); 4].map(|()| scope.spawn(|| calls.call()));
            for other in others {
                match other.join().unwrap() {
                    Err(Error::Runtime(mullion_runtime::Error::ThreadStart { code: 12 })) => {}
                    other => panic!("{other:?}"),
                }
            }
            assert!(!domain.has_ended().unwrap());
            first += 1;
            assert_eq!(calls.call().unwrap(), first, "who had called goes on");
        });
        // With memory, who was refused is welcome.
        let other = || {
            assert!(calls.call().is_err());
            free.call().unwrap_err();
        };
        std::thread::scope(|scope| scope.spawn(other).join().unwrap());
        free.call().unwrap();
        let other = || assert_eq!(calls.call().unwrap(), 1001);
        std::thread::scope(|scope| scope.spawn(other).join().unwrap());
        // Its memory stays for the next thread with the stack: so that there is none to come,
        // the next round begins anew.
        domain.restart().unwrap();
        first = 1000;
    }
}

#[test]
fn thread_locals_begin_anew_with_each_thread_and_after_a_restart() {
    let domain = domain();
    let calls = || {
        let calls = domain.function::<fn() -> i64>("calls_of_thread").unwrap();
        calls.call().unwrap()
    };
    for _ in 0..2 {
        assert_eq!([calls(), calls()], [1001, 1002]);
        for _ in 0..3 {
            together(|_| assert_eq!([calls(), calls(), calls()], [1001, 1002, 1003]));
        }
        assert_eq!(calls(), 1003);
        let fail = domain.function::<fn()>("fail").unwrap();
        assert!(matches!(fail.call(), Err(Error::Fault(_))));
        domain.restart().unwrap();
    }
}

#[test]
fn what_threads_write_to_one_stream_is_not_mixed() {
    const LINES: i32 = 200;
    let domain = domain();
    let open = domain.function::<fn() -> i32>("open_stream").unwrap();
    assert_eq!(open.call().unwrap(), 1);
    let write = domain
        .function::<fn(i32, i32) -> i32>("write_lines")
        .unwrap();
    together(|number| assert_eq!(write.call(number as i32, LINES).unwrap(), 0));
    let close = domain.function::<fn() -> Ptr<i8>>("close_stream").unwrap();
    let text = close.call().unwrap();
    let text = text.string(&domain, 1 << 16).unwrap();
    let lines: HashSet<&str> = text.split_inclusive('>').collect();
    let expected = |line: &&str| {
        let numbers = line.strip_prefix('<')?.strip_suffix('>')?;
        let (tag, index) = numbers.split_once(':')?;
        Some(tag.parse::<u32>().ok()? <= THREADS && index.parse::<i32>().ok()? < LINES)
    };
    assert!(lines.iter().all(|line| expected(line) == Some(true)));
    assert_eq!(lines.len(), (THREADS as i32 * LINES) as usize);
}

#[test]
fn a_domain_may_be_for_one_thread_alone() {
    let limits = Limits {
        threads: 1,
        ..Limits::default()
    };
    let domain = C.domain().limits(limits).load().unwrap();
    let calls = domain.function::<fn() -> i64>("calls_of_thread").unwrap();
    assert_eq!(calls.call().unwrap(), 1001);
    let refused = std::thread::scope(|scope| scope.spawn(|| calls.call()).join().unwrap());
    assert!(refused.is_err());
}

#[test]
fn exceptions_and_statics_of_functions_in_several_threads() {
    let image = image("threads.cc");
    let domain = image.domain().load().unwrap();
    let work = domain.function::<fn(i32, i32) -> i32>("throw_and_catch");
    let work = work.unwrap();
    together(|number| assert_eq!(work.call(number as i32, 2000).unwrap(), 0));
    let owners = domain.function::<fn() -> i64>("owners").unwrap();
    assert_eq!(owners.call().unwrap(), 1);
}

/// What waits for a lock that the call which ended the domain has held does not wait for ever.
#[test]
fn nobody_waits_for_a_lock_in_a_domain_that_has_ended() {
    let domain = domain();
    for _ in 0..3 {
        std::thread::scope(|scope| {
            let ends = scope.spawn(|| {
                let ends = domain.function::<fn()>("lock_and_end").unwrap();
                ends.call()
            });
            let is_locked = domain.function::<fn() -> i32>("is_locked").unwrap();
            while is_locked.call().unwrap() == 0 {
                std::thread::yield_now();
            }
            let waits = domain.function::<fn()>("wait_for_lock").unwrap();
            let waited = waits.call();
            assert!(matches!(waited, Err(Error::Ended { .. })), "{waited:?}");
            assert!(matches!(ends.join().unwrap(), Err(Error::Fault(_))));
        });
        let idle = domain.restart_when_idle(std::time::Duration::from_secs(60));
        idle.unwrap();
    }
}
