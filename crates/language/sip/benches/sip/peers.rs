//! Other channels in Rust, as a pair of queues with room for one message.

use crate::messages::SIZES;
use crate::row::{Of, Where, measure};
use crate::threads::{beside, times};

/// A message as the peers can send it best.
pub(crate) enum Message {
    One([u8; 1]),
    Some([u8; 32]),
    Block(Box<[u8]>),
    /// The last.
    Stop,
}

impl Message {
    fn of(bytes: usize) -> Message {
        match bytes {
            1 => Message::One([1]),
            32 => Message::Some([1; 32]),
            bytes => Message::Block(vec![1; bytes].into()),
        }
    }

    /// Whether it is not the last; looks at what was sent, as a receiver would.
    fn goes_on(&self) -> bool {
        match self {
            Message::One(bytes) => std::hint::black_box(bytes[0]) == 1,
            Message::Some(bytes) => std::hint::black_box(bytes[0]) == 1,
            Message::Block(bytes) => std::hint::black_box(bytes[0]) == 1,
            Message::Stop => false,
        }
    }
}

/// What a channel of one message can do.
struct Ends<S, R> {
    sender: S,
    receiver: R,
}

/// Rows of a kind of channel, with its ways to send, to receive and to look for a message.
macro_rules! rows {
    ($place:expr, $who:literal, $new:expr, |$to:ident, $message:ident| $send:expr, |$from:ident| $receive:expr,
     |$look:ident| $try:expr) => {
        for bytes in SIZES {
            let (batches, times) = times($place);
            let row = Of::new("message there and back", $who, $place).bytes(bytes);
            let (there, arriving) = $new;
            let (back, returning) = $new;
            let mut near = Ends {
                sender: there,
                receiver: returning,
            };
            let mut far = Ends {
                sender: back,
                receiver: arriving,
            };
            macro_rules! send {
                ($end:ident, $sent:expr) => {{
                    let ($to, $message) = (&mut $end.sender, $sent);
                    $send
                }};
            }
            macro_rules! receive {
                ($end:ident) => {
                    if $place.spins() {
                        loop {
                            let $look = &mut $end.receiver;
                            match $try {
                                Some(message) => break message,
                                None => std::hint::spin_loop(),
                            }
                        }
                    } else {
                        let $from = &mut $end.receiver;
                        $receive
                    }
                };
            }
            let mut traveller = Some(Message::of(bytes));
            if $place == Where::OneThread {
                measure(row, batches, times, |times| {
                    for _ in 0..times {
                        send!(near, traveller.take().expect("left"));
                        let message = receive!(far);
                        assert!(message.goes_on());
                        send!(far, message);
                        traveller = Some(receive!(near));
                    }
                });
                continue;
            }
            beside(
                $place,
                || {
                    measure(row, batches, times, |times| {
                        for _ in 0..times {
                            send!(near, traveller.take().expect("left"));
                            traveller = Some(receive!(near));
                        }
                    });
                    send!(near, Message::Stop);
                },
                move || loop {
                    let message = receive!(far);
                    if !message.goes_on() {
                        return;
                    }
                    send!(far, message);
                },
            );
        }
    };
}

pub(crate) fn messages(place: Where) {
    rows!(
        place,
        "crossbeam-channel",
        crossbeam_channel::bounded::<Message>(1),
        |to, message| to.send(message).ok().expect("alive"),
        |from| from.recv().expect("alive"),
        |from| from.try_recv().ok()
    );
    rows!(
        place,
        "kanal",
        kanal::bounded::<Message>(1),
        |to, message| to.send(message).ok().expect("alive"),
        |from| from.recv().expect("alive"),
        |from| from.try_recv().expect("alive")
    );
    rows!(
        place,
        "flume",
        flume::bounded::<Message>(1),
        |to, message| to.send(message).ok().expect("alive"),
        |from| from.recv().expect("alive"),
        |from| from.try_recv().ok()
    );
    if place == Where::OneThread || place.spins() {
        // A ring that nobody sleeps at.
        rows!(
            place,
            "rtrb",
            rtrb::RingBuffer::<Message>::new(1),
            |to, message| to.push(message).ok().expect("room"),
            |from| from.pop().expect("a message"),
            |from| from.pop().ok()
        );
    }
}
