//! The supervisor's records say what the kernel's tables say; and pages by request.

mod host;

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use host::host;
use mullion_sip::heap::{ProcessHeaps, UNIT};
use mullion_sip::kernel::kernel;
use mullion_sip::owner::Owner;
use mullion_sip::process::{
    Cause, Child, Holding, Home, Kind, Limits, Memory, Options, Program, spawn,
};
use mullion_sip::{ExBox, ExVec, Exchange, contract, exchange, thread};
use mullion_sip_hosting::Start;
use mullion_supervisor::{DomainId, Order, Permission, word_of};

#[global_allocator]
static HEAPS: ProcessHeaps = ProcessHeaps;

static PAGES: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];
/// An address of each one's stack, and of a block that each has in the exchange heap.
static STACKS: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];
static BLOCKS: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];

contract! {
    /// Trees of blocks, of which two may wait.
    mod parcels {
        First: client { Tree(ExBox<Tree>) -> Second }
        Second: client { Tree(ExBox<Tree>) -> Answer }
        Answer: server { Done -> end }
    }
}

#[derive(Exchange)]
struct Tree {
    content: ExVec<u64>,
    more: Option<ExBox<Tree>>,
}

static SENT: AtomicU64 = AtomicU64::new(0);
static RECEIVE: AtomicBool = AtomicBool::new(false);

/// Of four blocks: two boxes, each with a vector.
fn tree() -> ExBox<Tree> {
    let leaf = |more| {
        ExBox::new(Tree {
            content: ExVec::copy_of(&[7; 500]),
            more,
        })
    };
    leaf(Some(leaf(None)))
}

fn sender(client: parcels::Client<parcels::First>) {
    let second = client.tree(tree()).expect("alive");
    SENT.fetch_add(1, Ordering::SeqCst);
    let answer = second.tree(tree()).expect("alive");
    SENT.fetch_add(1, Ordering::SeqCst);
    let _ = answer.recv();
}

fn receiver(server: parcels::Server<parcels::First>) {
    while !RECEIVE.load(Ordering::SeqCst) {
        thread::sleep(Duration::from_millis(1));
    }
    let parcels::FirstMessage::Tree(first, next) = server.recv().expect("alive");
    thread::sleep(Duration::from_secs(1000));
    drop((first, next));
}

/// Blocks on their way are the kernel's, each once, and with what processes hold they are all that there is.
fn blocks_that_wait_are_the_kernels() {
    let (client, server) = parcels::channel().expect("memory");
    let options = |worker| Options {
        home: Home::Worker(worker),
        ..Options::default()
    };
    // SAFETY: they keep numbers in statics.
    let sends = unsafe { Program::new("sender", sender) };
    // SAFETY: `receiver` keeps nothing anywhere.
    let receives = unsafe { Program::new("receiver", receiver) };
    let children = [
        spawn(receives, server, &options(1)).expect("a process"),
        spawn(sends, client, &options(0)).expect("a process"),
    ];
    while SENT.load(Ordering::SeqCst) < 2 {
        std::thread::yield_now();
    }
    let count = |memory: &Memory, kind| {
        let of_kind = |holding: &&Holding| holding.kind == kind;
        memory.holdings.iter().filter(of_kind).count() as u64
    };
    let balanced = |memory: &Memory| {
        let all = [Kind::Exchange, Kind::Queues, Kind::Waiting].map(|kind| count(memory, kind));
        assert_eq!(
            all.iter().sum::<u64>(),
            exchange::census().in_use,
            "{all:?}"
        );
        assert_eq!(memory.moved, 0);
    };
    let records = host().records().expect("no contradiction");
    assert_eq!(
        count(&records.memory, Kind::Waiting),
        8,
        "two trees of four"
    );
    assert_eq!(
        count(&records.memory, Kind::Queues),
        1,
        "though both ends name them"
    );
    balanced(&records.memory);
    assert_eq!(counted(&children), [(0, 0), (2, 0)]);
    assert_eq!(records.supervisor.check(), Ok(()));
    for holding in &records.memory.holdings {
        let word = word_of(holding.start as u64);
        let kernels = matches!(holding.kind, Kind::Waiting | Kind::Queues);
        let owner = records.supervisor.owner(word).expect("in the space");
        assert_eq!(owner == DomainId::SUPERVISOR, kernels, "{holding:?}");
        assert_eq!(
            records.supervisor.permission(owner, word),
            Permission::ReadWrite
        );
        assert_eq!(holding.owner == Owner::HOST, kernels);
    }
    RECEIVE.store(true, Ordering::SeqCst);
    let received = loop {
        let memory = host().memory();
        match count(&memory, Kind::Waiting) {
            8 => std::thread::yield_now(),
            _ => break memory,
        }
    };
    assert_eq!(count(&received, Kind::Waiting), 4, "one is received");
    balanced(&received);
    assert_eq!(counted(&children), [(0, 1), (2, 0)]);
    // Nobody receives the other one.
    children.iter().for_each(Child::kill);
    for child in &children {
        child.wait();
    }
    assert_eq!(exchange::census().in_use, 0);
}

