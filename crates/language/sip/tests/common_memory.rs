//! Vectors that go between OS processes by number, with both ends in this program: that they do, that every block is
//! accounted for, and what a hostile peer can claim.

mod host;

use std::fs::File;
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use host::host;
use mullion_sip::channel::{ChannelClosed, Contract};
use mullion_sip::exchange::census;
use mullion_sip::{ExString, ExVec, contract};
use mullion_sip_hosting::Start;
use mullion_sip_hosting::common_memory::{BYTES, Member, Sharing, Table, arrived, holders, share};
use mullion_sip_hosting::remote::{LINK_BYTES, Link, Memory, join, line_bytes};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};

contract! {
    mod talk {
        Ask: client { Bytes(ExVec<u8>) -> Answer, Words(ExVec<u64>) -> Answer, Text(ExString) -> Answer,
            Flags(ExVec<bool>) -> Answer }
        Answer: server { Back(ExVec<u8>) -> Ask, Done -> Ask, Bye -> end }
    }
}

/// This program, which is both sides.
const ME: Member = Member { part: 3, life: 7 };

fn file(bytes: usize) -> OwnedFd {
    let file =
        memfd_create("shared", MemfdFlags::ALLOW_SEALING | MemfdFlags::CLOEXEC).expect("memory");
    ftruncate(&file, bytes as u64).expect("memory");
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL).expect("sealed");
    file
}

/// One test at a time: they count blocks.
fn alone() -> (MutexGuard<'static, ()>, &'static File) {
    static ONE: Mutex<()> = Mutex::new(());
    static COMMONS: OnceLock<File> = OnceLock::new();
    let alone = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    host()
        .start(Start {
            workers: NonZeroUsize::new(2),
        })
        .expect("workers");
    host().on_fault(|_, _, _| {});
    let file = COMMONS.get_or_init(|| {
        let file = file(BYTES);
        assert!(share(file.as_fd(), ME, Sharing::Open).expect("shared"));
        file.into()
    });
    (alone, file)
}

struct Pair {
    links: [Arc<Link>; 2],
    line: OwnedFd,
}

fn pair() -> Pair {
    let bells = file(LINK_BYTES);
    Pair {
        links: [0, 1].map(|end| {
            let memory = Memory::map(bells.as_fd(), LINK_BYTES).expect("mapped");
            Link::new(memory, end, "peer", Some(ME.life)).expect("large enough")
        }),
        line: file(line_bytes(talk::Contract::INFO)),
    }
}

