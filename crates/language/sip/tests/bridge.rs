//! Channels over shared memory, with both ends in this program: what arrives, what ends, and what a hostile
//! peer can write.

mod host;

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use host::host;
use mullion_sip::channel::{ChannelClosed, Contract, Info};
use mullion_sip::exchange::census;
use mullion_sip::process::{Options, Program, spawn};
use mullion_sip::{ExBox, ExString, ExVec, Exchange, contract};
use mullion_sip_hosting::Start;
use mullion_sip_hosting::remote::{Fault, LINK_BYTES, Link, Memory, join, line_bytes};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::time::{ClockId, clock_gettime};

contract! {
    /// Questions, and whatever else can be said.
    mod talk {
        Ask: client {
            Question(u32) -> Answer,
            Tree(ExBox<Node>) -> Answer,
            Bytes(ExVec<u8>) -> More,
            Channel(passenger::Client<passenger::Go>) -> Answer,
            Bye -> end,
        }
        More: client { Bytes(ExVec<u8>) -> Answer }
        Answer: server { Reply(u64) -> Ask, Echo(ExVec<u8>) -> Ask, Text(ExString) -> Ask }
    }
}

contract! {
    mod passenger { Go: client { Gone -> end } }
}

contract! {
    /// Plain values in a row: copied as they lie, written field by field, too long for a slot, and nothing.
    mod row {
        One: client { Number(u32) -> Two }
        Two: client { Filled([u8; 48]) -> Three }
        Three: client { Padded((u8, u32)) -> Four }
        Four: client { Long([u8; 49]) -> Five }
        Five: client { Tuple((u32, u64, u32)) -> Six }
        Six: client { Point(Point) -> Seven }
        Seven: client { Nothing -> Eight }
        Eight: server { First(Point) -> Nine }
        Nine: server { Second(u64) -> end }
    }
}

#[derive(Exchange, Clone, Copy, PartialEq, Debug)]
struct Point {
    x: u64,
    y: i32,
    z: f32,
}

#[derive(Exchange)]
struct Node {
    value: u64,
    left: Option<ExBox<Node>>,
    right: Option<ExBox<Node>>,
}

fn tree(depth: u32) -> ExBox<Node> {
    let child = || (depth > 0).then(|| tree(depth - 1));
    ExBox::new(Node {
        value: depth.into(),
        left: child(),
        right: child(),
    })
}

fn sum(node: &Node) -> u64 {
    let below = |child: &Option<ExBox<Node>>| child.as_ref().map_or(0, |node| sum(node));
    node.value + below(&node.left) + below(&node.right)
}

/// Faults that were reported, of all tests: those that expect some run alone.
static FAULTS: Mutex<Vec<Fault>> = Mutex::new(Vec::new());

/// One test at a time: they count blocks and faults.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    let alone = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    host()
        .start(Start {
            workers: std::num::NonZeroUsize::new(2),
        })
        .expect("workers");
    host().on_fault(|_, _, fault| FAULTS.lock().expect("whole").push(fault));
    FAULTS.lock().expect("whole").clear();
    alone
}

fn faults() -> Vec<Fault> {
    FAULTS.lock().expect("whole").clone()
}

fn file(bytes: usize) -> OwnedFd {
    let file =
        memfd_create("line", MemfdFlags::ALLOW_SEALING | MemfdFlags::CLOEXEC).expect("memory");
    ftruncate(&file, bytes as u64).expect("memory");
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL).expect("sealed");
    file
}

struct Pair {
    links: [Arc<Link>; 2],
    bells: OwnedFd,
    line: OwnedFd,
}

impl Pair {
    fn new(contract: &Info) -> Pair {
        let bells = file(LINK_BYTES);
        Pair {
            links: [0, 1].map(|end| {
                let memory = Memory::map(bells.as_fd(), LINK_BYTES).expect("mapped");
                Link::new(memory, end, ["server", "client"][end], None).expect("large enough")
            }),
            bells,
            line: file(line_bytes(contract)),
        }
    }

    fn memory(&self) -> Memory {
        Memory::map(self.line.as_fd(), 1).expect("mapped")
    }

