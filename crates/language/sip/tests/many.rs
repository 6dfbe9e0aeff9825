//! 10,000 processes and 100,000 channels alive in one address space. `cargo test --release -p mullion-sip --test many --
//! --nocapture` prints what they take.

mod crowd;

mod host;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use host::host;
use mullion_sip::heap::ProcessHeaps;
use mullion_sip::process::{Cause, Options, Program, SpawnError, spawn};
use mullion_sip::{thread, wait};

#[global_allocator]
static HEAPS: ProcessHeaps = ProcessHeaps;

#[test]
fn ten_thousand_processes_and_a_hundred_thousand_channels() {
    let first = crowd::run(5_000);
    println!("{first}");
    assert_eq!(first.alive, [10_000, 100_000]);
    // Each stack is two mappings, and some more for tables that grow.
    assert!(first.mappings[1] - first.mappings[0] <= 2 * 10_000 + 500);
    // What is kept for later is kept for all later ones: a second crowd needs no more.
    let second = crowd::run(5_000);
    println!("again: {second}");
    assert_eq!(second.descriptors, [first.descriptors[0]; 3]);
    assert!(second.mappings[2] <= first.mappings[2] + 100);
    beyond_what_the_system_maps();
}

/// Stacks end before the mappings do that everything else needs: a process that has none is an error, and nothing else
/// fails.
fn beyond_what_the_system_maps() {
    let text = std::fs::read_to_string("/proc/sys/vm/max_map_count").expect("Linux");
    let most: usize = text.trim().parse().expect("a number");
    if most > 100_000 {
        println!(
            "not tried: {most} mappings are allowed, and as many processes would take a while"
        );
        return;
    }
    // SAFETY: it keeps a number in a static.
    let boss = unsafe { Program::new("boss", boss) };
    let mut options = Options::default();
    options.limits.children = u32::MAX;
    let boss = spawn(boss, (), &options).expect("a process");
    while MADE.load(Ordering::Relaxed) == 0 {
        std::thread::sleep(Duration::from_millis(5));
    }
    let made = MADE.load(Ordering::Relaxed);
    println!("{made} more processes are all that {most} mappings have room for");
    assert!(made > most / 4, "{made}");
    // The host has mappings left: each of its threads needs some.
    let threads: Vec<_> = (0..200)
        .map(|_| std::thread::spawn(std::thread::park))
        .collect();
    for thread in threads {
        thread.thread().unpark();
        thread.join().expect("no panic");
    }
    boss.kill();
    assert_eq!(boss.wait().cause, Cause::Killed);
    drop(boss);
    while !host().statistics().is_empty() {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// How many children it could make.
static MADE: AtomicUsize = AtomicUsize::new(0);

fn boss(_: ()) {
    // SAFETY: it keeps nothing.
    let waits = unsafe { Program::new("waits", |()| wait::park()) };
    for made in 0.. {
        match spawn(waits, (), &Options::default()) {
            Ok(child) => drop(child),
            Err(SpawnError::NoStack) => {
                MADE.store(made, Ordering::Relaxed);
                break;
            }
            Err(error) => panic!("{error} after {made}"),
        }
        if made % 64 == 0 {
            thread::yield_now();
        }
    }
    loop {
        wait::park();
    }
}
