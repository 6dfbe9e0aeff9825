//! Endpoints in messages over shared memory, with both OS processes and the host in this program: what arrives, and what
//! a hostile peer can say of endpoints.

mod host;

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, Once};
use std::time::{Duration, Instant};

use host::host;
use mullion_sip::channel::{ChannelClosed, Contract, Info, Side};
use mullion_sip::exchange::census;
use mullion_sip::{ExVec, contract};
use mullion_sip_hosting::Start;
use mullion_sip_hosting::remote::{
    Carrier, Fault, LINK_BYTES, Link, Memory, Offer, PENDING, Passage, Peer, begin_hand_over,
    carry, given, join, line_bytes,
};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};

contract! {
    #[endless]
    mod talk {
        Ask: client {
            Channel(ride::Client<ride::Go>) -> Answer,
            Several(ExVec<Option<ride::Client<ride::Go>>>) -> Answer,
        }
        Answer: server { Well -> Ask }
    }
}

contract! {
    #[endless]
    mod ride { Go: client { Say(u32) -> Wait } Wait: server { Heard(u32) -> Go } }
}

static FAULTS: Mutex<Vec<Fault>> = Mutex::new(Vec::new());
static NUMBERS: AtomicU64 = AtomicU64::new(1);
type Links = HashMap<(u64, u8), Arc<Link>>;

static LINKS: LazyLock<Mutex<Links>> = LazyLock::new(Mutex::default);
/// Endpoints that were taken or refused.
static CLAIMED: AtomicU64 = AtomicU64::new(0);

/// One test at a time: they count blocks and faults.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    static HOST: Once = Once::new();
    let alone = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    HOST.call_once(|| {
        host()
            .start(Start {
                workers: std::num::NonZeroUsize::new(2),
            })
            .expect("workers");
        host().on_fault(|_, _, fault| FAULTS.lock().expect("whole").push(fault));
        begin_hand_over();
        std::thread::spawn(|| carry(&Host));
    });
    FAULTS.lock().expect("whole").clear();
    alone
}

fn faults() -> Vec<Fault> {
    FAULTS.lock().expect("whole").clone()
}

/// What a host does, with everybody in one program.
struct Host;

impl Carrier for Host {
    fn offer(&self, offer: &Offer) {
        let links = LINKS.lock().expect("whole");
        let at = |link: (u64, u8), end: u8| links[&(link.0, end)].clone();
        let (from, to) = (offer.link, at(offer.link, 1 - offer.link.1));
        let line = file(offer.bytes);
        let memory = numbered(&line);
        match offer.peer {
            Peer::Here(number) => given(number, Some((at(from, from.1), memory.clone()))),
            // All over one link, by whose other end the receiver goes on.
            Peer::Behind(link, line) => {
                let peer = at(link, 1 - link.1);
                peer.moved(line, offer.passage, Some((peer.clone(), memory.clone())));
            }
        }
        // Whoever gets it is at the end where the peer is not.
        let mine = match offer.peer {
            Peer::Here(_) => to.clone(),
            Peer::Behind(link, _) => at(link, link.1),
        };
        to.arrive(
            offer.line,
            offer.ticket,
            offer.passage,
            Some((mine, memory)),
        );
    }

    fn claimed(&self, link: (u64, u8)) {
        CLAIMED.fetch_add(1, Ordering::SeqCst);
        let sender = LINKS.lock().expect("whole")[&(link.0, 1 - link.1)].clone();
        sender.claimed();
    }
}

fn file(bytes: usize) -> OwnedFd {
    let file =
        memfd_create("line", MemfdFlags::ALLOW_SEALING | MemfdFlags::CLOEXEC).expect("memory");
    ftruncate(&file, bytes as u64).expect("memory");
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL).expect("sealed");
    file
}

fn numbered(file: &OwnedFd) -> Memory {
    let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
    Memory::map(file.as_fd(), 1)
        .expect("mapped")
        .numbered(number)
}

/// A link, and a channel over it.
struct Pair {
    links: [Arc<Link>; 2],
    line: OwnedFd,
    memory: Memory,
}