    /// A client whose server is on the other side of the memory.
    fn client(&self) -> talk::Client<talk::Ask> {
        let (client, far) = talk::channel().expect("memory");
        join(far.into_any(), &self.links[0], self.memory()).expect("joined");
        client
    }

    fn server(&self) -> talk::Server<talk::Ask> {
        let (far, server) = talk::channel().expect("memory");
        join(far.into_any(), &self.links[1], self.memory()).expect("joined");
        server
    }
}

fn pair() -> (talk::Client<talk::Ask>, talk::Server<talk::Ask>, Pair) {
    let pair = Pair::new(talk::Contract::INFO);
    (pair.client(), pair.server(), pair)
}

/// Waits for the blocks that bridges free on the workers. Every test does, or the next one counts what is about to go.
fn settled(blocks: u64) {
    let begin = Instant::now();
    while census().in_use != blocks {
        assert!(
            begin.elapsed() < Duration::from_secs(10),
            "{} blocks, not {blocks}",
            census().in_use
        );
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn questions_and_answers_cross() {
    let _alone = alone();
    let before = census().in_use;
    let (mut client, mut server, _pair) = pair();
    for number in 0..1000 {
        let asked = client.question(number).expect("alive");
        let Ok(talk::AskMessage::Question(question, answering)) = server.recv() else {
            panic!("no question")
        };
        server = answering.reply(u64::from(question) * 2).expect("alive");
        let Ok(talk::AnswerMessage::Reply(reply, next)) = asked.recv() else {
            panic!("no reply")
        };
        assert_eq!(reply, u64::from(number) * 2);
        client = next;
    }
    client.bye().expect("alive");
    assert!(matches!(server.recv(), Ok(talk::AskMessage::Bye)));
    settled(before);
    assert_eq!(faults(), []);
}

const POINT: Point = Point {
    x: 1 << 40,
    y: -2,
    z: 0.5,
};

/// What its receiver gets is waited for so long.
const PATIENCE: Duration = Duration::from_secs(20);

macro_rules! received {
    ($end:expr, $message:path) => {
        match $end.recv_timeout(PATIENCE) {
            Ok($message(value, end)) => (value, end),
            _ => panic!("no message, or another"),
        }
    };
}

fn send_row(client: row::Client<row::One>) -> row::Client<row::Eight> {
    let sent = client.number(7).and_then(|end| end.filled([3; 48]));
    let sent = sent.and_then(|end| end.padded((4, 5)));
    let sent = sent.and_then(|end| end.long([6; 49]));
    let sent = sent.and_then(|end| end.tuple((7, 8, 9)));
    let sent = sent.and_then(|end| end.point(POINT));
    sent.and_then(|end| end.nothing()).expect("open")
}

fn receive_row(server: row::Server<row::One>) -> row::Server<row::Eight> {
    let (number, server) = received!(server, row::OneMessage::Number);
    let (filled, server) = received!(server, row::TwoMessage::Filled);
    let (padded, server) = received!(server, row::ThreeMessage::Padded);
    let (long, server) = received!(server, row::FourMessage::Long);
    let (tuple, server) = received!(server, row::FiveMessage::Tuple);
    let (point, server) = received!(server, row::SixMessage::Point);
    assert_eq!((number, filled, padded), (7, [3; 48], (4, 5)));
    assert_eq!((long, tuple, point), ([6; 49], (7, 8, 9), POINT));
    match server.recv_timeout(PATIENCE) {
        Ok(row::SevenMessage::Nothing(server)) => server,
        _ => panic!("no message, or another"),
    }
}

/// All of it moves when the way comes, and not the first message alone.
#[test]
fn what_was_sent_before_there_was_a_way_crosses_when_it_comes() {
    let _alone = alone();
    let before = census().in_use;
    for early in [true, false] {
        let pair = Pair::new(row::Contract::INFO);
        let (client, far) = row::channel().expect("memory");
        let (near, server) = row::channel().expect("memory");
        let client = match early {
            true => {
                let client = send_row(client);
                join(far.into_any(), &pair.links[0], pair.memory()).expect("joined");
                client
            }
            false => {
                join(far.into_any(), &pair.links[0], pair.memory()).expect("joined");
                send_row(client)
            }
        };
        join(near.into_any(), &pair.links[1], pair.memory()).expect("joined");
        let server = receive_row(server).first(POINT).expect("open");
        server.second(12).expect("open");
        let (point, client) = received!(client, row::EightMessage::First);
        assert_eq!(point, POINT);
        match client.recv_timeout(PATIENCE) {
            Ok(row::NineMessage::Second(number)) => assert_eq!(number, 12),
            _ => panic!("no message, or another"),
        }
    }
    settled(before);
    assert_eq!(faults(), []);
}

#[test]
fn trees_texts_and_long_messages_cross() {
    let _alone = alone();
    let before = census().in_use;
    let (client, server, _pair) = pair();
    let client = client.tree(tree(6)).expect("alive");
    let Ok(talk::AskMessage::Tree(tree, server)) = server.recv() else {
        panic!("no tree")
    };
    assert_eq!(sum(&tree), 120);
    let server = server
        .text(ExString::from("grüße, ".repeat(40).as_str()))
        .expect("alive");
    let Ok(talk::AnswerMessage::Text(text, client)) = client.recv() else {
        panic!("no text")
    };
    assert_eq!(&*text, "grüße, ".repeat(40));
    // Two messages in a row, which share the arena; often enough to see that it is emptied.
    let (mut client, mut server) = (client, server);
    for round in 0..20u8 {
        let bytes = |length| ExVec::copy_of(&vec![round; length]);
        let sent = client.bytes(bytes(20 << 20)).expect("alive");
        let sent = sent.bytes(bytes(40)).expect("alive");
        let Ok(talk::AskMessage::Bytes(first, more)) = server.recv() else {
            panic!("no bytes")
        };
        let Ok(talk::MoreMessage::Bytes(second, answering)) = more.recv() else {
            panic!("no bytes")
        };
        assert!(first.len() == 20 << 20 && first.iter().all(|byte| *byte == round));
        assert!(second.len() == 40 && second.iter().all(|byte| *byte == round));
        server = answering.echo(second).expect("alive");
        let Ok(talk::AnswerMessage::Echo(_, next)) = sent.recv() else {
            panic!("no echo")
        };
        client = next;
    }
    drop((client, server, tree, text));
    settled(before);
}

#[test]
fn what_was_sent_before_the_end_arrives() {
    let _alone = alone();
    let before = census().in_use;
    let (client, server, _pair) = pair();
    drop(client.question(7).expect("alive"));
    let Ok(talk::AskMessage::Question(7, server)) = server.recv() else {
        panic!("lost")
    };
    // The end is told by a bell; until it is heard, sending works.
    if let Ok(asked) = server.reply(1) {
        assert!(matches!(asked.recv(), Err(ChannelClosed)));
    }
    settled(before);
}

#[test]
fn a_waiting_peer_is_told_of_the_end() {
    let _alone = alone();
    let before = census().in_use;
    for down in [false, true] {
        let (client, server, pair) = pair();
        let waits = std::thread::spawn({
            let server = mullion_sip_hosting::Parcel::pack(server);
            move || server.open().recv().map(|_| ())
        });
        std::thread::sleep(Duration::from_millis(20));
        if down {
            pair.links[1].take_down();
        } else {
            drop(client);
        }
        assert_eq!(waits.join().expect("no panic"), Err(ChannelClosed));
    }
    settled(before);
}

#[test]
fn an_endpoint_cannot_cross_and_the_channel_says_so() {
    let _alone = alone();
    let before = census().in_use;
    let (client, server, _pair) = pair();
    let (passenger, other) = passenger::channel().expect("memory");
    if let Ok(client) = client.channel(passenger) {
        assert!(matches!(client.recv(), Err(ChannelClosed)));
    }
    assert!(matches!(server.recv(), Err(ChannelClosed)));
    assert!(
        matches!(faults()[..], [Fault::Unsendable(_)]),
        "{:?}",
        faults()
    );
    drop(other);
    settled(before);
}

#[test]
fn memory_that_can_shrink_is_refused() {
    let loose = memfd_create("loose", MemfdFlags::ALLOW_SEALING).expect("memory");
    ftruncate(&loose, 8192).expect("memory");
    assert!(Memory::map(loose.as_fd(), 4096).is_err());
    assert!(Memory::map(file(4096).as_fd(), 8192).is_err());
}

/// A server whose peer is this test, which writes what it likes.
fn attacked() -> (talk::Server<talk::Ask>, File, Pair) {
    let pair = Pair::new(talk::Contract::INFO);
    let server = pair.server();
    let file = File::from(pair.line.try_clone().expect("a descriptor"));
    (server, file, pair)
}

/// Where the ring of messages to the server is: two lines, and behind it the client's ring of one slot.
const RING: u64 = 128 + 64;

fn slot(file: &File, count: u64, number: u16, length: u64, bytes: &[u8]) {
    let at = RING + (count - 1) % 2 * 64;
    file.write_all_at(&length.to_le_bytes(), at + 8)
        .expect("written");
    file.write_all_at(bytes, at + 16).expect("written");
    let word = count << 16 | u64::from(number);
    file.write_all_at(&word.to_le_bytes(), at).expect("written");
}

#[test]
fn what_a_hostile_peer_writes_ends_the_channel() {
    let _alone = alone();
    let before = census().in_use;
    type Check = fn(Fault) -> bool;
    let spilled = 1u64 << 63;
    let cases: &[(u16, u64, &[u8], Check)] = &[
        // A reply is the server's to send; there is no message 77.
        (6, 8, &[0; 8], |fault| fault == Fault::OutOfTurn),
        (77, 0, &[], |fault| fault == Fault::OutOfTurn),
        // A second message of the next state.
        (5, 8, &[0; 8], |fault| fault == Fault::OutOfTurn),
        (0, 3, &[0; 3], |fault| matches!(fault, Fault::Malformed(_))),
        (0, 5, &[0; 5], |fault| matches!(fault, Fault::Malformed(_))),
        (0, 49, &[0; 48], |fault| fault == Fault::Elsewhere),
        (0, u64::MAX >> 1, &[], |fault| fault == Fault::Elsewhere),
        (2, spilled | 8, &[255; 8], |fault| fault == Fault::Elsewhere),
        (2, spilled | (1 << 40), &[0; 8], |fault| {
            fault == Fault::Elsewhere
        }),
        // A vector that says it has more than there is.
        (2, 8, &[255; 8], |fault| {
            matches!(fault, Fault::Malformed(_))
        }),
        // Half a tree: what was read of it is freed.
        (1, 10, &[0, 0, 0, 0, 0, 0, 0, 0, 1, 0], |fault| {
            matches!(fault, Fault::Malformed(_))
        }),
        (3, 0, &[], |fault| matches!(fault, Fault::Malformed(_))),
    ];
    for (index, (number, length, bytes, expected)) in cases.iter().enumerate() {
        FAULTS.lock().expect("whole").clear();
        let (server, file, pair) = attacked();
        slot(&file, 1, *number, *length, bytes);
        pair.links[0].take_down();
        pair.links[1].take_down();
        assert!(matches!(server.recv(), Err(ChannelClosed)), "case {index}");
        assert!(
            faults().iter().all(|fault| expected(*fault)) && faults().len() == 1,
            "case {index}: {:?}",
            faults()
        );
    }
    settled(before);
}

#[test]
fn noise_in_shared_memory_does_no_harm() {
    let _alone = alone();
    let before = census().in_use;
    let seed = AtomicU32::new(1);
    let random = || {
        let next = seed
            .load(Ordering::Relaxed)
            .wrapping_mul(1664525)
            .wrapping_add(1013904223);
        seed.store(next, Ordering::Relaxed);
        next >> 8
    };
    for _ in 0..300 {
        let (server, file, pair) = attacked();
        let mut server = Some(server);
        for count in 1..6 {
            let bytes: Vec<u8> = (0..48).map(|_| (random() % 3) as u8).collect();
            file.write_all_at(&bytes, 4096 * 2).expect("written");
            slot(
                &file,
                count,
                (random() % 8) as u16,
                u64::from(random() % 60),
                &bytes,
            );
            pair.links[1].take_down();
            match server.take().map(|server| server.recv()) {
                Some(Ok(talk::AskMessage::Question(_, next) | talk::AskMessage::Tree(_, next))) => {
                    server = next.reply(1).ok();
                }
                _ => break,
            }
        }
    }
    settled(before);
}

/// The words of the bells of a server's first two workers, as its peer has them.
fn bells_of(pair: &Pair) -> [&'static AtomicU32; 2] {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let file = std::os::fd::AsRawFd::as_raw_fd(&pair.bells);
    let (nowhere, shared) = (std::ptr::null_mut(), libc::MAP_SHARED);
    // SAFETY: a new mapping, which stays.
    let at = unsafe { libc::mmap(nowhere, LINK_BYTES, access, shared, file, 0) };
    assert_ne!(at, libc::MAP_FAILED);
    // SAFETY: within it, where nobody has anything but atomic words.
    [0, 1].map(|worker| unsafe { &*at.byte_add(LINK_BYTES / 2 + worker * 64).cast() })
}

/// A peer does something with the bells all the time, while `meanwhile` runs.
fn with_bells_written(write: impl Fn([&AtomicU32; 2]) + Sync, meanwhile: impl FnOnce()) {
    let (server, _, pair) = attacked();
    let (bells, over) = (bells_of(&pair), AtomicU32::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while over.load(Ordering::Relaxed) == 0 {
                write(bells);
            }
        });
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(meanwhile));
        over.store(1, Ordering::Relaxed);
        if let Err(failed) = done {
            std::panic::resume_unwind(failed);
        }
    });
    drop(server);
    pair.links[1].take_down();
}

