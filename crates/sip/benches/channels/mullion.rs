//! Our channels.

use mullion_sip::channel::TryRecvError;
use mullion_sip::process::{Home, Limits, Options, Program, spawn};
use mullion_sip::{ExVec, Parcel, Start, contract};

use crate::row::{Row, Where, beside};

contract! {
    /// A message there, and one back.
    mod ping {
        Ping: client { There1([u8; 1]) -> Pong, There32([u8; 32]) -> Pong, Block(ExVec<u8>) -> Pong, Stop -> end }
        Pong: server { Back1([u8; 1]) -> Ping, Back32([u8; 32]) -> Ping, Return(ExVec<u8>) -> Ping }
    }
}

type Client = ping::Client<ping::Ping>;
type Server = ping::Server<ping::Ping>;

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for bytes in [1, 32, 1 << 10, 32 << 10] {
        let mut ends = Some(ping::channel().expect("memory"));
        let mut traveller = Some(payload(bytes));
        rows.push(Row::new("mullion", Where::OneThread, bytes, move |times| {
            let (mut client, mut server) = ends.take().expect("left there");
            let mut message = traveller.take().expect("left there");
            for _ in 0..times {
                let waiting = send(client, message);
                server = answer(server).expect("alive");
                (client, message) = receive(waiting);
            }
            ends = Some((client, server));
            traveller = Some(message);
        }));
    }
    for place in [Where::OneWorker, Where::TwoWorkers] {
        for bytes in [1, 32, 1 << 10, 32 << 10] {
            rows.push(Row::new(
                "mullion: two processes",
                place,
                bytes,
                move |times| {
                    processes(place, bytes, times);
                },
            ));
        }
    }
    for place in [Where::OneCore, Where::TwoCores, Where::Spinning] {
        for bytes in [1, 32, 1 << 10, 32 << 10] {
            rows.push(Row::new("mullion", place, bytes, move |times| {
                run(place, bytes, times);
            }));
        }
    }
    rows.push(Row::new(
        "mullion: make and drop a channel",
        Where::OneThread,
        0,
        |times| {
            for _ in 0..times {
                drop(ping::channel().expect("memory"));
            }
        },
    ));
    rows.push(Row::new(
        "mullion: make and drop a block",
        Where::OneThread,
        64,
        |times| {
            for _ in 0..times {
                drop(mullion_sip::ExBox::new([0u64; 8]));
            }
        },
    ));
    rows.push(Row::new("malloc and free", Where::OneThread, 64, |times| {
        for _ in 0..times {
            drop(std::hint::black_box(Box::new([0u64; 8])));
        }
    }));
    rows
}

enum Payload {
    One([u8; 1]),
    Some([u8; 32]),
    Block(ExVec<u8>),
}

fn payload(bytes: usize) -> Payload {
    match bytes {
        1 => Payload::One([1]),
        32 => Payload::Some([1; 32]),
        bytes => Payload::Block(ExVec::copy_of(&vec![1; bytes])),
    }
}

#[inline]
fn send(client: Client, message: Payload) -> ping::Client<ping::Pong> {
    match message {
        Payload::One(bytes) => client.there1(bytes),
        Payload::Some(bytes) => client.there32(bytes),
        Payload::Block(block) => client.block(block),
    }
    .expect("alive")
}

#[inline]
fn receive(client: ping::Client<ping::Pong>) -> (Client, Payload) {
    came(client.recv().expect("alive"))
}

#[inline]
fn came(message: ping::PongMessage) -> (Client, Payload) {
    match message {
        ping::PongMessage::Back1(bytes, client) => (client, Payload::One(bytes)),
        ping::PongMessage::Back32(bytes, client) => (client, Payload::Some(bytes)),
        ping::PongMessage::Return(block, client) => (client, Payload::Block(block)),
    }
}

#[inline]
fn answer(server: Server) -> Option<Server> {
    answer_to(server.recv().expect("alive"))
}

#[inline]
fn answer_to(message: ping::PingMessage) -> Option<Server> {
    let answered = match message {
        ping::PingMessage::There1(bytes, server) => server.back1(bytes),
        ping::PingMessage::There32(bytes, server) => server.back32(bytes),
        ping::PingMessage::Block(block, server) => server.r#return(block),
        ping::PingMessage::Stop => return None,
    };
    Some(answered.expect("alive"))
}

fn run(place: Where, bytes: usize, times: u32) {
    let (mut client, server) = ping::channel().expect("memory");
    let server = Parcel::pack(server);
    let spinning = place == Where::Spinning;
    beside(
        place,
        || {
            let mut message = payload(bytes);
            for _ in 0..times {
                let mut waiting = send(client, message);
                (client, message) = loop {
                    if !spinning {
                        break receive(waiting);
                    }
                    match waiting.try_recv() {
                        Ok(message) => break came(message),
                        Err(TryRecvError::Empty(again)) => waiting = again,
                        Err(TryRecvError::Closed(error)) => panic!("{error}"),
                    }
                    std::hint::spin_loop();
                };
            }
            client.stop().expect("alive");
        },
        || {
            let mut server = server.open();
            loop {
                let next = if spinning {
                    match server.try_recv() {
                        Ok(message) => answer_to(message),
                        Err(TryRecvError::Empty(again)) => {
                            std::hint::spin_loop();
                            Some(again)
                        }
                        Err(TryRecvError::Closed(error)) => panic!("{error}"),
                    }
                } else {
                    answer(server)
                };
                match next {
                    Some(next) => server = next,
                    None => return,
                }
            }
        },
    );
}

/// Two processes, each with its thread, on one worker or on two.
fn processes(place: Where, bytes: usize, times: u32) {
    let workers = std::num::NonZeroUsize::new(2);
    mullion_sip::start(Start { workers }).expect("workers");
    let (client, server) = ping::channel().expect("memory");
    let options = |worker| Options {
        home: Home::Worker(worker),
        limits: Limits {
            slice: std::time::Duration::from_secs(10),
            ..Limits::default()
        },
        ..Options::default()
    };
    // SAFETY: the two programs keep nothing beyond themselves.
    let (serve, ask) = unsafe { (Program::new("serve", serve), Program::new("ask", ask)) };
    let far = usize::from(place == Where::TwoWorkers);
    let serving = spawn(serve, server, &options(far)).expect("a process");
    let asking = spawn(ask, (client, bytes, times), &options(0)).expect("a process");
    assert!(asking.wait().cause.is_success());
    assert!(serving.wait().cause.is_success());
}

fn serve(mut server: Server) {
    while let Some(next) = answer(server) {
        server = next;
    }
}

fn ask((mut client, bytes, times): (Client, usize, u32)) {
    let mut message = payload(bytes);
    for _ in 0..times {
        (client, message) = receive(send(client, message));
    }
    client.stop().expect("alive");
}