impl Pair {
    fn new(contract: &Info) -> Pair {
        let bells = file(LINK_BYTES);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let links = [0, 1].map(|end| {
            let memory = Memory::map(bells.as_fd(), LINK_BYTES).expect("mapped");
            let link = Link::new(memory.numbered(number), end, "peer", None).expect("large");
            let name = (number, end as u8);
            LINKS.lock().expect("whole").insert(name, link.clone());
            link
        });
        let line = file(line_bytes(contract));
        let memory = numbered(&line);
        Pair {
            links,
            line,
            memory,
        }
    }

    fn client(&self) -> talk::Client<talk::Ask> {
        let (client, far) = talk::channel().expect("memory");
        join(far.into_any(), &self.links[0], self.memory.clone()).expect("joined");
        client
    }

    fn server(&self) -> talk::Server<talk::Ask> {
        let (far, server) = talk::channel().expect("memory");
        join(far.into_any(), &self.links[1], self.memory.clone()).expect("joined");
        server
    }

    fn down(&self) {
        self.links.iter().for_each(|link| link.take_down());
    }
}

/// Waits for what workers and the hand-over do.
fn until(what: &str, done: impl Fn() -> bool) {
    let begin = Instant::now();
    while !done() {
        assert!(begin.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn settled(blocks: u64) {
    until("all blocks are back", || census().in_use == blocks);
}

#[test]
fn an_endpoint_goes_there_and_back() {
    let _alone = alone();
    let before = census().in_use;
    let pair = Pair::new(talk::Contract::INFO);
    let (mut client, mut server) = (pair.client(), pair.server());
    let (mut mine, mut theirs) = ride::channel().expect("memory");
    for round in 0..50 {
        let asked = client.channel(mine).expect("alive");
        let Ok(talk::AskMessage::Channel(taken, answering)) = server.recv() else {
            panic!("no endpoint: {:?}", faults())
        };
        server = answering.well().expect("alive");
        let Ok(talk::AnswerMessage::Well(next)) = asked.recv() else {
            panic!("no answer")
        };
        client = next;
        let waits = taken.say(round).expect("alive");
        let Ok(ride::GoMessage::Say(said, answering)) = theirs.recv() else {
            panic!("nothing said: {:?}", faults())
        };
        assert_eq!(said, round);
        theirs = answering.heard(round + 1).expect("alive");
        let Ok(ride::WaitMessage::Heard(heard, next)) = waits.recv() else {
            panic!("nothing heard")
        };
        assert_eq!(heard, round + 1);
        mine = next;
    }
    drop((client, server, mine, theirs));
    settled(before);
    assert_eq!(faults(), []);
}

/// A server whose peer is this test, which writes what it likes.
fn attacked() -> (talk::Server<talk::Ask>, File, Pair) {
    let pair = Pair::new(talk::Contract::INFO);
    let server = pair.server();
    let file = File::from(pair.line.try_clone().expect("a descriptor"));
    (server, file, pair)
}

/// Writes a message to the server, whose ring has one slot and is behind the client's, of one too.
fn slot(file: &File, count: u64, number: u16, bytes: &[u8]) {
    let at = 128 + 64;
    let length = bytes.len() as u64;
    file.write_all_at(&length.to_le_bytes(), at + 8)
        .expect("written");
    file.write_all_at(bytes, at + 16).expect("written");
    let word = count << 16 | u64::from(number);
    file.write_all_at(&word.to_le_bytes(), at).expect("written");
    ring();
}

/// Waits until the server's answer is in the line: another thread may be moving it.
fn answered(file: &File, count: u64) {
    until("an answer", || {
        let mut word = [0; 8];
        file.read_exact_at(&mut word, 128).expect("read");
        u64::from_le_bytes(word) >> 16 == count
    });
}

/// Has all workers look: one that sleeps hears its bells only.
fn ring() {
    static SPARE: LazyLock<Arc<Link>> = LazyLock::new(|| {
        let bells = file(LINK_BYTES);
        let memory = Memory::map(bells.as_fd(), LINK_BYTES).expect("mapped");
        Link::new(memory, 0, "nobody", None).expect("large")
    });
    SPARE.take_down();
}

const CHANNEL: u16 = 0;
const SEVERAL: u16 = 1;

/// The endpoint that the peer says it has sent.
fn sent(
    server: talk::Server<talk::Ask>,
) -> Result<(ride::Client<ride::Go>, talk::Server<talk::Answer>), ChannelClosed> {
    match server.recv()? {
        talk::AskMessage::Channel(end, answering) => Ok((end, answering)),
        talk::AskMessage::Several(..) => panic!("another message"),
    }
}

fn passage() -> Passage {
    Passage {
        digest: ride::Contract::INFO.digest.0,
        side: Side::Client,
        state: 0,
    }
}

/// Whether the memory of a line says that nobody has one of its halves.
fn is_refused(line: &OwnedFd) -> bool {
    let mut head = [0; 4];
    let file = File::from(line.try_clone().expect("a descriptor"));
    file.read_exact_at(&mut head, 64).expect("read");
    head[0] == 1
}

#[test]
fn numbers_of_endpoints_come_once_and_in_order() {
    let _alone = alone();
    let before = census().in_use;
    for (first, second) in [(1, 0), (0, 0), (0, 2), (u32::MAX, 0)] {
        FAULTS.lock().expect("whole").clear();
        let (server, file, pair) = attacked();
        slot(&file, 1, CHANNEL, &u32::to_le_bytes(first));
        if let Ok((end, answering)) = sent(server) {
            assert_eq!(first, 0);
            let server = answering.well().expect("alive");
            answered(&file, 1);
            slot(&file, 2, CHANNEL, &u32::to_le_bytes(second));
            assert!(sent(server).is_err());
            drop(end);
        }
        until("a fault", || matches!(faults()[..], [Fault::Malformed(_)]));
        pair.down();
    }
    settled(before);
}

#[test]
fn an_endpoint_must_be_what_its_message_says() {
    let _alone = alone();
    let before = census().in_use;
    let wrong = [
        Passage {
            digest: [9; 32],
            ..passage()
        },
        Passage {
            side: Side::Server,
            ..passage()
        },
        Passage {
            state: 1,
            ..passage()
        },
    ];
    for (index, wrong) in wrong.into_iter().enumerate() {
        for early in [false, true] {
            FAULTS.lock().expect("whole").clear();
            let (server, file, pair) = attacked();
            let line = self::file(line_bytes(ride::Contract::INFO));
            let way = (pair.links[1].clone(), numbered(&line));
            let arrive = |way| pair.links[1].arrive(pair.memory_number(), 0, wrong, Some(way));
            let way = match early {
                true => {
                    arrive(way);
                    None
                }
                false => Some(way),
            };
            slot(&file, 1, CHANNEL, &[0; 4]);
            let (end, answering) = sent(server).expect("alive");
            way.into_iter().for_each(arrive);
            let waits = end.say(1);
            assert!(waits.is_err() || waits.is_ok_and(|waits| waits.recv().is_err()));
            assert_eq!(faults(), [Fault::Endpoint], "case {index}");
            assert!(is_refused(&line));
            // The channel that it came by goes on.
            assert!(answering.well().is_ok());
            pair.down();
        }
    }
    settled(before);
}

#[test]
fn what_is_offered_twice_or_to_nobody_is_refused() {
    let _alone = alone();
    let before = census().in_use;
    let (server, file, pair) = attacked();
    let claimed = CLAIMED.load(Ordering::SeqCst);
    let lines = [0, 1, 2, 3, 4].map(|_| self::file(line_bytes(ride::Contract::INFO)));
    let arrive = |line: u64, ticket, index: usize| {
        let way = (pair.links[1].clone(), numbered(&lines[index]));
        pair.links[1].arrive(line, ticket, passage(), Some(way));
    };
    // Another line; the same twice; one for later.
    arrive(77_777, 0, 0);
    arrive(pair.memory_number(), 0, 1);
    arrive(pair.memory_number(), 0, 2);
    arrive(pair.memory_number(), 5, 3);
    assert_eq!(
        lines.each_ref().map(is_refused),
        [true, false, true, false, false]
    );
    slot(&file, 1, CHANNEL, &[0; 4]);
    let (end, answering) = sent(server).expect("alive");
    // It has come already.
    arrive(pair.memory_number(), 0, 4);
    assert!(is_refused(&lines[4]) && !is_refused(&lines[3]));
    drop((end, answering));
    pair.down();
    until("what is for later is refused", || is_refused(&lines[3]));
    until("all were answered", || {
        CLAIMED.load(Ordering::SeqCst) == claimed + 5
    });
    settled(before);
}

#[test]
fn whoever_waits_for_an_endpoints_line_hears_of_the_end() {
    let _alone = alone();
    let before = census().in_use;
    for nothing in [false, true] {
        let (server, file, pair) = attacked();
        slot(&file, 1, CHANNEL, &[0; 4]);
        let (end, _answering) = sent(server).expect("alive");
        let waits = end.say(7).expect("nobody knows yet");
        match nothing {
            true => pair.links[1].arrive(pair.memory_number(), 0, passage(), None),
            false => pair.down(),
        }
        assert!(waits.recv().is_err());
        pair.down();
    }
    settled(before);
}

#[test]
fn a_line_moves_only_with_what_it_was_made_for() {
    let _alone = alone();
    let before = census().in_use;
    // In the first state the client sends, so it is the client that can have moved.
    let right = Passage {
        digest: talk::Contract::INFO.digest.0,
        ..passage()
    };
    let wrong = Passage { state: 1, ..right };
    for (said, good) in [(right, true), (wrong, false), (passage(), false)] {
        FAULTS.lock().expect("whole").clear();
        let (server, file, pair) = attacked();
        let line = self::file(line_bytes(talk::Contract::INFO));
        let moved = |number| {
            let way = (pair.links[1].clone(), numbered(&line));
            pair.links[1].moved(number, said, Some(way));
        };
        let moved_file = File::from(line.try_clone().expect("a descriptor"));
        moved(pair.memory_number());
        assert_eq!(is_refused(&line), !good);
        assert_eq!(faults().len(), usize::from(!good));
        // Nobody listens to the old line any more.
        slot(&file, 1, CHANNEL, &[9; 4]);
        if good {
            slot(&moved_file, 1, CHANNEL, &[0; 4]);
        }
        assert_eq!(sent(server).is_ok(), good);
        // A line that nobody has.
        let line = self::file(line_bytes(talk::Contract::INFO));
        let way = (pair.links[1].clone(), numbered(&line));
        pair.links[1].moved(77_777, said, Some(way));
        assert!(is_refused(&line));
        pair.down();
    }
    settled(before);
}

/// Messages with endpoints that are never offered.
#[test]
fn a_flood_of_endpoints_ends_the_channel() {
    let _alone = alone();
    let before = census().in_use;
    let (mut server, file, pair) = attacked();
    for count in 0..=PENDING {
        slot(&file, u64::from(count) + 1, CHANNEL, &count.to_le_bytes());
        let Ok((_, answering)) = sent(server) else {
            assert_eq!((count, &faults()[..]), (PENDING, &[Fault::TooMany][..]));
            pair.down();
            return settled(before);
        };
        server = answering.well().expect("alive");
        answered(&file, u64::from(count) + 1);
    }
    panic!("there is no bound");
}

#[test]
fn noise_with_endpoints_does_no_harm() {
    let _alone = alone();
    let before = census().in_use;
    let mut seed = 1u32;
    let mut random = move || {
        seed = seed.wrapping_mul(1664525).wrapping_add(1013904223);
        seed >> 8
    };
    let mut read = 0;
    for round in 0..400u64 {
        let (server, file, pair) = attacked();
        // A vector of options of endpoints, damaged in most rounds.
        let count = u64::from(random() % 5);
        let mut bytes = count.to_le_bytes().to_vec();
        let mut ticket = 0u32;
        for _ in 0..count {
            let some = (random() % 2) as u8;
            bytes.push(some);
            if some == 1 {
                bytes.extend(ticket.to_le_bytes());
                ticket += 1;
            }
        }
        for _ in 0..random() % 3 {
            let at = random() as usize % bytes.len();
            bytes[at] = random() as u8;
        }
        bytes.truncate(bytes.len() - (random() % 8 / 6) as usize);
        slot(&file, 1, SEVERAL, &bytes);
        if round % 2 == 0 {
            let line = self::file(line_bytes(ride::Contract::INFO));
            let way = (pair.links[1].clone(), numbered(&line));
            pair.links[1].arrive(pair.memory_number(), random() % 3, passage(), Some(way));
        }
        pair.links[1].take_down();
        if let Ok(talk::AskMessage::Several(ends, _)) = server.recv() {
            read += 1;
            drop(ends);
        }
        pair.down();
    }
    assert!(read > 50, "{read} were messages");
    settled(before);
}

impl Pair {
    /// By which both sides know the channel's memory.
    fn memory_number(&self) -> u64 {
        self.memory.number()
    }
}
