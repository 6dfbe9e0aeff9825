//! Random traffic between processes that are killed at any instruction, fail in every way that there is, and are
//! started again; and an account of it. Two seconds, or `MULLION_STRESS_SECONDS` (`scripts/stress`).
//!
//! What must hold: nobody hangs; what one of two living processes has sent the other receives, once and in order;
//! when all have ended, no process, no block of the exchange heap and no page of a process's heap is left.

mod host;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use host::host;
use mullion_sip::exchange::{Handles, census};
use mullion_sip::heap::ProcessHeaps;
use mullion_sip::process::{self, Cause, Child, Home, Limits, Options, Program, Rights, spawn};
use mullion_sip::{ExBox, thread};
use mullion_sip_hosting::Start;

mod walks;
use walks::{End, Random, client, server, walk};

#[global_allocator]
static HEAPS: ProcessHeaps = ProcessHeaps;

const PAIRS: usize = 16;
const WORKERS: usize = 2;
/// No wait lasts so long, on the busiest machine.
const HANG: Duration = Duration::from_secs(120);

/// What the two processes of each pair have to say at their end: messages sent and received, and how it ended.
static REPORTS: [[[AtomicU64; 3]; 2]; PAIRS] =
    [const { [const { [const { AtomicU64::new(0) }; 3] }; 2] }; PAIRS];

/// A walker's pair, its random numbers, its patience, and who of the two it is.
type Walker = (u64, u64, u64, u64);

fn asking((end, walker): (walk::Client<walk::A>, Walker)) {
    let mut random = begin(walker);
    let (counts, how) = client(end, &mut random, walker.2);
    say(walker, counts.sent, counts.received, how);
}

fn answering((end, walker): (walk::Server<walk::A>, Walker)) {
    let mut random = begin(walker);
    let (counts, how) = server(end, &mut random, walker.2);
    say(walker, counts.sent, counts.received, how);
}

/// Some walkers have a second thread, that ends the process in some way or other.
fn begin((_, seed, _, _): Walker) -> Random {
    let mut random = Random(seed);
    if random.chance(3) {
        let (kind, turns) = (random.below(60), random.below(200));
        thread::spawn(move || {
            for _ in 0..turns {
                thread::yield_now();
            }
            misbehave(kind);
        })
        .expect("a thread");
    }
    random
}

fn misbehave(kind: u64) {
    fn deeper(depth: u64) -> u64 {
        std::hint::black_box(if depth == u64::MAX {
            0
        } else {
            deeper(depth + 1) + 1
        })
    }
    match kind {
        // It costs its limit in processor time, so it is rare.
        0 => loop {
            std::hint::spin_loop();
        },
        1..10 => panic!("on purpose"),
        10..20 => {
            deeper(0);
        }
        20..30 => loop {
            std::mem::forget(vec![1u8; 10_000]);
        },
        30..40 => process::exit(3),
        40..50 => (0..20).for_each(|number| std::mem::forget(ExBox::new(number))),
        // SAFETY: nothing lies there, and the fault is what is wanted.
        _ => unsafe { std::ptr::without_provenance_mut::<u8>(8).write_volatile(1) },
    }
}

fn say((pair, _, _, side): Walker, sent: u64, received: u64, how: End) {
    let report = &REPORTS[pair as usize][side as usize];
    report[0].store(sent, Ordering::Relaxed);
    report[1].store(received, Ordering::Relaxed);
    report[2].store(1 + how as u64, Ordering::Release);
}

fn make<T: Handles>(main: fn(T), argument: T, home: u64) -> Child {
    // SAFETY: the walkers keep numbers in statics, nothing else.
    let program = unsafe { Program::new("walker", main) };
    let options = Options {
        home: Home::Worker(home as usize),
        rights: Rights::all(),
        limits: Limits {
            memory: 8 << 20,
            slice: Duration::from_millis(20),
            ..Limits::default()
        },
    };
    spawn(program, argument, &options).expect("a process")
}

/// Makes a pair's two processes, where chance wants them.
fn pair_up(pair: u64, random: &mut Random) -> [Child; 2] {
    let (near, far) = walk::channel().expect("memory");
    let patience = 20 + random.below(400);
    let mut walker = |side| (pair, 1 + random.below(1 << 60), patience, side);
    let (one, other) = (walker(0), walker(1));
    let homes = [random.below(WORKERS as u64), random.below(WORKERS as u64)];
    // The one that answers first, or the other: a channel waits for whoever begins later.
    if random.chance(2) {
        let answering = make(answering, (far, other), homes[1]);
        [make(asking, (near, one), homes[0]), answering]
    } else {
        [
            make(asking, (near, one), homes[0]),
            make(answering, (far, other), homes[1]),
        ]
    }
}

