//! Random traffic between threads, with endpoints that end at any point: every message arrives once and in order,
//! everybody is told of the end, and at last every block is free again. `MULLION_STRESS_ROUNDS` makes it longer.

use std::sync::Mutex;
use std::thread;

use mullion_sip::channel::{ChannelClosed, select};
use mullion_sip::exchange::census;
use mullion_sip::{ExBox, ExVec, Exchange, Parcel, contract};

#[derive(Exchange)]
struct Tree {
    value: u64,
    children: ExVec<ExBox<Tree>>,
}

contract! {
    /// Runs of both sides, of different lengths, with data of every kind. Each message has the sender's count.
    mod walk {
        A: client { One(u64) -> B, Block(ExBox<u64>) -> C, Last(u64) -> end }
        B: client { Two((u64, [u8; 100])) -> C, Tree(ExBox<Tree>) -> D }
        C: client { Three(u64) -> D }
        D: server { Four(u64) -> E, Bytes(ExVec<u64>) -> A }
        E: server { Five(u64) -> A, Channel((u64, inner::Client<inner::Ask>)) -> F }
        F: client { Got(u64) -> A }
    }
}

contract! {
    mod inner {
        Ask: client { Number(u64) -> Tell }
        Tell: server { Number(u64) -> Ask, Last -> end }
    }
}

/// A small generator of random numbers (xorshift64*), so that a run can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) % bound
    }

    fn chance(&mut self, one_in: u64) -> bool {
        self.below(one_in) == 0
    }
}

/// Each side's messages are numbered from 0.
#[derive(Default)]
struct Counts {
    sent: u64,
    received: u64,
}

impl Counts {
    fn next(&mut self) -> u64 {
        self.sent += 1;
        self.sent - 1
    }

    fn expect(&mut self, count: u64) {
        assert_eq!(count, self.received, "lost, doubled or out of order");
        self.received += 1;
    }
}

fn tree(value: u64, random: &mut Random) -> ExBox<Tree> {
    let children = (0..random.below(4))
        .map(|_| {
            ExBox::new(Tree {
                value,
                children: ExVec::new(),
            })
        })
        .collect();
    ExBox::new(Tree { value, children })
}

/// Walks until it loses its patience, or its peer. Says how many messages it has sent and received.
fn client(
    mut at: walk::Client<walk::A>,
    random: &mut Random,
    patience: u64,
) -> (Counts, Result<(), ChannelClosed>) {
    let mut counts = Counts::default();
    let walk = || {
        loop {
            if random.chance(patience) {
                return Ok(());
            }
            let d = match random.below(100) {
                0 => return at.last(counts.next()),
                1..50 => {
                    let b = at.one(counts.next())?;
                    if random.chance(2) {
                        let count = counts.next();
                        b.two((count, [count as u8; 100]))?.three(counts.next())?
                    } else {
                        b.tree(tree(counts.next(), random))?
                    }
                }
                _ => {
                    let c = at.block(ExBox::new(counts.next()))?;
                    if random.chance(patience) {
                        return Ok(());
                    }
                    c.three(counts.next())?
                }
            };
            if random.chance(8) {
                select(&[&d]);
            }
            at = match d.recv()? {
                walk::DMessage::Bytes(bytes, a) => {
                    bytes.iter().for_each(|&count| assert_eq!(count, bytes[0]));
                    counts.expect(bytes[0]);
                    a
                }
                walk::DMessage::Four(count, e) => {
                    counts.expect(count);
                    match e.recv()? {
                        walk::EMessage::Five(count, a) => {
                            counts.expect(count);
                            a
                        }
                        walk::EMessage::Channel((count, asking), f) => {
                            counts.expect(count);
                            ask(asking, random);
                            f.got(counts.next())?
                        }
                    }
                }
            };
        }
    };
    let result = walk();
    (counts, result)
}

/// Asks a few times; the peer may go whenever it likes.
fn ask(mut asking: inner::Client<inner::Ask>, random: &mut Random) {
    while !random.chance(4) {
        let number = random.below(1 << 40);
        let Ok(Ok(inner::TellMessage::Number(told, again))) =
            asking.number(number).map(|tell| tell.recv())
        else {
            return;
        };
        assert_eq!(told, number + 1);
        asking = again;
    }
}

fn tell(mut telling: inner::Server<inner::Ask>, random: &mut Random) {
    while let Ok(inner::AskMessage::Number(number, tell)) = telling.recv() {
        if random.chance(8) {
            // The peer may have gone: nothing is lost then.
            let _ = tell.last();
            return;
        }
        match tell.number(number + 1) {
            Ok(again) => telling = again,
            Err(ChannelClosed) => return,
        }
    }
}