/// What each of them has sent and received, by its one end.
fn counted(children: &[Child; 2]) -> [(u32, u32); 2] {
    let ends = host().survey();
    children.each_ref().map(|child| {
        let mut its = ends.iter().filter(|end| end.owner == child.owner());
        let end = its.next().expect("an end");
        assert!(its.next().is_none());
        (end.sent, end.received)
    })
}

fn holder(number: u64) {
    let block = ExVec::copy_of(&[number; 1000]);
    let address = |place: *const u64| place.expose_provenance() as u64;
    STACKS[number as usize].store(address(&raw const number), Ordering::SeqCst);
    BLOCKS[number as usize].store(address(block.as_ptr()), Ordering::SeqCst);
    let pages = (kernel().allocate_pages)(3 * UNIT);
    PAGES[number as usize].store(pages.expose_provenance() as u64, Ordering::SeqCst);
    thread::sleep(Duration::from_secs(1000));
}

/// One test, since the records want that nothing is made or ended meanwhile.
#[test]
fn pages_are_regions_and_processes_are_domains() {
    host()
        .start(Start {
            workers: NonZeroUsize::new(2),
        })
        .expect("workers");
    asked_for_pages();
    blocks_that_wait_are_the_kernels();
    // SAFETY: numbers in statics only.
    let program = unsafe { Program::new("holder", holder) };
    let children: Vec<_> = (0..3)
        .map(|number| spawn(program, number, &Options::default()).expect("a process"))
        .collect();
    let addresses = PAGES.each_ref().map(|pages| {
        while pages.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        pages.load(Ordering::SeqCst)
    });
    let records = host().records().expect("no contradiction");
    assert_eq!(records.supervisor.order(), Order::Strict);
    let domain = |index: usize| {
        let own = |(_, process): &&(DomainId, _)| {
            let process: &mullion_sip::process::Statistics = process;
            process.owner == children[index].owner()
        };
        records
            .domains
            .iter()
            .find(own)
            .map(|(domain, _)| *domain)
            .expect("a domain")
    };
    assert_eq!(records.memory.moved, 0);
    let of = |places: &[AtomicU64; 3]| places.each_ref().map(|place| place.load(Ordering::SeqCst));
    let all = [addresses, of(&STACKS), of(&BLOCKS)].concat();
    for (number, address) in all.into_iter().enumerate() {
        let (index, word) = (number % 3, word_of(address));
        let kind = [Kind::Heap, Kind::Stack, Kind::Exchange][number / 3];
        let there = |holding: &&Holding| {
            (holding.start..holding.start + holding.bytes).contains(&(address as usize))
        };
        let mut holdings = records.memory.holdings.iter();
        let holding = holdings.find(there).expect("a holding");
        assert_eq!(
            (holding.owner, holding.kind),
            (children[index].owner(), kind)
        );
        assert_eq!(records.supervisor.owner(word), Some(domain(index)));
        for other in 0..3 {
            let expected = if other == index {
                Permission::ReadWrite
            } else {
                Permission::None
            };
            assert_eq!(records.supervisor.permission(domain(other), word), expected);
        }
    }
    let snapshot = records.supervisor.snapshot();
    assert_eq!(snapshot.domains.len(), 4);
    assert_eq!(records.supervisor.check(), Ok(()));
    for child in &children {
        child.kill();
        child.wait();
    }
    assert_eq!(host().records().expect("no contradiction").domains.len(), 0);
}

fn asked_for_pages() {
    fn main(_: ()) {
        let kernel = kernel();
        let first = (kernel.allocate_pages)(1);
        assert!(!first.is_null());
        // SAFETY: pages of our own.
        unsafe { first.write_bytes(7, UNIT) };
        // Neither the middle of pages, nor a block of the heap, nor the host's memory can be released.
        let block = Box::new([1u64; 64]);
        let large = vec![2u8; 10 * UNIT];
        for wrong in [
            first.wrapping_add(4096),
            std::ptr::from_ref(&*block).cast_mut().cast(),
            large.as_ptr().cast_mut(),
            std::ptr::null_mut(),
            std::ptr::from_ref(&PAGES).cast_mut().cast(),
        ] {
            (kernel.release_pages)(wrong);
        }
        assert_eq!((block[63], large[5]), (1, 2));
        (kernel.release_pages)(first);
        (kernel.release_pages)(first);
        assert_eq!(
            (kernel.allocate_pages)(1),
            first,
            "the last released is the next"
        );
        let mut got = 1;
        while !(kernel.allocate_pages)(1).is_null() {
            got += 1;
        }
        assert!((40..64).contains(&got), "{got} units of a megabyte");
        let mut used = std::mem::MaybeUninit::uninit();
        // SAFETY: there is room, and it is written when the answer is 0.
        let used = unsafe {
            assert_eq!((kernel.statistics)(0, used.as_mut_ptr()), 0);
            used.assume_init()
        };
        let limit = (64 * UNIT) as u64;
        assert_eq!((used.memory, used.memory_limit), (limit, limit));
        assert!((kernel.allocate_pages)(usize::MAX).is_null());
    }
    // SAFETY: keeps nothing.
    let program = unsafe { Program::new("pages", main) };
    let limits = Limits {
        memory: 64 * UNIT,
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
    let exit = child.wait();
    assert_eq!(exit.cause, Cause::Returned, "{}", exit.message);
}
