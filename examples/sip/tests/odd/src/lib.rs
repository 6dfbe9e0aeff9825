//! A process that ends in the way that its argument says; for tests of what becomes of it.
#![forbid(unsafe_code)]

use std::cell::{Cell, OnceCell, RefCell};
use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use mullion_sip::exchange::HeapError;
use mullion_sip::process::names::NameError;
use mullion_sip::{ExBox, ExVec, process, thread};
use sip_contracts::echo;

mullion_sip::sip_main! {
    name: "odd",
    main: main,
    contracts: [echo],
    limits: { memory: 1 << 20, exchange: 1 << 20, threads: 4, slice: Duration::from_millis(100) },
}

static KEPT: Mutex<Vec<String>> = Mutex::new(Vec::new());
thread_local!(static ALSO_KEPT: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) });

fn main(arguments: Vec<String>) -> Result<(), String> {
    let mut words = arguments.iter().map(String::as_str);
    match words.next().unwrap_or("return") {
        "return" => Ok(()),
        "fail" => Err("as it was told".to_owned()),
        "exit" => process::exit(7),
        "panic" => panic!("on purpose, with {} arguments", arguments.len()),
        "shout" => panic!("\u{1b}[2Jone\ntwo"),
        "hook" => {
            std::panic::set_hook(Box::new(|_| {}));
            std::panic::panic_any(Loud)
        }
        "memory" => {
            let mut all = Vec::new();
            loop {
                all.push(vec![1u8; 4096]);
            }
        }
        "stack" => {
            println!("{}", deep(0));
            Ok(())
        }
        "loop" => loop {
            std::hint::spin_loop();
        },
        "abort" => std::process::abort(),
        "sleep" => {
            thread::sleep(Duration::from_secs(1000));
            Ok(())
        }
        "nap" => {
            thread::sleep(Duration::from_millis(500));
            Ok(())
        }
        "statics" => statics(),
        "locals" => locals(),
        "lock" => {
            static LOCK: Mutex<u8> = Mutex::new(0);
            let held = || {
                let _held = LOCK.lock();
                loop {
                    thread::yield_now();
                }
            };
            thread::spawn(held).map_err(|error| error.to_string())?;
            thread::yield_now();
            // Nobody lets go of it while this OS thread sleeps.
            let _never = LOCK.lock();
            Ok(())
        }
        "once" => {
            static ONCE: OnceLock<u8> = OnceLock::new();
            let begun = || {
                ONCE.get_or_init(|| {
                    loop {
                        thread::yield_now();
                    }
                });
            };
            thread::spawn(begun).map_err(|error| error.to_string())?;
            thread::yield_now();
            Err(format!("{}", ONCE.get_or_init(|| 1)))
        }
        "park" => {
            std::thread::park();
            Ok(())
        }
        "doze" => {
            std::thread::sleep(Duration::from_secs(1000));
            Ok(())
        }
        "cells" => cells(),
        "large-locals" => large_locals(),
        "late-locals" => late_locals(),
        "all-locals" => loop {
            // Each thread's block counts, so this ends by the limit on threads or on memory.
            thread::spawn(|| {
                LARGE.with_borrow_mut(|large| large[0] = 1);
                thread::sleep(Duration::from_secs(1000));
            })
            .map_err(|error| error.to_string())?;
            thread::yield_now();
        },
        "half-panic" => half_panic(),
        "printing" => printing(),
        "own-locals" => own_locals(),
        "names" => names(),
        "flood" => {
            let mut waiting = Vec::new();
            counted(1, || {
                let (client, server) = echo::channel()?;
                let mut text = ExVec::try_with_capacity(64 << 10)?;
                text.push(1);
                waiting.push((client.say(text), server));
                Ok(())
            })
        }
        "ends" => counted(100, || echo::channel().map(std::mem::forget)),
        "blocks" => counted(100, || ExBox::try_new([7u64; 16]).map(std::mem::forget)),
        other => Err(format!("no such way: {other}")),
    }
}

/// Nothing of a process runs after its end, so nobody reads this.
struct Loud;

impl Drop for Loud {
    fn drop(&mut self) {
        println!("a destructor ran after the end");
    }
}

fn deep(depth: u64) -> u64 {
    let room = [depth; 64];
    if std::hint::black_box(depth) == u64::MAX {
        return room[1];
    }
    deep(depth + 1) + room[depth as usize % 64]
}

