//! Restart in place: what is fresh, what stays good, what is stale.

use crate::support;
use mullion::{
    CallLimits, Callback, Caller, Cause, Domain, DomainMemory, Error, Image, Imports, Limits,
    Mount, Ptr,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::Duration;

static CONSTRUCTOR: LazyLock<Image> = LazyLock::new(|| {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/extensions/constructor.c");
    let image = directory.path().join("constructor.mx");
    support::build(&source, &image, &[]);
    Image::open(&image).expect("it is verified")
});

/// A domain whose constructors call `ready` with how often that was done before.
fn load(ready: impl Fn(u32) -> Result<i32, Error> + Send + Sync + 'static) -> Domain {
    let count = AtomicU32::new(0);
    let imports = Imports::new().function("host_ready", move |_: &Caller<'_>| {
        ready(count.fetch_add(1, Ordering::Relaxed))
    });
    CONSTRUCTOR.domain().imports(imports).load().unwrap()
}

fn number(domain: &Domain, function: &str) -> Result<i32, Error> {
    domain.function::<fn() -> i32>(function)?.call()
}

#[test]
fn data_heap_and_constructors_are_fresh_and_the_window_is_the_same() {
    let domain = load(|before| Ok(before as i32 + 10));
    let keep = domain.function::<fn(i32) -> Ptr<i32>>("keep").unwrap();
    let memory = domain.memory_in_use().unwrap();
    let first = keep.call(77).unwrap();
    assert_eq!(number(&domain, "is_ready").unwrap(), 10);
    for round in 11..20 {
        assert_eq!(number(&domain, "count").unwrap(), 1);
        let _taken_away = domain.alloc::<u8>(1 << 20).unwrap();
        domain.restart().unwrap();
        assert_eq!(domain.memory_in_use().unwrap(), memory);
        assert_eq!(number(&domain, "is_ready").unwrap(), round, "constructors");
        assert_eq!(keep.call(round).unwrap(), first, "at the same place");
        assert_eq!(first.read(&domain).unwrap(), round);
    }
}

#[test]
fn functions_and_function_pointers_stay_good() {
    let domain = load(|_| Ok(0));
    let counter = domain
        .function::<fn() -> Callback<fn() -> i32>>("counter")
        .unwrap()
        .call()
        .unwrap();
    assert_eq!(counter.call(&domain).unwrap(), 1);
    assert_eq!(counter.call(&domain).unwrap(), 2);
    domain.restart().unwrap();
    assert_eq!(counter.call(&domain).unwrap(), 1);
    // From a thread that was in it before, as well.
    let (ask, asked) = std::sync::mpsc::channel();
    let (answer, answered) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let domain = &domain;
        scope.spawn(move || {
            for () in asked {
                answer.send(counter.call(domain).unwrap()).unwrap();
            }
        });
        ask.send(()).unwrap();
        assert_eq!(answered.recv().unwrap(), 2);
        domain.restart().unwrap();
        ask.send(()).unwrap();
        assert_eq!(answered.recv().unwrap(), 1);
        drop(ask);
    });
}

#[test]
fn a_buffer_from_before_is_stale_and_gives_nothing_back() {
    let domain = load(|_| Ok(0));
    let old = domain.copy_in(&[1u32, 2, 3]).unwrap();
    domain.restart().unwrap();
    for error in [old.to_vec(&domain).err(), old.slice(&domain).err()] {
        assert!(matches!(error, Some(Error::Stale { .. })), "{error:?}");
    }
    let new = domain.copy_in(&[4u32, 5, 6]).unwrap();
    assert_eq!(new.ptr(), old.ptr(), "the fresh domain's");
    drop(old);
    let next = domain.copy_in(&[7u32, 8, 9]).unwrap();
    assert_ne!(next.ptr(), new.ptr(), "it was not the old one's to give");
    assert_eq!(new.to_vec(&domain).unwrap(), [4, 5, 6]);
}

#[test]
fn a_buffer_of_another_domain_is_refused_even_where_that_one_was() {
    let one = load(|_| Ok(0));
    let buffer = one.copy_in(b"mine").unwrap();
    one.unload().unwrap();
    // Windows are used again: this may be the same.
    let other = load(|_| Ok(0));
    let _same_place = other.copy_in(b"hers").unwrap();
    let result = buffer.to_vec(&other);
    assert!(matches!(result, Err(Error::Memory { .. })), "{result:?}");
}

#[test]
fn files_are_closed() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("file"), "content").unwrap();
    let mount = Mount::new(directory.path(), "/data", true).unwrap();
    let imports = Imports::new().function("host_ready", |_: &Caller<'_>| 0);
    let domain = CONSTRUCTOR
        .domain()
        .imports(imports)
        .directory(Arc::new(mount))
        .load()
        .unwrap();
    let open = domain.function::<fn(Ptr<u8>) -> i32>("open_file").unwrap();
    let read = domain.function::<fn(i32) -> i32>("read_file").unwrap();
    let path = domain.string_in("/data/file").unwrap();
    let file = open.call(path.ptr()).unwrap();
    assert!(file > 2, "{file}");
    assert_eq!(read.call(file).unwrap(), 1);
    domain.restart().unwrap();
    assert_eq!(read.call(file).unwrap(), -1);
}

