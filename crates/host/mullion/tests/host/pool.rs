//! Pools of domains, and images that are replaced while the host runs.

use crate::support;
use crate::{IMAGE, imports};
use mullion::{Domain, DomainMemory, Error, Image, Imports, Limits, Live, Pool, PoolLimits, Ptr};
use std::path::Path;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

fn make() -> Result<Domain, Error> {
    IMAGE.domain().imports(imports()).load()
}

fn pool(most: usize) -> Pool {
    let limits = PoolLimits {
        most,
        ..PoolLimits::default()
    };
    Pool::new(limits, make).expect("a pool")
}

fn count(domain: &Domain) -> Result<i32, Error> {
    domain.function::<fn() -> i32>("count")?.call()
}

/// Whoever takes a domain finds it as new, whatever the one before did with it.
#[test]
fn each_use_finds_a_domain_as_new() {
    let pool = pool(2);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let pool = &pool;
            scope.spawn(move || {
                for turn in 0..100 {
                    let domain = pool.get().unwrap();
                    assert_eq!(count(&domain).unwrap(), 42, "as new");
                    match (thread + turn) % 3 {
                        0 => drop(
                            domain
                                .function::<fn()>("fault")
                                .unwrap()
                                .call()
                                .unwrap_err(),
                        ),
                        1 => drop(domain.alloc::<u8>(1 << 20).unwrap()),
                        _ => {}
                    }
                }
            });
        }
    });
    let stats = pool.stats();
    assert_eq!((stats.uses, stats.taken), (400, 0), "{stats:?}");
    assert!(
        stats.made >= 1 && stats.restarts + stats.made + 1 >= 400,
        "{stats:?}"
    );
    let until = std::time::Instant::now() + PATIENCE;
    while pool.stats().returned > 0 && std::time::Instant::now() < until {
        std::thread::yield_now();
    }
    let stats = pool.stats();
    assert_eq!(stats.ended, 134, "{stats:?}");
    assert_eq!(
        stats.ready,
        (stats.made - stats.replaced) as usize,
        "{stats:?}"
    );
    assert!(stats.ready <= 2, "{stats:?}");
}

#[test]
fn a_pool_is_bounded_in_number_and_memory() {
    let few = pool(2);
    let (one, two) = (few.get().unwrap(), few.get().unwrap());
    let none = few.get_within(Duration::ZERO);
    assert!(
        matches!(none, Err(Error::Exhausted { most: 2 })),
        "{none:?}"
    );
    let none = few.get_within(Duration::from_millis(5));
    assert!(matches!(none, Err(Error::Exhausted { .. })), "{none:?}");
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| count(&few.get_within(PATIENCE).unwrap()).unwrap());
        std::thread::sleep(Duration::from_millis(5));
        drop(two);
        assert_eq!(waits.join().unwrap(), 42);
    });
    drop(one);
    assert!(few.stats().waits > 0);

    let small = || {
        let limits = Limits {
            memory: 16 << 20,
            ..Limits::default()
        };
        IMAGE.domain().imports(imports()).limits(limits).load()
    };
    let limits = |memory| PoolLimits {
        most: 100,
        ready: 1,
        memory,
    };
    let pool = Pool::new(limits(50 << 20), small).unwrap();
    let all: Vec<_> = std::iter::from_fn(|| pool.get_within(Duration::ZERO).ok()).collect();
    assert_eq!(all.len(), 3, "of 16 MiB in 50");
    assert!(Pool::new(limits(1 << 20), small).is_err(), "none fits");
}

