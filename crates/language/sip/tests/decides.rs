//! The supervisor decides who has which span of memory, and which end of a channel: its records say what the allocators'
//! tables and the lists of ends say, and what it refuses has not come about.

mod host;

use std::collections::{BTreeSet, HashMap};
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use host::host;
use mullion_sip::channel::Contract;
use mullion_sip::heap::{ProcessHeaps, UNIT};
use mullion_sip::kernel::kernel;
use mullion_sip::owner::Owner;
use mullion_sip::process::{
    Cause, Child, Exit, Home, Kind, Options, Program, Rights, SpawnError, exit, open, serve, spawn,
};
use mullion_sip::thread::ThreadError;
use mullion_sip::{ExBox, contract, exchange, thread};
use mullion_sip_hosting::{
    ChannelEnd, DecideError, Decider, Refused, Span, Start, Supervised, in_use,
};
use mullion_supervisor::{DomainId, GroupId, Permission, Subject};

#[global_allocator]
static HEAPS: ProcessHeaps = ProcessHeaps;

contract! {
    /// One question.
    mod ask {
        Ask: client { Question(u32) -> Answer }
        Answer: server { Reply(u64) -> end }
    }
}

contract! {
    /// One channel, in a box.
    mod hand {
        Give: client { End(ExBox<ask::Client<ask::Ask>>) -> end }
    }
}

/// A supervisor that is asked, unless the question is to be refused.
#[derive(Debug, Default)]
struct Probe {
    supervised: Supervised,
    /// Where the end is that a record is of.
    places: Mutex<HashMap<usize, usize>>,
    /// Questions until one is refused; from `NEVER` on, none is.
    left: AtomicUsize,
    refused: Mutex<Option<&'static str>>,
}

const NEVER: usize = usize::MAX / 2;
const PAGE: usize = 4 << 10;
/// Bytes of an end's place.
const END: usize = 64;

fn pages(bytes: &Range<usize>) -> impl Iterator<Item = usize> {
    bytes.clone().step_by(PAGE)
}

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
        let is_stack = span.bytes == thread::STACK - PAGE;
        assert!(is_stack || span.bytes.is_power_of_two() && span.start.is_multiple_of(UNIT));
        self.0.ask(if is_stack { "a stack" } else { "a span" })?;
        self.0.supervised.give(process, span)
    }

    fn take_back(&self, process: Owner, span: Span) {
        self.0.supervised.take_back(process, span);
    }

    fn may_have(&self, process: Owner, end: ChannelEnd) -> Result<(), Refused> {
        self.0.ask("an end")?;
        self.0.supervised.may_have(process, end)
    }

    fn came(&self, process: Owner, end: ChannelEnd) {
        let mut places = self.0.places.lock().expect("no panic");
        places.insert(end.record, end.place);
        self.0.supervised.came(process, end);
    }

    fn went(&self, end: ChannelEnd) {
        self.0.supervised.went(end);
    }

    fn end(&self, process: Owner) {
        self.0.supervised.end(process);
    }
}