/// Two domains of one process are two programs to the kernel's locks, and a restart gives locks back.
#[test]
fn locks_keep_domains_of_one_process_apart_until_a_restart() {
    const AGAIN: i32 = 11;
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("file"), "content").unwrap();
    let load = || {
        let mount = Mount::new(directory.path(), "/data", false).unwrap();
        let imports = Imports::new().function("host_ready", |_: &Caller<'_>| 0);
        let builder = CONSTRUCTOR.domain().imports(imports);
        builder.directory(Arc::new(mount)).load().unwrap()
    };
    let open = |domain: &Domain| {
        let open = domain.function::<fn(Ptr<u8>) -> i32>("open_writable");
        let path = domain.string_in("/data/file").unwrap();
        open.unwrap().call(path.ptr()).unwrap()
    };
    let lock = |domain: &Domain, file: i32| {
        let by_piece = domain.function::<fn(i32, i32) -> i32>("lock_file").unwrap();
        let by_file = domain.function::<fn(i32) -> i32>("flock_file").unwrap();
        (by_piece.call(file, 0).unwrap(), by_file.call(file).unwrap())
    };
    let (one, other) = (load(), load());
    let (first, second) = (open(&one), open(&other));
    assert_eq!(lock(&one, first), (0, 0));
    assert_eq!(lock(&other, second), (AGAIN, AGAIN));

    // A program that waits for it waits no longer than its time.
    let waiting = other.function::<fn(i32, i32) -> i32>("lock_file").unwrap();
    let granted = Duration::from_millis(20);
    let limits = CallLimits {
        time: Some(granted),
        ..CallLimits::default()
    };
    match waiting.limited(limits).call(second, 1) {
        Err(Error::Fault(fault)) => assert_eq!(*fault.cause(), Cause::TimeLimit { granted }),
        other => panic!("{other:?}"),
    }
    other.restart().unwrap();
    let second = open(&other);
    assert_eq!(lock(&other, second), (AGAIN, AGAIN));

    one.restart().unwrap();
    assert_eq!(lock(&other, second), (0, 0));
    let first = open(&one);
    assert_eq!(lock(&one, first), (AGAIN, AGAIN));
}

#[test]
fn a_domain_whose_constructors_fail_takes_no_calls_until_they_do_not() {
    let domain = load(|before| match before {
        1 => Err(Error::LongString { longest: 9 }),
        2 => panic!("on purpose"),
        _ => Ok(before as i32),
    });
    let error = domain.restart().unwrap_err();
    assert!(matches!(error, Error::Refused { .. }), "{error}");
    assert!(domain.has_ended().unwrap());
    assert!(matches!(number(&domain, "count"), Err(Error::Ended { .. })));
    catch_unwind(AssertUnwindSafe(|| domain.restart())).expect_err("the host function's panic");
    assert!(matches!(number(&domain, "count"), Err(Error::Ended { .. })));
    domain.restart().unwrap();
    assert_eq!(number(&domain, "is_ready").unwrap(), 3);
    assert_eq!(number(&domain, "count").unwrap(), 1);
}

#[test]
fn after_each_fault_it_is_as_new() {
    let domain = load(|_| Ok(5));
    let crash = domain.function::<fn()>("crash").unwrap();
    for _ in 0..1000 {
        assert_eq!(number(&domain, "count").unwrap(), 1);
        crate::fault(crash.call());
        domain.restart().unwrap();
    }
}

/// Threads call all the time, and a fault of one would end the calls of all: the restart waits until
/// they have left, and they wait until it is done. No call finds constructors that have not run.
#[test]
fn a_domain_is_restarted_under_traffic() {
    let patient = Duration::from_secs(60);
    let limits = Limits {
        start_wait: patient,
        ..Limits::default()
    };
    let imports = Imports::new().function("host_ready", |_: &Caller<'_>| {
        std::thread::sleep(Duration::from_micros(100));
        10
    });
    let builder = CONSTRUCTOR.domain().imports(imports).limits(limits);
    let domain = builder.load().unwrap();
    let (stop, calls) = (AtomicBool::new(false), AtomicU32::new(0));
    std::thread::scope(|scope| {
        let threads = [(); 3].map(|()| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let found = number(&domain, "is_ready");
                    assert_eq!(found.expect("they wait"), 10);
                    calls.fetch_add(1, Ordering::Relaxed);
                }
            })
        });
        // On a busy machine all restarts could be over before the first call.
        while calls.load(Ordering::Relaxed) == 0
            && !threads.iter().any(|thread| thread.is_finished())
        {
            std::thread::yield_now();
        }
        let restarts = (0..50).map(|_| domain.restart_when_idle(patient));
        let restarted: Result<Vec<()>, Error> = restarts.collect();
        stop.store(true, Ordering::Relaxed);
        restarted.unwrap();
    });
    assert!(calls.into_inner() > 0);
    assert_eq!(domain.restarts().unwrap(), 50);
}

/// Callers that do not wait are told by name; a thread that is in the domain cannot wait for itself.
#[test]
fn a_closed_domain_is_not_open_to_those_that_come() {
    let own: Arc<OnceLock<Domain>> = Arc::default();
    let inside = own.clone();
    let domain = load(move |before| {
        if let Some(domain) = inside.get().filter(|_| before > 0) {
            let refused = domain.restart_when_idle(Duration::ZERO);
            assert!(refused.is_err(), "it is being restarted by this thread");
            let called = number(domain, "count");
            assert!(matches!(called, Err(Error::NotOpen { .. })), "{called:?}");
        }
        Ok(10)
    });
    own.set(domain.clone()).expect("set once");
    domain.restart().unwrap();
    let buffer = domain.copy_in(&[1u8]).unwrap();
    let slice = buffer.slice(&domain).unwrap();
    let waited = std::thread::scope(|scope| {
        let waits = scope.spawn(|| domain.restart_when_idle(Duration::from_millis(1)));
        waits.join().unwrap()
    });
    assert!(matches!(waited, Err(Error::InUse { .. })), "{waited:?}");
    assert_eq!(slice.to_vec().unwrap(), [1], "as it was");
    assert_eq!(number(&domain, "is_ready").unwrap(), 10);
}