/// What somebody still holds is never another one's.
#[test]
fn a_domain_that_is_still_held_is_not_handed_out_again() {
    let pool = pool(1);
    let kept = {
        let domain = pool.get().unwrap();
        domain.function::<fn() -> i32>("count").unwrap()
    };
    assert_eq!(kept.call().unwrap(), 42);
    let next = pool.get_within(PATIENCE).unwrap();
    assert_eq!(count(&next).unwrap(), 42, "another one");
    assert_ne!(next.base(), kept.domain().base());
    assert_eq!(kept.call().unwrap(), 43, "as it was");
    drop(next);
    assert_eq!(pool.stats().replaced, 1);
    // A started call that is dropped holds its domain until it has ended.
    let limits = PoolLimits {
        most: 1,
        ..PoolLimits::default()
    };
    let pool = Pool::new(limits, make).unwrap();
    for _ in 0..10 {
        let domain = pool.get_within(PATIENCE).unwrap();
        assert_eq!(count(&domain).unwrap(), 42);
        drop(
            domain
                .function::<fn()>("loop_forever")
                .unwrap()
                .start()
                .unwrap(),
        );
    }
    drop(pool);
}

/// A pool that cannot make domains says why, and goes on when it can again.
#[test]
fn making_a_domain_may_fail() {
    static FAIL: AtomicBool = AtomicBool::new(true);
    let make = || match FAIL.load(Ordering::Relaxed) {
        true => Err(Error::LongString { longest: 5 }),
        false => make(),
    };
    assert!(matches!(
        Pool::new(PoolLimits::default(), make),
        Err(Error::LongString { .. })
    ));
    FAIL.store(false, Ordering::Relaxed);
    let pool = Pool::new(PoolLimits::default(), make).unwrap();
    let first = pool.get().unwrap();
    FAIL.store(true, Ordering::Relaxed);
    assert!(matches!(pool.get(), Err(Error::LongString { .. })));
    FAIL.store(false, Ordering::Relaxed);
    assert_eq!(count(&pool.get().unwrap()).unwrap(), 42);
    drop(first);
}

/// `version.c` with these options.
fn version(options: &[&str]) -> Image {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/extensions/version.c");
    let image = directory.path().join("version.mx");
    support::build(&source, &image, options);
    Image::open(&image).expect("it is verified")
}

static OLD: LazyLock<Image> = LazyLock::new(|| version(&["-DVERSION=1"]));
static NEW: LazyLock<Image> = LazyLock::new(|| version(&["-DVERSION=2"]));

#[test]
fn a_new_image_serves_the_same_functions() {
    let live = Live::new(OLD.domain().load().unwrap());
    let which = live.function::<fn() -> i32>("version").unwrap();
    let again = live.function::<fn() -> i32>("version").unwrap();
    let length = live.function::<fn(Ptr<u8>) -> u64>("length").unwrap();
    assert_eq!(which.call().unwrap(), 1);
    // What is begun in the old one, memory and all, ends there.
    let now = length.now();
    let text = now.domain().string_in("five!").unwrap();
    let old = live.domain();
    live.upgrade(NEW.domain().load().unwrap()).unwrap();
    assert_eq!((which.call().unwrap(), again.call().unwrap()), (2, 2));
    assert_eq!(now.call(text.ptr()).unwrap(), 5);
    assert_eq!(now.domain().base(), old.base());
    // A function that is asked for later is the new image's.
    assert_eq!(
        live.function::<fn() -> i32>("only_new")
            .unwrap()
            .call()
            .unwrap(),
        7
    );
    // An image without it, or with another type of it, is refused, and nothing changes.
    let refused = live.upgrade(OLD.domain().load().unwrap()).unwrap_err();
    assert!(
        matches!(&refused, Error::NoExport { name, .. } if name == "only_new"),
        "{refused}"
    );
    assert_eq!(which.call().unwrap(), 2);
    let typed = live.function::<fn(u32) -> u32>("typed").unwrap();
    assert_eq!(typed.call(3).unwrap(), 4);
    let wrong = version(&["-DVERSION=3"]);
    let refused = live.upgrade(wrong.domain().load().unwrap()).unwrap_err();
    assert!(
        matches!(&refused, Error::WrongType { name, .. } if name == "typed"),
        "{refused}"
    );
    assert_eq!((which.call().unwrap(), typed.call(3).unwrap()), (2, 4));
}