#[test]
fn who_writes_bells_keeps_no_worker_asleep_over_its_own_work() {
    let _alone = alone();
    let before = census().in_use;
    // Always what it was when the worker looked last.
    let write = |bells: [&AtomicU32; 2]| {
        bells
            .iter()
            .for_each(|bell| bell.store(0, Ordering::Relaxed))
    };
    with_bells_written(write, || {
        for round in 0..4000u32 {
            // SAFETY: it keeps nothing.
            let program = unsafe { Program::new("nothing", |_: u32| {}) };
            let child = spawn(program, round, &Options::default()).expect("a process");
            assert!(child.wait().cause.is_success());
            // Until just before, or just after, the worker sleeps.
            let pause = Duration::from_nanos(u64::from(round) * 7919 % 60_000);
            let begin = Instant::now();
            while begin.elapsed() < pause {
                std::hint::spin_loop();
            }
        }
    });
    settled(before);
}

#[test]
fn who_rings_for_nothing_keeps_no_worker_awake() {
    let _alone = alone();
    let before = census().in_use;
    let ring = |bells: [&AtomicU32; 2]| {
        for bell in bells {
            bell.fetch_add(1, Ordering::Relaxed);
            // SAFETY: the word stays.
            unsafe { libc::syscall(libc::SYS_futex, bell.as_ptr(), libc::FUTEX_WAKE, 1) };
        }
    };
    with_bells_written(ring, || {
        let (ours, all) = (workers_time(), program_time());
        while program_time() - all < Duration::from_millis(600) {
            std::thread::sleep(Duration::from_millis(10));
        }
        let (ours, all) = (workers_time() - ours, program_time() - all);
        assert!(ours < all / 4, "{ours:?} of {all:?}");
    });
    settled(before);
}

/// How long processors have been at this program.
fn program_time() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// How long processors have been at the workers of this program.
fn workers_time() -> Duration {
    let tasks = std::fs::read_dir("/proc/self/task").expect("of every program");
    let paths = tasks.map(|task| task.expect("listed").path());
    let workers = paths.filter(|task| {
        let name = std::fs::read_to_string(task.join("comm")).unwrap_or_default();
        name.starts_with("sip-") && name.trim() != "sip-watch"
    });
    let time = |task: std::path::PathBuf| {
        let text = std::fs::read_to_string(task.join("stat")).expect("a task");
        // Of its own and of Linux for it, in hundredths of a second; the name before may have anything in it.
        let fields = text.rsplit_once(") ").expect("a name").1.split(' ');
        let ticks: u64 = (fields.skip(11).take(2))
            .map(|ticks| ticks.parse::<u64>().expect("a number"))
            .sum();
        Duration::from_millis(ticks * 10)
    };
    workers.map(time).sum()
}