impl Pair {
    fn memory(&self) -> Memory {
        Memory::map(self.line.as_fd(), 1).expect("mapped")
    }

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

fn settled(blocks: u64) {
    let begin = Instant::now();
    while census().in_use != blocks {
        let late = begin.elapsed() > Duration::from_secs(10);
        assert!(!late, "{} blocks, not {blocks}", census().in_use);
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn large_vectors_go_by_number_and_small_ones_and_texts_by_copy() {
    let _alone = alone();
    let (before, came) = (census().in_use, arrived());
    let pair = pair();
    let (mut client, mut server) = (pair.client(), pair.server());
    for size in [1, 512, 513, 5000, 100_000, 20 << 20] {
        let sent: Vec<u8> = (0..size).map(|index| index as u8).collect();
        let asked = client.bytes(ExVec::copy_of(&sent)).expect("alive");
        let Ok(talk::AskMessage::Bytes(bytes, answering)) = server.recv() else {
            panic!("no bytes")
        };
        assert!(*bytes == *sent);
        server = answering.back(bytes).expect("alive");
        let Ok(talk::AnswerMessage::Back(bytes, next)) = asked.recv() else {
            panic!("no answer")
        };
        assert!(*bytes == *sent);
        client = next;
    }
    assert_eq!(arrived() - came, 8, "four, there and back");
    let words = client.words((0..5000u64).collect()).expect("alive");
    let Ok(talk::AskMessage::Words(numbers, answering)) = server.recv() else {
        panic!("no words")
    };
    assert!(numbers.iter().copied().eq(0..5000));
    server = answering.done().expect("alive");
    let Ok(talk::AnswerMessage::Done(client)) = words.recv() else {
        panic!("no answer")
    };
    assert_eq!(arrived() - came, 9);
    let text = "grüße ".repeat(1000);
    let bytes: ExVec<u8> = ExVec::copy_of(text.as_bytes());
    let asked = client
        .text(ExString::try_from(bytes).expect("a text"))
        .expect("alive");
    let Ok(talk::AskMessage::Text(came_text, answering)) = server.recv() else {
        panic!("no text")
    };
    assert_eq!(*came_text, *text);
    server = answering.done().expect("alive");
    let Ok(talk::AnswerMessage::Done(client)) = asked.recv() else {
        panic!("no answer")
    };
    let asked = client
        .flags((0..9000).map(|index| index % 3 == 0).collect())
        .expect("alive");
    let Ok(talk::AskMessage::Flags(flags, answering)) = server.recv() else {
        panic!("no flags")
    };
    assert!(flags.len() == 9000 && flags[3] && !flags[4]);
    drop((answering.bye(), asked.recv()));
    assert_eq!(arrived() - came, 9, "texts and flags are copied");
    drop((numbers, came_text, flags));
    settled(before);
    assert_eq!(holders().len(), 0);
}

#[test]
fn blocks_are_used_again() {
    let _alone = alone();
    let before = census().in_use;
    let pair = pair();
    let (mut client, mut server) = (pair.client(), pair.server());
    // More than there is room for at once: a part of this size has 256 MiB.
    for _ in 0..200 {
        let asked = client
            .bytes(ExVec::copy_of(&vec![7; 3 << 20]))
            .expect("alive");
        let Ok(talk::AskMessage::Bytes(bytes, answering)) = server.recv() else {
            panic!("no bytes")
        };
        drop(bytes);
        server = answering.done().expect("alive");
        let Ok(talk::AnswerMessage::Done(next)) = asked.recv() else {
            panic!("no answer")
        };
        client = next;
    }
    drop((client, server));
    settled(before);
    assert_eq!(holders().len(), 0);
}

#[test]
fn what_was_on_its_way_when_the_peer_died_comes_back() {
    let (_alone, file) = alone();
    let before = census().in_use;
    let pair = pair();
    // Nobody is at the other end, and takes it.
    let client = pair.client();
    drop(client.bytes(ExVec::copy_of(&[1; 9000])).expect("alive"));
    settled(before);
    let away = |count: usize| {
        let begin = Instant::now();
        while holders().get(&ME.life).copied().unwrap_or(0) != count {
            assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", holders());
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    away(1);
    pair.links[0].take_down();
    drop(pair);
    away(0);
    // A life that is over without a link's knowing.
    let table = Table::map(file.as_fd()).expect("mapped");
    table.reclaim(|life| life == ME.life);
    assert_eq!(holders().len(), 0);
}

/// Where the ring of messages to the server is: two lines, and behind it the client's ring of one slot.
const RING: u64 = 128 + 64;
/// Where the table of the shared file is, for blocks of 4 KiB.
const TABLE: u64 = (9 << 33) + (4 << 23);

#[test]
fn what_a_hostile_peer_claims_ends_the_channel() {
    let (_alone, common_memory) = alone();
    let before = census().in_use;
    let held: ExVec<u8> = ExVec::copy_of(&[9; 4096]);
    let each = (1u32 << 21) / 32;
    let (mine, other) = (
        (23 << 27) | (u32::from(ME.part) * each),
        (23 << 27) | (17 * each),
    );
    let claim = |number: u32, word: u32| {
        let at = TABLE + u64::from(number & 0x7ff_ffff) * 4;
        common_memory
            .write_all_at(&word.to_le_bytes(), at)
            .expect("written");
    };
    let given = u32::from(ME.life) | (u32::from(ME.life) << 16);
    const LENT: u64 = 1 << 63;
    // Message, count, number of the block, and what the table says of it.
    let cases: [(u16, u64, u32, u32); 11] = [
        // Nobody has given it, or to another.
        (0, LENT | 10, other + 1, 0),
        (0, LENT | 10, other + 1, u32::MAX),
        (0, LENT | 10, other + 1, 8 | (u32::from(ME.life) << 16)),
        // We have it ourselves.
        (0, LENT | 10, mine, given),
        // No such block, or not in this memory.
        (0, LENT | 10, 0, given),
        (0, LENT | 10, (5 << 27) | 40, given),
        (0, LENT | 10, (30 << 27) | 1, given),
        (0, LENT | 10, (29 << 27) | 0x7ff_ffff, given),
        // Longer than the block.
        (0, LENT | 4097, other + 2, given),
        (1, LENT | 513, other + 2, given),
        // A text is not taken so.
        (2, LENT | 10, other + 2, given),
    ];
    for (case, (message, count, number, word)) in cases.into_iter().enumerate() {
        if number >> 27 == 23 {
            claim(number, word);
        }
        let pair = pair();
        let server = pair.server();
        let line = File::from(pair.line.try_clone().expect("a descriptor"));
        line.write_all_at(&12u64.to_le_bytes(), RING + 8)
            .expect("written");
        line.write_all_at(&count.to_le_bytes(), RING + 16)
            .expect("written");
        line.write_all_at(&number.to_le_bytes(), RING + 24)
            .expect("written");
        let word = 1u64 << 16 | u64::from(message);
        line.write_all_at(&word.to_le_bytes(), RING)
            .expect("written");
        pair.links[1].take_down();
        assert!(matches!(server.recv(), Err(ChannelClosed)), "case {case}");
        assert_eq!(*held, [9; 4096], "case {case}");
    }
    // The same block twice: once it is taken, and then it is ours.
    claim(other + 3, given);
    let pairs = [pair(), pair()];
    let servers = pairs.each_ref().map(Pair::server);
    for pair in &pairs {
        let line = File::from(pair.line.try_clone().expect("a descriptor"));
        line.write_all_at(&12u64.to_le_bytes(), RING + 8)
            .expect("written");
        line.write_all_at(&(LENT | 10).to_le_bytes(), RING + 16)
            .expect("written");
        line.write_all_at(&(other + 3).to_le_bytes(), RING + 24)
            .expect("written");
        line.write_all_at(&(1u64 << 16).to_le_bytes(), RING)
            .expect("written");
    }
    pairs.iter().for_each(|pair| pair.links[1].take_down());
    let taken = servers.map(|server| server.recv().is_ok());
    assert_eq!(taken.iter().filter(|taken| **taken).count(), 1);
    drop(held);
    drop(pairs);
    // What the table says of ours, others count.
    claim(mine, 0);
    settled(before);
}
