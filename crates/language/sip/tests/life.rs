//! Processes live, talk through nothing yet but parking, and end.

mod host;

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use host::host;
use mullion_sip::exchange::Handles;
use mullion_sip::heap::ProcessHeaps;
use mullion_sip::owner::{self, Owner};
use mullion_sip::process::{self, Cause, Child, Home, Limits, Options, Program, SpawnError, spawn};
use mullion_sip::thread;
use mullion_sip::wait::{self, Waiter};
use mullion_sip_hosting::Start;

#[global_allocator]
static HEAPS: ProcessHeaps = ProcessHeaps;

fn start() {
    let workers = NonZeroUsize::new(2);
    host().start(Start { workers }).expect("workers");
}

fn run<T: Handles>(main: fn(T), argument: T) -> Child {
    start();
    // SAFETY: the test programs below keep numbers in statics, nothing else.
    let program = unsafe { Program::new("test", main) };
    spawn(program, argument, &Options::default()).expect("a process")
}

#[test]
fn a_process_runs_and_returns() {
    static SUM: AtomicU64 = AtomicU64::new(0);
    let child = run(
        |(a, b): (u64, u64)| {
            let numbers: Vec<u64> = (a..b).collect();
            SUM.store(numbers.iter().sum(), Ordering::Release);
        },
        (1, 101),
    );
    assert_eq!(child.wait().cause, Cause::Returned);
    assert_eq!(SUM.load(Ordering::Acquire), 5050);
    assert_eq!(child.wait().cause, Cause::Returned, "the answer stays");
}