/// Does it until it is refused, which has to be the case within its share of the exchange heap.
fn counted(least: u32, mut more: impl FnMut() -> Result<(), HeapError>) -> Result<(), String> {
    for count in 0..100_000 {
        match more() {
            Ok(()) => {}
            Err(HeapError::Limit { .. }) if count >= least => return Ok(()),
            Err(error) => return Err(format!("after {count}: {error}")),
        }
    }
    Err("there is no limit".to_owned())
}

/// Finds its statics as at the first time, leaves things of its heap there and a lock held, and fails.
fn statics() -> Result<(), String> {
    let mut kept = match KEPT.try_lock() {
        Ok(kept) => kept,
        Err(error) => return Err(format!("the lock: {error}")),
    };
    let also = ALSO_KEPT.with(|also| also.borrow().len());
    if !kept.is_empty() || also != 0 {
        return Err(format!("{} and {also} kept", kept.len()));
    }
    for number in 0..100 {
        kept.push(format!("of the heap {number}"));
        ALSO_KEPT.with(|also| also.borrow_mut().push(format!("also {number}")));
    }
    std::mem::forget(std::io::stdout().lock());
    std::panic::set_hook(Box::new(move |_| {}));
    process::exit(3)
}

/// Whose initialiser waits. Each has a number of its own, which nothing changes.
struct Slow(Cell<u64>);

impl Slow {
    fn new() -> Slow {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        // The first is the slowest.
        let turns = if number == 0 { 10 } else { 1 };
        (0..turns).for_each(|_| thread::yield_now());
        Slow(Cell::new(number))
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        self.0.set(u64::MAX);
    }
}

thread_local!(static SLOW: Slow = Slow::new());

/// While this thread initialises, another one does and borrows the value, and looks at it again later.
fn locals() -> Result<(), String> {
    let seen = Rc::new(Cell::new(None));
    let other = Rc::clone(&seen);
    let look = move || {
        SLOW.with(|slow| {
            let before = slow.0.get();
            (0..30).for_each(|_| thread::yield_now());
            other.set(Some((before, slow.0.get())));
        });
    };
    thread::spawn(look).map_err(|error| error.to_string())?;
    let mine = SLOW.with(|slow| slow.0.get());
    while seen.get().is_none() {
        thread::yield_now();
    }
    match seen.get() {
        Some((before, after)) if before == after && before != mine => Ok(()),
        other => Err(format!(
            "changed under its borrower: {other:?}, mine is {mine}"
        )),
    }
}

/// Each thread has its own, from the beginning, and drops it when it returns.
fn own_locals() -> Result<(), String> {
    struct Counted(Rc<Cell<u32>>, Box<[u8]>);
    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
            // One more, which is dropped after this one.
            LATE.with(|late| late.replace(Some(vec![1; 100])));
        }
    }
    thread_local! {
        static OWN: RefCell<Vec<Counted>> = const { RefCell::new(Vec::new()) };
        static LATE: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
        static NUMBERS: RefCell<[u64; 16]> = const { RefCell::new([7; 16]) };
    }
    let dropped = Rc::new(Cell::new(0));
    // Far more than the memory limit, if they stayed.
    for round in 0..1000 {
        for _ in 0..2 {
            let dropped = Rc::clone(&dropped);
            let body = move || {
                OWN.with_borrow_mut(|own| {
                    assert!(own.is_empty(), "another thread's");
                    own.push(Counted(dropped, vec![1; 4096].into()));
                });
                thread::yield_now();
                OWN.with_borrow(|own| assert!(own.len() == 1 && own[0].1[4095] == 1));
                NUMBERS.with_borrow_mut(|numbers| {
                    assert_eq!(numbers.iter().sum::<u64>(), 7 * 16);
                    numbers[3] = round;
                });
            };
            thread::spawn(body).map_err(|error| error.to_string())?;
        }
        while dropped.get() < 2 * (round as u32 + 1) {
            thread::yield_now();
        }
        OWN.with_borrow(|own| assert!(own.is_empty(), "another thread's"));
    }
    Ok(())
}

thread_local!(static LARGE: RefCell<[u8; 32 << 10]> = const { RefCell::new([3; 32 << 10]) });

/// Cells that are initialised once refuse a second one that comes while the first waits, whoever it is.
fn cells() -> Result<(), String> {
    std::panic::set_hook(Box::new(|_| {}));
    let cell = Rc::new(OnceCell::new());
    let first = Rc::clone(&cell);
    let slow = move || {
        // It finds the cell initialised when it is done.
        let late = AssertUnwindSafe(|| {
            first.get_or_init(|| {
                (0..5).for_each(|_| thread::yield_now());
                1
            });
        });
        assert!(std::panic::catch_unwind(late).is_err());
    };
    thread::spawn(slow).map_err(|error| error.to_string())?;
    thread::yield_now();
    let mine = cell.get_or_init(|| 2);
    (0..10).for_each(|_| thread::yield_now());
    match mine {
        2 => Ok(()),
        other => Err(format!("changed to {other}")),
    }
}