fn server(
    mut at: walk::Server<walk::A>,
    random: &mut Random,
    patience: u64,
) -> (Counts, Result<(), ChannelClosed>) {
    let mut counts = Counts::default();
    let walk = || {
        loop {
            let d = match at.recv()? {
                walk::AMessage::Last(count) => {
                    counts.expect(count);
                    return Ok(());
                }
                walk::AMessage::Block(block, c) => {
                    counts.expect(*block);
                    three(c, &mut counts)?
                }
                walk::AMessage::One(count, b) => {
                    counts.expect(count);
                    match b.recv()? {
                        walk::BMessage::Two((count, bytes), c) => {
                            assert_eq!(bytes, [count as u8; 100]);
                            counts.expect(count);
                            three(c, &mut counts)?
                        }
                        walk::BMessage::Tree(tree, d) => {
                            let same = |child: &ExBox<Tree>| child.value == tree.value;
                            assert!(tree.children.iter().all(same));
                            counts.expect(tree.value);
                            d
                        }
                    }
                }
            };
            if random.chance(patience) {
                return Ok(());
            }
            if random.chance(2) {
                let count = counts.next();
                let length = 1 + random.below(2000);
                at = d.bytes((0..length).map(|_| count).collect())?;
                continue;
            }
            let e = d.four(counts.next())?;
            at = if random.chance(2) {
                e.five(counts.next())?
            } else {
                let (asking, telling) = inner::channel().expect("memory");
                let f = e.channel((counts.next(), asking))?;
                if random.chance(2) {
                    tell(telling, random);
                } else {
                    drop(telling);
                }
                let walk::FMessage::Got(count, a) = f.recv()?;
                counts.expect(count);
                a
            };
        }
    };
    let result = walk();
    (counts, result)
}

fn three(
    c: walk::Server<walk::C>,
    counts: &mut Counts,
) -> Result<walk::Server<walk::D>, ChannelClosed> {
    let walk::CMessage::Three(count, d) = c.recv()?;
    counts.expect(count);
    Ok(d)
}

/// The census counts every thread's blocks, so tests take turns.
static TURN: Mutex<()> = Mutex::new(());

fn rounds() -> u64 {
    std::env::var("MULLION_STRESS_ROUNDS")
        .ok()
        .and_then(|rounds| rounds.parse().ok())
        .unwrap_or(200)
}

#[test]
fn walks_of_two_threads() {
    let _turn = TURN.lock();
    let before = census().in_use;
    let mut messages = 0;
    for round in 0..rounds() {
        let (near, far) = walk::channel().expect("memory");
        let far = Parcel::pack(far);
        let patience = if round % 2 == 0 { 20 } else { 500 };
        let serving = thread::spawn(move || {
            let mut random = Random(round * 2 + 1);
            server(far.open(), &mut random, patience).0
        });
        let (here, _) = client(near, &mut Random(round * 2 + 2), patience);
        let there = serving.join().expect("no panic");
        // What was sent may be on its way when the receiver goes; nothing arrives that was not sent.
        assert!(there.received <= here.sent && here.received <= there.sent);
        messages += here.received + there.received;
    }
    assert!(messages > rounds());
    assert_eq!(census().in_use, before);
}

#[test]
fn many_walks_at_once_on_one_thread_each() {
    let _turn = TURN.lock();
    let before = census().in_use;
    let threads: Vec<_> = (1..5)
        .map(|seed| {
            thread::spawn(move || {
                for round in 0..rounds() / 4 {
                    let (near, far) = walk::channel().expect("memory");
                    let far = Parcel::pack(far);
                    let other = thread::spawn(move || server(far.open(), &mut Random(seed), 50).0);
                    let _ = client(near, &mut Random(seed * 1000 + round + 1), 50);
                    other.join().expect("no panic");
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("no panic");
    }
    assert_eq!(census().in_use, before);
}

#[test]
fn a_hundred_thousand_channels_alive() {
    let _turn = TURN.lock();
    let before = census().in_use;
    let mut channels: Vec<_> = (0..100_000)
        .map(|_| inner::channel().expect("memory"))
        .collect();
    assert_eq!(census().in_use, before + 300_000);
    let last = channels.len() as u64;
    channels = channels
        .into_iter()
        .zip(0..last)
        .map(|((asking, telling), number)| {
            let asking = asking.number(number).expect("alive");
            let Ok(inner::AskMessage::Number(number, tell)) = telling.recv() else {
                panic!("lost")
            };
            let telling = tell.number(number).expect("alive");
            let Ok(inner::TellMessage::Number(told, asking)) = asking.recv() else {
                panic!("lost")
            };
            assert_eq!(told, number);
            (asking, telling)
        })
        .collect();
    drop(channels);
    assert_eq!(census().in_use, before);
}

#[test]
fn packed_and_never_opened() {
    let _turn = TURN.lock();
    let before = census().in_use;
    let (near, far) = walk::channel().expect("memory");
    let far = Parcel::pack(far);
    let near = near.block(ExBox::new(0)).expect("alive");
    drop(far);
    assert!(matches!(near.three(1), Err(ChannelClosed)));
    assert_eq!(census().in_use, before);
}