/// Of a process and of the host, with a time and without, whoever came last.
#[test]
fn every_thread_that_waits_for_a_child_hears_of_its_end() {
    fn sleeps(_: ()) {
        thread::sleep(Duration::from_secs(1000));
    }
    let parent = run(
        |()| {
            // SAFETY: it keeps nothing.
            let program = unsafe { Program::new("child", sleeps) };
            let child = spawn(program, (), &Options::default()).expect("a process");
            let child = std::rc::Rc::new(child);
            let heard = std::rc::Rc::new(std::cell::Cell::new(0));
            for number in 0..4 {
                let (child, heard) = (child.clone(), heard.clone());
                let waits = move || {
                    let late = Instant::now() + Duration::from_secs(1000);
                    let exit = match number % 2 {
                        0 => Some(child.wait()),
                        _ => child.wait_until(late),
                    };
                    assert_eq!(exit.map(|exit| exit.cause), Some(Cause::Killed));
                    heard.set(heard.get() + 1);
                };
                thread::spawn(waits).expect("a thread");
            }
            thread::sleep(Duration::from_millis(2));
            // Who gives up takes nobody else's place.
            let soon = Instant::now() + Duration::from_millis(2);
            assert_eq!(child.wait_until(soon), None);
            assert_eq!(child.try_wait(), None);
            child.kill();
            while heard.get() < 4 {
                thread::sleep(Duration::from_millis(1));
            }
        },
        (),
    );
    let patience = Instant::now() + Duration::from_secs(20);
    let exit = parent.wait_until(patience);
    assert_eq!(
        exit.map(|exit| exit.cause),
        Some(Cause::Returned),
        "one still waits"
    );
    let child = run(sleeps, ());
    std::thread::scope(|scope| {
        let waits = || assert_eq!(child.wait().cause, Cause::Killed);
        let all = [scope.spawn(waits), scope.spawn(waits), scope.spawn(waits)];
        std::thread::sleep(Duration::from_millis(5));
        child.kill();
        let begin = Instant::now();
        while !all.iter().all(|one| one.is_finished()) {
            // A scope would wait for ever.
            if begin.elapsed() > Duration::from_secs(20) {
                eprintln!("one still waits");
                std::process::abort();
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    });
}

/// Long before its slice would be over.
#[test]
fn who_never_lets_others_run_is_killed_all_the_same() {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    start();
    for home in [Home::Worker(0), Home::Worker(1)] {
        RUNS.store(0, Ordering::Release);
        let main = |()| {
            RUNS.store(1, Ordering::Release);
            loop {
                std::hint::spin_loop();
            }
        };
        // SAFETY: it keeps nothing.
        let program = unsafe { Program::new("loops", main) };
        let limits = Limits {
            slice: Duration::from_secs(3600),
            ..Limits::default()
        };
        let options = Options {
            limits,
            home,
            ..Options::default()
        };
        let child = spawn(program, (), &options).expect("a process");
        while RUNS.load(Ordering::Acquire) == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill();
        let exit = child.wait_until(Instant::now() + Duration::from_secs(20));
        assert_eq!(exit.map(|exit| exit.cause), Some(Cause::Killed));
    }
}

#[test]
fn waits_before_restarts_double() {
    let (mut begins, mut lives) = (Vec::new(), 0);
    let first = Duration::from_millis(20);
    let policy = process::Policy::OnFailure {
        first,
        most: Duration::from_secs(10),
    };
    let exit = process::supervise(policy, || {
        lives += 1;
        begins.push(Instant::now());
        Ok(run(|fails| process::exit(fails), u8::from(lives < 5)))
    });
    assert_eq!(exit.map(|exit| exit.cause), Ok(Cause::Exited(0)));
    let waits = begins.windows(2).map(|pair| pair[1] - pair[0]);
    for (wait, least) in waits.zip([1, 2, 4, 8].map(|times| times * first)) {
        assert!(wait >= least, "{wait:?} for {least:?}");
    }
    assert_eq!(lives, 5);
}

#[test]
fn an_exit_carries_its_status() {
    let child = run(|status| process::exit(status), 7);
    assert_eq!(child.wait().cause, Cause::Exited(7));
}

#[test]
fn a_panic_ends_the_process_alone_and_says_why() {
    for round in 0..100 {
        let child = run(|round: u32| panic!("round {round}"), round);
        let exit = child.wait();
        assert_eq!(exit.cause, Cause::Panic);
        assert!(
            exit.message.as_str().ends_with(&format!("round {round}")),
            "{}",
            exit.message
        );
    }
    let child = run(
        |()| {
            assert!(!std::thread::panicking());
            // What unwinds nevertheless is a panic that is caught: not here, since the hook ends the process.
            let _ = std::panic::catch_unwind(|| panic!("caught"));
        },
        (),
    );
    assert_eq!(child.wait().cause, Cause::Panic);
}

#[test]
fn nothing_is_dropped_at_a_violent_end() {
    static DROPPED: AtomicU32 = AtomicU32::new(0);
    struct Loud(#[allow(dead_code)] Box<u8>);
    impl Drop for Loud {
        fn drop(&mut self) {
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
    }
    for main in [
        |()| {
            let _loud = Loud(Box::new(1));
            panic!("no cleaning up");
        },
        |()| {
            let _loud = Loud(Box::new(1));
            process::exit(0);
        },
    ] as [fn(()); 2]
    {
        run(main, ()).wait();
    }
    let sleeper = run(
        |()| {
            let _loud = Loud(Box::new(1));
            thread::sleep(Duration::from_secs(1000));
        },
        (),
    );
    sleeper.kill();
    assert_eq!(sleeper.wait().cause, Cause::Killed);
    assert_eq!(DROPPED.load(Ordering::Relaxed), 0);
    run(|()| drop(Loud(Box::new(1))), ()).wait();
    assert_eq!(DROPPED.load(Ordering::Relaxed), 1);
}

#[test]
fn threads_take_turns() {
    static ORDER: AtomicU64 = AtomicU64::new(0);
    fn note(digit: u64) {
        ORDER.store(
            ORDER.load(Ordering::Relaxed) * 10 + digit,
            Ordering::Relaxed,
        );
    }
    let child = run(
        |()| {
            for digit in [1, 2] {
                thread::spawn(move || {
                    note(digit);
                    thread::yield_now();
                    note(digit);
                })
                .expect("a thread");
            }
            note(9);
            thread::yield_now();
            thread::yield_now();
            note(9);
        },
        (),
    );
    assert_eq!(child.wait().cause, Cause::Returned);
    assert_eq!(ORDER.load(Ordering::Relaxed), 912_129);
}

/// Two processes hand a number back and forth, wherever they live.
#[test]
fn parking_works_within_and_across_workers() {
    static TURN: AtomicU64 = AtomicU64::new(0);
    static WAITERS: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];
    const TURNS: u64 = 2000;
    fn player(own: u64) {
        WAITERS[own as usize].store(wait::current().to_bits(), Ordering::SeqCst);
        loop {
            let turn = TURN.load(Ordering::SeqCst);
            if turn >= TURNS {
                return;
            }
            if turn % 2 != own {
                wait::park_until(Instant::now() + Duration::from_millis(100));
                continue;
            }
            TURN.store(turn + 1, Ordering::SeqCst);
            let other = WAITERS[1 - own as usize].load(Ordering::SeqCst);
            wait::unpark(Waiter::from_bits(other));
        }
    }
    start();
    // SAFETY: numbers in statics only.
    let program = unsafe { Program::new("player", player) };
    for homes in [[0, 0], [0, 1]] {
        TURN.store(0, Ordering::SeqCst);
        let players = [0u64, 1].map(|own| {
            let home = Home::Worker(homes[own as usize]);
            let options = Options {
                home,
                ..Options::default()
            };
            spawn(program, own, &options).expect("a player")
        });
        for player in players {
            assert_eq!(player.wait().cause, Cause::Returned);
        }
        assert_eq!(TURN.load(Ordering::SeqCst), TURNS);
    }
}

/// Whatever a thread has waited for, it goes on where it has begun: on the OS thread of its worker, which stays on its core.
#[test]
fn a_thread_never_leaves_its_os_thread() {
    static PLACES: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];
    static DONE: AtomicU32 = AtomicU32::new(0);
    static MOVED: AtomicU32 = AtomicU32::new(0);
    const THREADS: u32 = 4;
    const ALL: u32 = 2 * 2 * THREADS;
    fn place() -> u64 {
        let thread = rustix::thread::gettid().as_raw_nonzero().get();
        u64::from(thread.cast_unsigned()) << 32 | rustix::thread::sched_getcpu() as u64
    }
    fn wanderer(worker: u64) {
        for _ in 0..THREADS {
            let wandering = thread::spawn(move || {
                let began = place();
                PLACES[worker as usize].store(began, Ordering::SeqCst);
                for round in 0..300 {
                    match round % 3 {
                        0 => thread::yield_now(),
                        1 => wait::park_until(Instant::now() + Duration::from_micros(50)),
                        _ => thread::sleep(Duration::from_micros(20)),
                    }
                    MOVED.fetch_add(u32::from(place() != began), Ordering::SeqCst);
                }
                DONE.fetch_add(1, Ordering::SeqCst);
            });
            wandering.expect("a thread");
        }
        while DONE.load(Ordering::SeqCst) < ALL {
            thread::sleep(Duration::from_millis(1));
        }
    }
    start();
    // SAFETY: numbers in statics only.
    let program = unsafe { Program::new("wanderer", wanderer) };
    let wanderers = [0, 1, 0, 1].map(|worker| {
        let options = Options {
            home: Home::Worker(worker),
            ..Options::default()
        };
        spawn(program, worker as u64, &options).expect("a process")
    });
    for wanderer in wanderers {
        assert_eq!(wanderer.wait().cause, Cause::Returned);
    }
    assert_eq!(DONE.load(Ordering::SeqCst), ALL);
    assert_eq!(MOVED.load(Ordering::SeqCst), 0);
    let [one, other] = PLACES.each_ref().map(|place| place.load(Ordering::SeqCst));
    assert_ne!(one >> 32, other >> 32, "each worker has an OS thread");
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    assert!(cores == 1 || one as u32 != other as u32, "and a core");
}

#[test]
fn time_passes() {
    let begin = Instant::now();
    let child = run(|()| thread::sleep(Duration::from_millis(20)), ());
    assert_eq!(child.wait_until(begin), None);
    child.wait();
    assert!(begin.elapsed() >= Duration::from_millis(20));
}

#[test]
fn an_end_is_told_to_the_hooks_and_takes_the_children() {
    static ENDED: [AtomicU64; 3] = [AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0)];
    static FAMILY: [AtomicU64; 3] = [AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0)];
    fn hook(owner: Owner) {
        for (family, ended) in FAMILY.iter().zip(&ENDED) {
            if family.load(Ordering::SeqCst) == owner.to_bits() {
                ended.fetch_add(1, Ordering::SeqCst);
            }
        }
    }
    fn descendant(depth: u64) {
        FAMILY[depth as usize].store(owner::current().to_bits(), Ordering::SeqCst);
        if depth < 2 {
            // SAFETY: numbers in statics only.
            let program = unsafe { Program::new("descendant", descendant) };
            let home = Home::Next;
            std::mem::forget(
                spawn(
                    program,
                    depth + 1,
                    &Options {
                        home,
                        ..Options::default()
                    },
                )
                .expect("a child"),
            );
        }
        thread::sleep(Duration::from_secs(1000));
    }
    host().on_end(hook);
    let first = run(descendant, 0);
    while FAMILY[2].load(Ordering::SeqCst) == 0 {
        std::thread::yield_now();
    }
    first.kill();
    assert_eq!(first.wait().cause, Cause::Killed);
    while ENDED[2].load(Ordering::SeqCst) == 0 {
        std::thread::yield_now();
    }
    assert_eq!(
        [&ENDED[0], &ENDED[1], &ENDED[2]].map(|ended| ended.load(Ordering::SeqCst)),
        [1, 1, 1]
    );
    assert_eq!(owner::current(), Owner::HOST);
}

