//! Other channels in Rust, as a pair of queues with room for one message.

use crate::row::{Row, Where, beside};

/// A message as the peers can send it best.
#[expect(dead_code, reason = "nobody looks at what was sent")]
pub(crate) enum Message {
    One([u8; 1]),
    Some([u8; 32]),
    Block(Box<[u8]>),
}

fn message(bytes: usize) -> Message {
    match bytes {
        1 => Message::One([1]),
        32 => Message::Some([1; 32]),
        bytes => Message::Block(vec![1; bytes].into()),
    }
}

/// Rows for a channel with `bounded(1)`, `send`, `recv` and `try_recv`.
macro_rules! rows {
    ($name:literal, $bounded:expr, |$end:ident: $kind:ty| $try_recv:expr) => {{
        let mut rows = Vec::new();
        for place in [
            Where::OneThread,
            Where::OneCore,
            Where::TwoCores,
            Where::Spinning,
        ] {
            for bytes in [1, 32, 1 << 10, 32 << 10] {
                let (there, arriving) = $bounded;
                let (back, returning) = $bounded;
                rows.push(Row::new($name, place, bytes, move |times| {
                    let (there, returning, arriving, back) = (&there, &returning, &arriving, &back);
                    let mut traveller = message(bytes);
                    if place == Where::OneThread {
                        for _ in 0..times {
                            there.send(traveller).expect("alive");
                            back.send(arriving.recv().expect("alive")).expect("alive");
                            traveller = returning.recv().expect("alive");
                        }
                        return;
                    }
                    let receive = move |$end: &$kind| {
                        if place != Where::Spinning {
                            return $end.recv().expect("alive");
                        }
                        loop {
                            match $try_recv {
                                Some(message) => return message,
                                None => std::hint::spin_loop(),
                            }
                        }
                    };
                    beside(
                        place,
                        || {
                            for _ in 0..times {
                                there.send(traveller).expect("alive");
                                traveller = receive(returning);
                            }
                        },
                        || {
                            for _ in 0..times {
                                back.send(receive(arriving)).expect("alive");
                            }
                        },
                    );
                }));
            }
        }
        rows
    }};
}

pub(crate) fn rows() -> Vec<Row> {
    let crossbeam = rows!(
        "crossbeam-channel",
        crossbeam_channel::bounded(1),
        |end: crossbeam_channel::Receiver<Message>| { end.try_recv().ok() }
    );
    let kanal = rows!("kanal", kanal::bounded(1), |end: kanal::Receiver<
        Message,
    >| end
        .try_recv()
        .expect("alive"));
    crossbeam.into_iter().chain(kanal).collect()
}