/// Larger than what most threads have, in an order of threads that is none.
fn large_locals() -> Result<(), String> {
    let done = Rc::new(Cell::new(0));
    for round in 0..100u8 {
        let done = Rc::clone(&done);
        let body = move || {
            LARGE.with_borrow_mut(|large| {
                assert!(large.iter().all(|byte| *byte == 3), "another thread's");
                large.fill(round);
            });
            (0..usize::from(round % 7)).for_each(|_| thread::yield_now());
            LARGE.with_borrow(|large| assert!(large.iter().all(|byte| *byte == round)));
            done.set(done.get() + 1);
        };
        while thread::spawn(body.clone()).is_err() {
            thread::yield_now();
        }
    }
    while done.get() < 100 {
        thread::yield_now();
    }
    Ok(())
}

/// A destructor of a thread-local that waits, and one that makes another thread and another thread-local.
fn late_locals() -> Result<(), String> {
    struct Waits(Rc<Cell<u32>>);
    impl Drop for Waits {
        fn drop(&mut self) {
            (0..3).for_each(|_| thread::yield_now());
            let count = Rc::clone(&self.0);
            let _ = thread::spawn(move || count.set(count.get() + 1));
            SLOW.with(|slow| assert!(slow.0.get() != u64::MAX));
            self.0.set(self.0.get() + 1);
        }
    }
    thread_local!(static LAST: RefCell<Option<Waits>> = const { RefCell::new(None) });
    let count = Rc::new(Cell::new(0));
    for _ in 0..20 {
        let before = count.get();
        let own = Rc::clone(&count);
        let body = move || {
            LAST.replace(Some(Waits(own)));
        };
        thread::spawn(body).map_err(|error| error.to_string())?;
        while count.get() < before + 2 {
            thread::yield_now();
        }
    }
    Ok(())
}

/// A thread that waits while it unwinds is the only one that panics.
fn half_panic() -> Result<(), String> {
    struct Waits;
    impl Drop for Waits {
        fn drop(&mut self) {
            (0..10).for_each(|_| thread::yield_now());
        }
    }
    std::panic::set_hook(Box::new(|_| {}));
    let done = Rc::new(Cell::new(false));
    let also = Rc::clone(&done);
    let unwinds = move || {
        let caught = std::panic::catch_unwind(|| {
            let _waits = Waits;
            std::panic::resume_unwind(Box::new(()));
        });
        also.set(caught.is_err());
    };
    thread::spawn(unwinds).map_err(|error| error.to_string())?;
    let lock = Mutex::new(0);
    for _ in 0..5 {
        thread::yield_now();
        if std::thread::panicking() {
            return Err("another thread's panic is this one's".to_owned());
        }
        drop(lock.lock());
    }
    while !done.get() {
        thread::yield_now();
    }
    match lock.is_poisoned() {
        true => Err("poisoned by another thread's panic".to_owned()),
        false => Ok(()),
    }
}

/// Two threads print, one waits in between; each has the output to itself while it prints.
fn printing() -> Result<(), String> {
    struct Slowly;
    impl std::fmt::Display for Slowly {
        fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            formatter.write_str("a")?;
            thread::yield_now();
            formatter.write_str("b")
        }
    }
    let mut text = String::new();
    let other = || {
        let mut own = String::new();
        let _ = std::fmt::write(&mut own, format_args!("{Slowly}"));
    };
    thread::spawn(other).map_err(|error| error.to_string())?;
    std::fmt::write(&mut text, format_args!("{Slowly}{Slowly}"))
        .map_err(|error| error.to_string())?;
    (text == "abab").then_some(()).ok_or(text)
}

/// Does with names what its rights do not allow.
fn names() -> Result<(), String> {
    let digest = [1; 32];
    let bound = process::names::bind("/odd", digest);
    let elsewhere = process::names::bind("/elsewhere", digest);
    let (_client, server) = echo::channel().map_err(|error| error.to_string())?;
    let looked_up = process::open("/echo", server.into_any()).map_err(|(error, _)| error);
    match (bound, elsewhere, looked_up) {
        (Ok(()), Err(NameError::NotPermitted), Err(NameError::NotPermitted)) => Ok(()),
        other => Err(format!("{other:?}")),
    }
}