/// Who has which unit, stack and end, by the supervisor's records, and by the tables and lists of the kernel; while no process
/// takes or gives any.
fn agree(probe: &Probe) {
    let (snapshot, domains) = probe.supervised.snapshot();
    let places = probe.places.lock().expect("no panic").clone();
    let owner_of = |id: DomainId| domains.iter().find(|(domain, _)| *domain == id);
    let (mut recorded, mut ends) = (BTreeSet::new(), BTreeSet::new());
    let mut shared = 0;
    for (range, holding) in &snapshot.regions {
        for (subject, grant) in &holding.grants {
            match subject {
                Subject::Domain(domain) => {
                    let (_, owner) = owner_of(*domain).expect("a process");
                    assert_eq!(holding.owner, DomainId::SUPERVISOR);
                    let bytes = range.start() as usize * 4..range.end() as usize * 4;
                    assert_eq!(holding.grants.len(), 1, "{range:?} is one's alone");
                    if grant.access == Permission::Read {
                        assert_eq!(bytes.len(), 4);
                        ends.insert((owner.to_bits(), places[&bytes.start]));
                        continue;
                    }
                    assert_eq!(grant.access, Permission::ReadWrite);
                    recorded.extend(pages(&bytes).map(|page| (owner.to_bits(), page)));
                }
                Subject::Group(_) => shared += 1,
            }
        }
    }
    assert_eq!(shared, 1, "the exchange heap is one group's");
    let (mut in_tables, mut in_lists) = (BTreeSet::new(), BTreeSet::new());
    for holding in host().memory().holdings {
        let (owner, bytes) = (holding.owner, holding.start..holding.start + holding.bytes);
        match holding.kind {
            Kind::Heap | Kind::Stack => {
                in_tables.extend(pages(&bytes).map(|page| (owner.to_bits(), page)));
            }
            Kind::Exchange if holding.bytes == END => {
                in_lists.insert((owner.to_bits(), holding.start));
            }
            _ => {}
        }
    }
    assert_eq!(recorded, in_tables);
    assert!(
        ends.is_subset(&in_lists),
        "an end is a block on its holder's list"
    );
    let survey = host().survey();
    let held = |owner: &Owner| survey.iter().filter(|end| end.owner == *owner).count();
    for (_, owner) in &domains {
        let recorded = ends.iter().filter(|(holder, _)| *holder == owner.to_bits());
        assert_eq!(recorded.count(), held(owner), "ends of {owner:?}");
    }
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
    let (mut sent, mut ends, mut given) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..200 {
        match next(10) {
            0 => blocks.push(vec![1; 1 + next(8 * UNIT)]),
            1 if !blocks.is_empty() => drop(blocks.swap_remove(next(blocks.len()))),
            2 => pages.push((kernel().allocate_pages)(1 + next(4 * UNIT))),
            3 if !pages.is_empty() => {
                (kernel().release_pages)(pages.swap_remove(next(pages.len())));
            }
            4 => sent.push(ExBox::new(seed)),
            5 => ends.push(ask::channel().expect("a channel")),
            6 if !ends.is_empty() => drop(ends.swap_remove(next(ends.len()))),
            7 if !ends.is_empty() => {
                let (client, server) = ends.swap_remove(next(ends.len()));
                let (giving, taking) = hand::channel().expect("a channel");
                giving.end(ExBox::new(client)).expect("it is open");
                // It waits in the queue, or is this process's again, or the peer is closed.
                match next(3) {
                    0 => given.push((Ok(taking), server)),
                    1 => given.push((Err(taking.recv()), server)),
                    _ => drop((taking, server)),
                }
            }
            8 if !given.is_empty() => drop(given.swap_remove(next(given.len()))),
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
    drop((blocks, pages, sent, ends, given));
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

/// After random runs the records are what the tables are, whoever has ended how.
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
    match thread::spawn(|| {}) {
        Ok(()) => thread::yield_now(),
        Err(ThreadError::Refused(_)) => exit(8),
        Err(_) => exit(7),
    }
    let Ok((client, server)) = ask::channel() else {
        exit(9);
    };
    // SAFETY: it keeps a number in a static.
    let program = unsafe { Program::new("child", child) };
    match spawn(program, client, &Options::default()) {
        Ok(child) => match child.wait().cause {
            Cause::Returned => {}
            Cause::Memory => exit(6),
            _ => exit(7),
        },
        Err(SpawnError::Refused) => exit(5),
        Err(_) => exit(7),
    }
    let service = serve("/decides", ask::Contract::INFO).expect("free");
    open("/decides", server.into_any()).expect("it is bound");
    let accepted = service.try_accept();
    if accepted.is_none() {
        exit(10);
    }
    let (Ok((client, _server)), Ok((giving, taking))) = (ask::channel(), hand::channel()) else {
        exit(11);
    };
    giving.end(ExBox::new(client)).expect("it is open");
    let taken = taking.recv();
    drop((block, accepted, taken));
    while !GO_ON.load(Ordering::SeqCst) {
        thread::yield_now();
    }
}

fn child(_: ask::Client<ask::Ask>) {
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
        let rights = Rights::all();
        let options = Options {
            rights,
            ..Options::default()
        };
        let spawned = spawn(program, 0, &options);
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
        // Of a first thread, on another worker and on the parent's own; of a second thread.
        ("a stack", "Memory"),
        ("a stack", "Exited(5)"),
        ("a stack", "Exited(8)"),
        // Of a channel that is made, with which a child is to begin, at a name, in a message.
        ("an end", "Exited(5)"),
        ("an end", "Exited(9)"),
        ("an end", "Exited(10)"),
        ("an end", "Exited(11)"),
        ("an end", "Panic"),
    ];
    let expected: BTreeSet<_> = expected
        .map(|(question, outcome)| (question, outcome.to_owned()))
        .into();
    assert_eq!(seen, expected);
}

/// One test: the decider is the whole program's.
#[test]
fn the_supervisor_decides_who_has_which_span_and_end() {
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
