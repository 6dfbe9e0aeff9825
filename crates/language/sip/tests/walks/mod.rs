//! Random walks through a contract, that end at any point; both sides number what they send.
//! (Shared by tests: it is in a folder of its own so that it is no test by itself.)

use mullion_sip::channel::{ChannelClosed, select};
use mullion_sip::{ExBox, ExVec, Exchange, contract};

#[derive(Exchange)]
pub(crate) struct Tree {
    value: u64,
    children: ExVec<ExBox<Tree>>,
}

contract! {
    /// Runs of both sides, of different lengths, with data of every kind. Each message has the sender's count.
    pub(crate) mod walk {
        A: client { One(u64) -> B, Block(ExBox<u64>) -> C, Last(u64) -> end }
        B: client { Two((u64, [u8; 100])) -> C, Tree(ExBox<Tree>) -> D }
        C: client { Three(u64) -> D }
        D: server { Four(u64) -> E, Bytes(ExVec<u64>) -> A }
        E: server { Five(u64) -> A, Channel((u64, inner::Client<inner::Ask>)) -> F }
        F: client { Got(u64) -> A }
    }
}

contract! {
    pub(crate) mod inner {
        Ask: client { Number(u64) -> Tell }
        Tell: server { Number(u64) -> Ask, Last -> end }
    }
}

/// A small generator of random numbers (xorshift64*), so that a run can be repeated.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) % bound
    }

    pub(crate) fn chance(&mut self, one_in: u64) -> bool {
        self.below(one_in) == 0
    }
}

/// Why a walk is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// This side has lost its patience, or has sent the last message.
    Left,
    /// It has received everything that there was, and its peer has gone.
    Heard,
    /// Its peer had gone when it sent; what the peer sent before was not received.
    Spoke,
}

impl From<ChannelClosed> for End {
    fn from(_: ChannelClosed) -> End {
        End::Heard
    }
}

/// What a send that fails says.
fn spoke(_: ChannelClosed) -> End {
    End::Spoke
}

/// Each side's messages are numbered from 0.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) sent: u64,
    pub(crate) received: u64,
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
pub(crate) fn client(
    mut at: walk::Client<walk::A>,
    random: &mut Random,
    patience: u64,
) -> (Counts, End) {
    let mut counts = Counts::default();
    let walk = || {
        loop {
            if random.chance(patience) {
                return Ok(());
            }
            let d = match random.below(100) {
                0 => return at.last(counts.next()).map_err(spoke),
                1..50 => {
                    let b = at.one(counts.next()).map_err(spoke)?;
                    if random.chance(2) {
                        let count = counts.next();
                        b.two((count, [count as u8; 100]))
                            .map_err(spoke)?
                            .three(counts.next())
                            .map_err(spoke)?
                    } else {
                        b.tree(tree(counts.next(), random)).map_err(spoke)?
                    }
                }
                _ => {
                    let c = at.block(ExBox::new(counts.next())).map_err(spoke)?;
                    if random.chance(patience) {
                        return Ok(());
                    }
                    c.three(counts.next()).map_err(spoke)?
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
                            f.got(counts.next()).map_err(spoke)?
                        }
                    }
                }
            };
        }
    };
    let result: Result<(), End> = walk();
    (counts, result.err().unwrap_or(End::Left))
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

pub(crate) fn server(
    mut at: walk::Server<walk::A>,
    random: &mut Random,
    patience: u64,
) -> (Counts, End) {
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
                at = d
                    .bytes((0..length).map(|_| count).collect())
                    .map_err(spoke)?;
                continue;
            }
            let e = d.four(counts.next()).map_err(spoke)?;
            at = if random.chance(2) {
                e.five(counts.next()).map_err(spoke)?
            } else {
                let (asking, telling) = inner::channel().expect("memory");
                let f = e.channel((counts.next(), asking)).map_err(spoke)?;
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
    let result: Result<(), End> = walk();
    (counts, result.err().unwrap_or(End::Left))
}

fn three(
    c: walk::Server<walk::C>,
    counts: &mut Counts,
) -> Result<walk::Server<walk::D>, ChannelClosed> {
    let walk::CMessage::Three(count, d) = c.recv()?;
    counts.expect(count);
    Ok(d)
}