/// A process whose children are the pair. It waits for them, unless it is killed first, and they with it.
fn family((pair, seed): (u64, u64)) {
    for child in pair_up(pair, &mut Random(seed)) {
        child.wait();
    }
}

#[derive(Default)]
struct Tally {
    rounds: u64,
    processes: u64,
    kills: u64,
    messages: u64,
    /// Pairs of which both have told what they sent and received.
    compared: u64,
    causes: BTreeMap<String, u64>,
}

impl Tally {
    fn round(&mut self, random: &mut Random) {
        let (blocks, pages) = (census().in_use, mullion_sip_hosting::in_use());
        REPORTS
            .iter()
            .flatten()
            .for_each(|report| report[2].store(0, Ordering::Relaxed));
        let mut children = Vec::new();
        for pair in 0..PAIRS as u64 {
            if random.chance(4) {
                let seed = 1 + random.below(1 << 60);
                children.push(make(family, (pair, seed), random.below(WORKERS as u64)));
                self.processes += 3;
            } else {
                children.extend(pair_up(pair, random));
                self.processes += 2;
            }
        }
        for _ in 0..random.below(8) {
            let moment = Duration::from_nanos(random.below(300_000));
            let begin = Instant::now();
            while begin.elapsed() < moment {
                std::hint::spin_loop();
            }
            children[random.below(children.len() as u64) as usize].kill();
            self.kills += 1;
        }
        for child in children {
            self.ended(&child);
        }
        until("the children of the killed have ended", || {
            host().statistics().is_empty()
        });
        for report in &REPORTS {
            self.compare(report);
        }
        until("every block is free", || census().in_use == blocks);
        until("every page is free", || {
            mullion_sip_hosting::in_use() == pages
        });
        self.rounds += 1;
    }

    fn ended(&mut self, child: &Child) {
        let exit = child
            .wait_until(Instant::now() + HANG)
            .expect("an end, not a hang");
        if exit.cause == Cause::Panic {
            assert!(exit.message.as_str().contains("on purpose"), "{exit:?}");
        }
        *self.causes.entry(format!("{:?}", exit.cause)).or_default() += 1;
    }

    /// What one has sent the other has received, as far as it has listened.
    fn compare(&mut self, report: &[[AtomicU64; 3]; 2]) {
        let [near, far] = report.each_ref().map(|side| {
            let [sent, received, how] =
                side.each_ref().map(|number| number.load(Ordering::Acquire));
            (sent, received, how)
        });
        if near.2 == 0 || far.2 == 0 {
            return;
        }
        let (left, heard) = (1 + End::Left as u64, 1 + End::Heard as u64);
        for (speaker, listener) in [(near, far), (far, near)] {
            assert!(listener.1 <= speaker.0, "more received than sent");
            if speaker.2 == left && listener.2 == heard {
                assert_eq!(listener.1, speaker.0, "lost");
            }
        }
        self.messages += near.1 + far.1;
        self.compared += 1;
    }
}

/// What is over when its process is waited for may take another worker a moment more.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < HANG, "not so: {what}");
        std::thread::yield_now();
    }
}

#[test]
fn traffic_with_kills_and_restarts() {
    let number = |name: &str, default| match std::env::var(name) {
        Ok(text) => text.parse().expect("a number"),
        Err(_) => default,
    };
    let seconds = number("MULLION_STRESS_SECONDS", 2);
    let seed = number("MULLION_STRESS_SEED", 1).max(1);
    let workers = NonZeroUsize::new(WORKERS);
    host().start(Start { workers }).expect("workers");
    let (mut random, mut tally) = (Random(seed), Tally::default());
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(seconds) {
        tally.round(&mut random);
    }
    println!(
        "seed {seed}: {} rounds in {seconds} s, {} processes, {} kills, {} messages in {} pairs that both told of; ends: {:?}",
        tally.rounds, tally.processes, tally.kills, tally.messages, tally.compared, tally.causes
    );
    assert!(tally.messages > 0);
}
