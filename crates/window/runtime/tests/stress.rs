//! The short form of `examples/stress.rs`.

mod support;

use std::sync::Mutex;
use support::churn::{self, Usage};

/// Both look at the whole process.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn domains_made_and_unloaded_leave_nothing_behind() {
    let _alone = ALONE.lock().unwrap();
    let program = churn::program();
    churn::cycles(&program, 200);
    let before = Usage::now();
    churn::cycles(&program, 3000);
    Usage::now().assert_as(before);
}

#[test]
fn images_loaded_and_unloaded_leave_nothing_behind() {
    let _alone = ALONE.lock().unwrap();
    let cycle = || churn::cycles(&churn::program(), 2);
    (0..5).for_each(|_| cycle());
    let before = Usage::now();
    (0..30).for_each(|_| cycle());
    Usage::now().assert_as(before);
}

#[test]
fn faults_leave_nothing_behind() {
    let _alone = ALONE.lock().unwrap();
    let program = churn::program();
    churn::faults(&program, 300);
    let before = Usage::now();
    churn::faults(&program, 4000);
    Usage::now().assert_as(before);
}

#[test]
fn threads_that_end_in_the_middle_leave_nothing_behind() {
    let _alone = ALONE.lock().unwrap();
    let program = churn::program();
    let round = || {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                std::thread::scope(|scope| {
                    let thread = scope.spawn(|| {
                        churn::cycles(&program, 20);
                        churn::faults(&program, 20);
                    });
                    thread.join().unwrap();
                })
            })
            .collect();
        threads.len()
    };
    round();
    let before = Usage::now();
    (0..20).for_each(|_| assert_eq!(round(), 4));
    Usage::now().assert_as(before);
}