/// Threads call all the time; each call is of one version, never of an older one than before.
#[test]
fn an_upgrade_under_traffic() {
    let live = Live::new(OLD.domain().load().unwrap());
    let which = live.function::<fn() -> i32>("version").unwrap();
    let (stop, calls) = (AtomicBool::new(false), AtomicU32::new(0));
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let mut last = 0;
                    while !stop.load(Ordering::Relaxed) {
                        let version = which.call().expect("no call is lost");
                        assert!(version >= last, "{version} after {last}");
                        last = version;
                        calls.fetch_add(1, Ordering::Relaxed);
                    }
                    which.call().expect("no call is lost")
                })
            })
            .collect();
        while calls.load(Ordering::Relaxed) < 100 {
            std::thread::yield_now();
        }
        live.upgrade(NEW.domain().load().unwrap()).unwrap();
        let then = calls.load(Ordering::Relaxed);
        while calls.load(Ordering::Relaxed) < then + 100 {
            std::thread::yield_now();
        }
        stop.store(true, Ordering::Relaxed);
        for thread in threads {
            assert_eq!(thread.join().unwrap(), 2);
        }
    });
}

/// The replaced domain goes with its last call: its window is free for the next of its image.
#[test]
fn a_replaced_domain_goes_with_its_last_call() {
    let (entered, waits) = std::sync::mpsc::channel();
    let (leave, left) = std::sync::mpsc::channel::<()>();
    let left = std::sync::Mutex::new(left);
    let imports = || Imports::new();
    let alive = std::sync::Arc::new(());
    let inside = alive.clone();
    let slow = imports().function("host_wait", move |_: &mullion::Caller<'_>| {
        let _with_the_domain = &inside;
        entered.send(()).unwrap();
        left.lock().unwrap().recv().unwrap();
        5
    });
    let image = version(&["-DVERSION=1", "-DWAITS"]);
    let live = Live::new(image.domain().imports(slow).load().unwrap());
    let wait = live.function::<fn() -> i32>("wait").unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| wait.call());
        waits.recv().unwrap();
        let quick = imports().function("host_wait", |_: &mullion::Caller<'_>| 6);
        live.upgrade(image.domain().imports(quick).load().unwrap())
            .unwrap();
        assert_eq!(wait.call().unwrap(), 6, "new calls go to the new one");
        assert_eq!(
            std::sync::Arc::strong_count(&alive),
            2,
            "the old one is there"
        );
        leave.send(()).unwrap();
        assert_eq!(
            waiting.join().unwrap().unwrap(),
            5,
            "and ends where it began"
        );
    });
    assert_eq!(std::sync::Arc::strong_count(&alive), 1, "it has gone");
}

#[test]
fn a_pool_is_upgraded() {
    let limits = PoolLimits {
        most: 3,
        ready: 2,
        ..PoolLimits::default()
    };
    let pool = Pool::new(limits, || OLD.domain().load()).unwrap();
    let which = |domain: &Domain| {
        domain
            .function::<fn() -> i32>("version")
            .unwrap()
            .call()
            .unwrap()
    };
    let old = pool.get().unwrap();
    let failed = pool.upgrade(|| Err(Error::LongString { longest: 1 }));
    assert!(failed.is_err());
    assert_eq!(which(&pool.get().unwrap()), 1, "as before");
    pool.upgrade(|| NEW.domain().load()).unwrap();
    assert_eq!(which(&old), 1, "it is what was taken");
    for _ in 0..10 {
        assert_eq!(which(&pool.get_within(PATIENCE).unwrap()), 2);
    }
    drop(old);
    for _ in 0..10 {
        assert_eq!(which(&pool.get_within(PATIENCE).unwrap()), 2);
    }
}
