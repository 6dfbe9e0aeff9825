//! Hostile safe code is contained: one test for each kind. Everything runs on one worker, so that each test
//! also shows that the worker goes on.

mod host;

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use host::host;
use mullion_sip::heap::ProcessHeaps;
use mullion_sip::process::{Cause, Exit, Limits, Options, Program, spawn};
use mullion_sip::thread;
use mullion_sip_hosting::Start;

#[global_allocator]
static HEAPS: ProcessHeaps = ProcessHeaps;

fn end_of(main: fn(())) -> Exit {
    host()
        .start(Start {
            workers: NonZeroUsize::new(1),
        })
        .expect("a worker");
    let limits = Limits {
        memory: 4 << 20,
        threads: 16,
        slice: Duration::from_millis(30),
        ..Limits::default()
    };
    let options = Options {
        limits,
        ..Options::default()
    };
    // SAFETY: the test programs keep numbers in statics, nothing else.
    let [hostile, good] = unsafe { [Program::new("hostile", main), Program::new("good", good)] };
    let hostile = spawn(hostile, (), &options).expect("a process");
    let exit = hostile.wait();
    let good = spawn(good, (), &options).expect("a process");
    assert_eq!(good.wait().cause, Cause::Returned, "the worker goes on");
    exit
}

fn good(_: ()) {
    assert!(!std::thread::panicking());
    let words: Vec<String> = (0..100).map(|word| word.to_string()).collect();
    assert_eq!(words.concat().len(), 190);
    thread::yield_now();
}

#[test]
fn an_endless_loop() {
    let exit = end_of(|()| {
        loop {
            std::hint::spin_loop();
        }
    });
    assert_eq!(exit.cause, Cause::Slice);
}

#[test]
fn an_endless_loop_of_allocations() {
    let exit = end_of(|()| {
        loop {
            std::hint::black_box(vec![1u8; 100]);
            std::hint::black_box(vec![1u8; 100_000]);
        }
    });
    assert_eq!(exit.cause, Cause::Slice);
}

#[test]
fn an_endless_loop_of_kernel_calls() {
    let exit = end_of(|()| {
        loop {
            // Refused, again and again.
            let _ = mullion_sip::process::names::unbind("/nothing");
        }
    });
    assert_eq!(exit.cause, Cause::Slice);
}

#[test]
fn unbounded_recursion() {
    fn deep(depth: u64) -> u64 {
        std::hint::black_box(if depth == u64::MAX {
            0
        } else {
            deep(depth + 1) + 1
        })
    }
    let exit = end_of(|()| {
        deep(0);
    });
    assert_eq!(exit.cause, Cause::Stack);
}

#[test]
fn unbounded_recursion_that_allocates() {
    fn deep(depth: u64) -> u64 {
        let block = std::hint::black_box(Box::new([depth; 100]));
        if block[7] == u64::MAX {
            0
        } else {
            deep(block[7] + 1) + 1
        }
    }
    let exit = end_of(|()| {
        deep(0);
    });
    assert!(
        matches!(exit.cause, Cause::Stack | Cause::Memory),
        "{exit:?}"
    );
}

#[test]
fn unbounded_recursion_into_the_kernel() {
    fn deep(depth: u64) -> u64 {
        let _ = mullion_sip::process::names::unbind("/nothing");
        std::hint::black_box(if depth == u64::MAX {
            0
        } else {
            deep(depth + 1) + 1
        })
    }
    let exit = end_of(|()| {
        deep(0);
    });
    assert_eq!(exit.cause, Cause::Stack);
}

#[test]
fn unbounded_allocation() {
    let exit = end_of(|()| {
        let mut all = Vec::new();
        loop {
            all.push(Box::new([0u64; 10]));
        }
    });
    assert_eq!(exit.cause, Cause::Memory);
}

#[test]
fn one_large_allocation() {
    let exit = end_of(|()| {
        std::hint::black_box(vec![1u8; 1 << 30]);
    });
    assert_eq!(exit.cause, Cause::Memory);
}

#[test]
fn unbounded_threads() {
    static REFUSED: AtomicU32 = AtomicU32::new(0);
    let exit = end_of(|()| {
        for _ in 0..100 {
            if thread::spawn(|| thread::sleep(Duration::from_secs(1000))).is_err() {
                REFUSED.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    assert_eq!(exit.cause, Cause::Returned);
    assert_eq!(REFUSED.load(Ordering::Relaxed), 85);
}

/// In a program of its own, which ends without setting another panic hook: see `process/panic.rs`.
#[test]
fn a_panic_while_a_panic_is_shown() {
    struct Evil;
    impl std::fmt::Display for Evil {
        fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            panic!("again")
        }
    }
    const INSIDE: &str = "MULLION_SIP_TEST_INSIDE";
    if std::env::var_os(INSIDE).is_some() {
        let exit = end_of(|()| panic!("{Evil}"));
        assert_eq!(exit.cause, Cause::Abort);
        std::process::exit(42);
    }
    let name = "a_panic_while_a_panic_is_shown";
    let own = std::env::current_exe().expect("this program");
    let run = std::process::Command::new(own)
        .args([name, "--exact"])
        .env(INSIDE, "1")
        .output();
    assert_eq!(run.expect("this program again").status.code(), Some(42));
}

#[test]
fn a_destructor_that_panics() {
    struct Evil;
    impl Drop for Evil {
        fn drop(&mut self) {
            panic!("in a destructor");
        }
    }
    let exit = end_of(|()| {
        let _evil = Evil;
        panic!("the first");
    });
    assert_eq!(exit.cause, Cause::Panic);
    assert!(
        exit.message.as_str().ends_with("the first"),
        "{}",
        exit.message
    );
}

#[test]
fn an_abort() {
    let exit = end_of(|()| std::process::abort());
    assert_eq!(exit.cause, Cause::Abort);
}

#[test]
fn a_panic_at_the_end_of_the_stack() {
    fn deep(depth: u64) -> u64 {
        if depth > 100_000_000 {
            panic!("never so deep")
        } else {
            std::hint::black_box(deep(depth + 1) + 1)
        }
    }
    let exit = end_of(|()| {
        deep(0);
    });
    assert_eq!(exit.cause, Cause::Stack);
}

#[test]
fn an_endless_loop_is_ended_by_its_parent_at_once() {
    let options = Options {
        limits: Limits {
            slice: Duration::from_secs(1000),
            ..Limits::default()
        },
        ..Options::default()
    };
    host()
        .start(Start {
            workers: NonZeroUsize::new(1),
        })
        .expect("a worker");
    // SAFETY: keeps nothing.
    let program = unsafe {
        Program::new("endless", |()| {
            loop {
                std::hint::spin_loop()
            }
        })
    };
    let child = spawn(program, (), &options).expect("a process");
    std::thread::sleep(Duration::from_millis(20));
    child.kill();
    assert_eq!(child.wait().cause, Cause::Killed);
}
