//! The supervisor decides who has which span of memory: its books say what the allocators' tables say, and what it
//! refuses has not come about.

mod host;

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use host::host;
use mullion_sip::heap::{ProcessHeaps, UNIT};
use mullion_sip::kernel::kernel;
use mullion_sip::owner::Owner;
use mullion_sip::process::{
    Cause, Child, Exit, Home, Kind, Options, Program, SpawnError, exit, spawn,
};
use mullion_sip::{ExBox, exchange, thread};
use mullion_sip_hosting::{DecideError, Decider, Refused, Span, Start, Supervised, in_use};
use mullion_supervisor::{DomainId, GroupId, Permission, Subject};

#[global_allocator]
static HEAPS: ProcessHeaps = ProcessHeaps;

/// A supervisor that is asked, unless the question is to be refused.
#[derive(Debug, Default)]
struct Probe {
    supervised: Supervised,
    /// Questions until one is refused; from `NEVER` on, none is.
    left: AtomicUsize,
    refused: Mutex<Option<&'static str>>,
}

const NEVER: usize = usize::MAX / 2;

impl Probe {
    fn ask(&self, question: &'static str) -> Result<(), Refused> {
        if self.left.fetch_sub(1, Ordering::SeqCst) != 0 {
            return Ok(());
        }
        self.left.store(NEVER, Ordering::SeqCst);
        *self.refused.lock().expect("no panic") = Some(question);
        Err(Refused)
    }

    /// Refuses the question after so many.
    fn refuse(&self, after: usize) {
        self.left.store(after, Ordering::SeqCst);
        *self.refused.lock().expect("no panic") = None;
    }

    /// Which one was refused; from now on none is.
    fn refused(&self) -> Option<&'static str> {
        self.left.store(NEVER, Ordering::SeqCst);
        *self.refused.lock().expect("no panic")
    }
}

#[derive(Debug)]
struct Handle(Arc<Probe>);

impl Decider for Handle {
    fn begin(&self, process: Owner) -> Result<(), Refused> {
        self.0.ask("a process")?;
        self.0.supervised.begin(process)
    }

    fn give(&self, process: Owner, span: Span) -> Result<(), Refused> {
        assert!(span.bytes.is_power_of_two() && span.start.is_multiple_of(UNIT));
        self.0.ask("a span")?;
        self.0.supervised.give(process, span)
    }

    fn take_back(&self, process: Owner, span: Span) {
        self.0.supervised.take_back(process, span);
    }

    fn end(&self, process: Owner) {
        self.0.supervised.end(process);
    }
}

/// Who has which unit, by the supervisor's books, and by the allocator's table; while no process takes or gives any.
fn agree(probe: &Probe) {
    let (snapshot, domains) = probe.supervised.snapshot();
    let owner_of = |id: DomainId| domains.iter().find(|(domain, _)| *domain == id);
    let mut in_books = BTreeSet::new();
    let mut shared = 0;
    for (range, holding) in &snapshot.regions {
        for (subject, grant) in &holding.grants {
            assert_eq!(grant.access, Permission::ReadWrite);
            match subject {
                Subject::Domain(domain) => {
                    let (_, owner) = owner_of(*domain).expect("a process");
                    assert_eq!(holding.owner, DomainId::SUPERVISOR);
                    assert_eq!(holding.grants.len(), 1, "{range:?} is one's alone");
                    for unit in (range.start() * 4..range.end() * 4).step_by(UNIT) {
                        in_books.insert((owner.to_bits(), unit as usize));
                    }
                }
                Subject::Group(_) => shared += 1,
            }
        }
    }
    assert_eq!(shared, 1, "the exchange heap is one group's");
    let mut in_table = BTreeSet::new();
    for holding in host().memory().holdings {
        if holding.kind == Kind::Heap {
            for unit in (holding.start..holding.start + holding.bytes).step_by(UNIT) {
                in_table.insert((holding.owner.to_bits(), unit));
            }
        }
    }
    assert_eq!(in_books, in_table);
    let statistics = host().statistics().into_iter();
    let living: BTreeSet<u64> = statistics
        .filter(|process| process.exit.is_none())
        .map(|process| process.owner.to_bits())
        .collect();
    let known: BTreeSet<u64> = domains.iter().map(|(_, owner)| owner.to_bits()).collect();
    assert_eq!(known, living);
    assert_eq!(snapshot.domains.len(), living.len() + 1);
    let groups = snapshot.groups.iter();
    let members = groups.filter(|group| group.id != GroupId::GLOBAL);
    assert_eq!(
        members.map(|group| group.members.len()).sum::<usize>(),
        living.len()
    );
}

static READY: AtomicU64 = AtomicU64::new(0);
static GO_ON: AtomicBool = AtomicBool::new(false);