#[test]
fn ten_thousand_processes_live_at_once() {
    static AWAKE: AtomicU32 = AtomicU32::new(0);
    start();
    // SAFETY: numbers in statics only.
    let program = unsafe {
        Program::new("one of many", |()| {
            AWAKE.fetch_add(1, Ordering::Relaxed);
            wait::park();
            AWAKE.fetch_sub(1, Ordering::Relaxed);
        })
    };
    let many: Vec<Child> = (0..10_000)
        .map(|_| spawn(program, (), &Options::default()).expect("a process"))
        .collect();
    while AWAKE.load(Ordering::Relaxed) < 10_000 {
        std::thread::yield_now();
    }
    let statistics = host().statistics();
    assert!(statistics.len() >= 10_000);
    for child in &many {
        child.kill();
    }
    assert!(many.iter().all(|child| child.wait().cause == Cause::Killed));
    drop(many);
    assert_eq!(
        host()
            .statistics()
            .iter()
            .filter(|one| one.name == "one of many")
            .count(),
        0
    );
}

#[test]
fn a_heap_goes_back_whole() {
    static OWNER: AtomicU64 = AtomicU64::new(0);
    let child = run(
        |()| {
            OWNER.store(owner::current().to_bits(), Ordering::SeqCst);
            let all: Vec<Vec<u8>> = (0..1000).map(|size| vec![1; size * 10]).collect();
            std::hint::black_box(&all);
            thread::sleep(Duration::from_secs(1000));
        },
        (),
    );
    let memory = || {
        let all = host().statistics();
        let own = all
            .iter()
            .find(|one| one.owner.to_bits() == OWNER.load(Ordering::SeqCst));
        own.map_or(0, |own| own.memory.0)
    };
    while memory() < 5_000_000 {
        std::thread::yield_now();
    }
    child.kill();
    child.wait();
    assert_eq!(memory(), 0);
}

#[test]
fn a_parent_cannot_have_too_many_children() {
    static REFUSED: AtomicU32 = AtomicU32::new(0);
    fn parent(_: ()) {
        // SAFETY: numbers in statics only.
        let program =
            unsafe { Program::new("child", |()| thread::sleep(Duration::from_secs(1000))) };
        let kept: Vec<_> = (0..8)
            .map(|_| spawn(program, (), &Options::default()))
            .collect();
        let refused = kept
            .iter()
            .filter(|child| matches!(child, Err(SpawnError::TooMany)));
        REFUSED.store(refused.count() as u32, Ordering::SeqCst);
    }
    start();
    // SAFETY: numbers in statics only.
    let program = unsafe { Program::new("parent", parent) };
    let limits = Limits {
        children: 5,
        ..Limits::default()
    };
    let child = spawn(
        program,
        (),
        &Options {
            limits,
            ..Options::default()
        },
    )
    .expect("a process");
    assert_eq!(child.wait().cause, Cause::Returned);
    assert_eq!(REFUSED.load(Ordering::SeqCst), 3);
}
