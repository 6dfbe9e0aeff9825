//! Messages of ours: between processes, between OS threads, and both ends on one thread.

use std::sync::atomic::{AtomicUsize, Ordering};

use mullion_sip::channel::TryRecvError;
use mullion_sip::{ExVec, contract};
use mullion_sip_hosting::Parcel;

use crate::kernel::in_process;
use crate::row::{Of, Where, measure};
use crate::threads::{beside, times};

contract! {
    /// A message there, and one back.
    pub(crate) mod ping {
        Ping: client { There1([u8; 1]) -> Pong, There32([u8; 32]) -> Pong, Block(ExVec<u8>) -> Pong, Stop -> end }
        Pong: server { Back1([u8; 1]) -> Ping, Back32([u8; 32]) -> Ping, Return(ExVec<u8>) -> Ping }
    }
}

pub(crate) type Client = ping::Client<ping::Ping>;
pub(crate) type Server = ping::Server<ping::Ping>;

/// Bytes of the messages of Figure 4.
pub(crate) const SIZES: [usize; 4] = [1, 32, 1 << 10, 32 << 10];
const NAME: &str = "message there and back";

/// In place where it is small, else a block that moves by pointer.
// Each begins at a multiple of eight, as in messages, so that the compiler does not cut one where another has fields.
#[repr(u64)]
pub(crate) enum Payload {
    One([u8; 1]),
    Some([u8; 32]),
    Block(ExVec<u8>),
}

impl Payload {
    pub(crate) fn of(bytes: usize) -> Payload {
        match bytes {
            1 => Payload::One([1]),
            32 => Payload::Some([1; 32]),
            bytes => Payload::Block(ExVec::copy_of(&vec![1; bytes])),
        }
    }
}

/// Sends `$message` so often, and lets `$meanwhile` do what lies between that and the answer: one loop for each kind
/// of message, as a program has.
macro_rules! rounds {
    ($client:ident, $times:expr, $send:ident($value:ident) => $back:ident, |$waiting:ident| $meanwhile:expr) => {
        for _ in 0..$times {
            let $waiting = $client.$send($value).expect("alive");
            let answered = $meanwhile;
            let Ok(ping::PongMessage::$back(returned, next)) = answered else {
                panic!("another answer")
            };
            $value = returned;
            $client = next;
        }
    };
}

/// Both ends on this thread.
pub(crate) fn alone(
    (mut client, server): (Client, Server),
    message: Payload,
    times: u32,
) -> (Client, Server, Payload) {
    let mut server = Some(server);
    let mut echo = || server = answer(server.take().expect("left").recv().expect("alive"));
    let message = match message {
        Payload::One(mut value) => {
            rounds!(client, times, there1(value) => Back1, |waiting| { echo(); waiting.recv() });
            Payload::One(value)
        }
        Payload::Some(mut value) => {
            rounds!(client, times, there32(value) => Back32, |waiting| { echo(); waiting.recv() });
            Payload::Some(value)
        }
        Payload::Block(mut value) => {
            rounds!(client, times, block(value) => Return, |waiting| { echo(); waiting.recv() });
            Payload::Block(value)
        }
    };
    (client, server.expect("left"), message)
}

#[inline(always)]
fn answer(message: ping::PingMessage) -> Option<Server> {
    let answered = match message {
        ping::PingMessage::There1(bytes, server) => server.back1(bytes),
        ping::PingMessage::There32(bytes, server) => server.back32(bytes),
        ping::PingMessage::Block(block, server) => server.r#return(block),
        ping::PingMessage::Stop => return None,
    };
    Some(answered.expect("alive"))
}

fn ask(mut client: Client, message: Payload, times: u32) -> (Client, Payload) {
    let message = match message {
        Payload::One(mut value) => {
            rounds!(client, times, there1(value) => Back1, |waiting| waiting.recv());
            Payload::One(value)
        }
        Payload::Some(mut value) => {
            rounds!(client, times, there32(value) => Back32, |waiting| waiting.recv());
            Payload::Some(value)
        }
        Payload::Block(mut value) => {
            rounds!(client, times, block(value) => Return, |waiting| waiting.recv());
            Payload::Block(value)
        }
    };
    (client, message)
}