/// Takes and gives memory in an order of its own, and waits, or ends in one of many ways.
fn lives(seed: u64) {
    let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = move |below: usize| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % below
    };
    let mut blocks: Vec<Vec<u8>> = Vec::new();
    let mut pages = Vec::new();
    let mut sent = Vec::new();
    for _ in 0..200 {
        match next(6) {
            0 => blocks.push(vec![1; 1 + next(8 * UNIT)]),
            1 if !blocks.is_empty() => drop(blocks.swap_remove(next(blocks.len()))),
            2 => pages.push((kernel().allocate_pages)(1 + next(4 * UNIT))),
            3 if !pages.is_empty() => {
                (kernel().release_pages)(pages.swap_remove(next(pages.len())));
            }
            4 => sent.push(ExBox::new(seed)),
            _ => drop(sent.pop()),
        }
        if next(20) == 0 {
            thread::yield_now();
        }
    }
    match seed % 5 {
        0 => return,
        1 => exit(3),
        2 => panic!("on purpose"),
        _ => {}
    }
    READY.fetch_add(1, Ordering::SeqCst);
    thread::sleep(Duration::from_secs(1000));
    drop((blocks, pages, sent));
}

fn children_of(seeds: std::ops::Range<u64>) -> Vec<(u64, Child)> {
    // SAFETY: it keeps numbers in statics.
    let program = unsafe { Program::new("lives", lives) };
    let child = |seed: u64| {
        let options = Options {
            home: Home::Worker(seed as usize),
            ..Options::default()
        };
        (seed, spawn(program, seed, &options).expect("a process"))
    };
    seeds.map(child).collect()
}

/// After random runs the books are what the tables are, whoever has ended how.
fn random_runs(probe: &Probe) {
    READY.store(0, Ordering::SeqCst);
    let mut waiting = Vec::new();
    for round in 0..8 {
        let children = children_of(round * 20..round * 20 + 20);
        let before = waiting.len();
        for (seed, child) in children {
            match seed % 5 {
                0 => assert_eq!(child.wait().cause, Cause::Returned),
                1 => assert_eq!(child.wait().cause, Cause::Exited(3)),
                2 => assert_eq!(child.wait().cause, Cause::Panic),
                _ => waiting.push(child),
            }
        }
        while READY.load(Ordering::SeqCst) < (round + 1) * 8 {
            std::thread::yield_now();
        }
        agree(probe);
        // Some of each round are ended from outside.
        for child in waiting.drain(before / 2..) {
            child.kill();
            assert_eq!(child.wait().cause, Cause::Killed);
        }
        agree(probe);
    }
    for child in waiting {
        child.kill();
        child.wait();
    }
    agree(probe);
}

/// Takes a span in each way, and has a child; its status says what it did not get.
fn asks(_: u64) {
    let block = vec![1u8; 3 * UNIT];
    let pages = (kernel().allocate_pages)(UNIT);
    if pages.is_null() {
        exit(4);
    }
    (kernel().release_pages)(pages);
    // SAFETY: it keeps a number in a static.
    let program = unsafe { Program::new("child", child) };
    match spawn(program, 0, &Options::default()) {
        Ok(child) => match child.wait().cause {
            Cause::Returned => {}
            Cause::Memory => exit(6),
            _ => exit(7),
        },
        Err(SpawnError::Refused) => exit(5),
        Err(_) => exit(7),
    }
    drop(block);
    while !GO_ON.load(Ordering::SeqCst) {
        thread::yield_now();
    }
}

fn child(_: u64) {
    let small: Vec<Box<u64>> = (0..3).map(Box::new).collect();
    std::hint::black_box(&small);
}

/// Each question in turn is refused: what was asked for has not come about, whoever asked hears why, and when all is
/// over nothing is left.
fn whatever_is_refused(probe: &Probe) {
    let (heaps, blocks) = (in_use(), exchange::census().in_use);
    // SAFETY: it keeps nothing.
    let program = unsafe { Program::new("asks", asks) };
    let mut seen = BTreeSet::new();
    GO_ON.store(true, Ordering::SeqCst);
    for question in 0.. {
        probe.refuse(question);
        let spawned = spawn(program, 0, &Options::default());
        let ended: Result<Exit, SpawnError> = spawned.map(|child| child.wait());
        let refused = probe.refused();
        agree(probe);
        assert_eq!((in_use(), exchange::census().in_use), (heaps, blocks));
        let outcome = match ended {
            Ok(exit) => format!("{:?}", exit.cause),
            Err(error) => format!("{error:?}"),
        };
        println!("question {question}: {refused:?}: {outcome}");
        let Some(refused) = refused else {
            assert_eq!(outcome, "Returned");
            break;
        };
        seen.insert((refused, outcome));
        assert!(question < 100, "it asks for ever");
    }
    let expected = [
        ("a process", "Exited(5)"),
        ("a process", "Refused"),
        ("a span", "Exited(4)"),
        ("a span", "Exited(6)"),
        ("a span", "Memory"),
    ];
    let expected: BTreeSet<_> = expected
        .map(|(question, outcome)| (question, outcome.to_owned()))
        .into();
    assert_eq!(seen, expected);
}

/// One test: the decider is the whole program's.
#[test]
fn the_supervisor_decides_who_has_which_span() {
    let probe = Arc::new(Probe::default());
    probe.refuse(NEVER);
    let decided = host().decided_by(Box::new(Handle(probe.clone())));
    assert_eq!(decided, Ok(()));
    let again = host().decided_by(Box::new(Handle(probe.clone())));
    assert_eq!(again, Err(DecideError::Decided));
    let workers = NonZeroUsize::new(2);
    host().start(Start { workers }).expect("workers");
    let late = host().decided_by(Box::new(Handle(probe.clone())));
    assert_eq!(late, Err(DecideError::Started));
    random_runs(&probe);
    whatever_is_refused(&probe);
}