fn ask_spinning(mut client: Client, message: Payload, times: u32) -> (Client, Payload) {
    macro_rules! spin {
        ($waiting:ident) => {{
            let mut waiting = $waiting;
            loop {
                match waiting.try_recv() {
                    Err(TryRecvError::Empty(again)) => waiting = again,
                    found => break found,
                }
                std::hint::spin_loop();
            }
        }};
    }
    let message = match message {
        Payload::One(mut value) => {
            rounds!(client, times, there1(value) => Back1, |waiting| spin!(waiting));
            Payload::One(value)
        }
        Payload::Some(mut value) => {
            rounds!(client, times, there32(value) => Back32, |waiting| spin!(waiting));
            Payload::Some(value)
        }
        Payload::Block(mut value) => {
            rounds!(client, times, block(value) => Return, |waiting| spin!(waiting));
            Payload::Block(value)
        }
    };
    (client, message)
}

fn serve(mut server: Server) {
    while let Some(next) = answer(server.recv().expect("alive")) {
        server = next;
    }
}

fn serve_spinning(mut server: Server) {
    loop {
        server = match server.try_recv() {
            Ok(message) => match answer(message) {
                Some(next) => next,
                None => return,
            },
            Err(TryRecvError::Empty(again)) => {
                std::hint::spin_loop();
                again
            }
            Err(TryRecvError::Closed(error)) => panic!("{error}"),
        };
    }
}

/// Two processes, on one worker or on two.
pub(crate) fn between_processes() {
    static BYTES: AtomicUsize = AtomicUsize::new(0);
    static FAR: AtomicUsize = AtomicUsize::new(0);
    fn asking(client: Client) {
        let bytes = BYTES.load(Ordering::Relaxed);
        let place = match FAR.load(Ordering::Relaxed) {
            0 => Where::OneWorker,
            _ => Where::TwoWorkers,
        };
        let (batches, times) = times(place);
        let mut ends = Some((client, Payload::of(bytes)));
        let mut row = Of::new(NAME, "mullion, two processes", place).bytes(bytes);
        if place == Where::OneWorker {
            row = row.aim(60.0);
            if bytes == 1 {
                row = row.paper(1_041.0);
            }
        }
        measure(row, batches, times, |times| {
            let (client, message) = ends.take().expect("left");
            ends = Some(ask(client, message, times));
        });
        let (client, _) = ends.expect("left");
        client.stop().expect("alive");
    }
    for far in [0, 1] {
        for bytes in SIZES {
            BYTES.store(bytes, Ordering::Relaxed);
            FAR.store(far, Ordering::Relaxed);
            let (client, server) = ping::channel().expect("memory");
            let serving = in_process(serve, server, far);
            let asking = in_process(asking, client, 0);
            assert!(asking.wait().cause.is_success());
            assert!(serving.wait().cause.is_success());
        }
    }
}

/// Two plain OS threads.
pub(crate) fn between_threads(place: Where) {
    let (batches, times) = times(place);
    for bytes in SIZES {
        let (client, server) = ping::channel().expect("memory");
        let server = Parcel::pack(server);
        beside(
            place,
            || {
                let mut ends = Some((client, Payload::of(bytes)));
                let row = Of::new(NAME, "mullion, OS threads", place).bytes(bytes);
                measure(row, batches, times, |times| {
                    let (client, message) = ends.take().expect("left");
                    ends = Some(match place.spins() {
                        false => ask(client, message, times),
                        true => ask_spinning(client, message, times),
                    });
                });
                let (client, _) = ends.take().expect("left");
                client.stop().expect("alive");
            },
            || match place.spins() {
                false => serve(server.open()),
                true => serve_spinning(server.open()),
            },
        );
    }
}
