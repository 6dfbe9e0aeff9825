//! A program that gives the name `mullion_sip` to a crate of its own, which is ours but for some names. What `contract!`
//! makes there is as sound as elsewhere: room, visits and shapes follow from the messages' types and from no name.

extern crate mullion_sip as real;
extern crate self as mullion_sip;

pub use real::{ExBox, Exchange};

/// Ours.
pub mod channel {
    pub use real::channel::*;
}

/// Ours.
pub mod exchange {
    pub use real::exchange::*;
}

/// What the macro's code calls, and in front of it what the program would have it call.
pub mod __private {
    pub use real::__private::*;

    /// Says that no message needs room.
    pub const fn slot<T>() -> (usize, usize) {
        (0, 1)
    }

    /// Shows nobody the handles of a message.
    pub fn visit_at<T>(_: *const u8, _: &mut dyn Visitor) {}
}

real::contract! {
    /// Two large messages and a block, one after the other.
    pub mod talk {
        First: client { One([u64; 8]) -> Second }
        Second: client { Two([u64; 8]) -> Third }
        Third: client { Block(ExBox<u64>) -> end }
    }
}

#[test]
fn each_message_has_its_room_and_its_handles() {
    use talk::{FirstMessage, SecondMessage, ThirdMessage};
    let before = real::exchange::census().in_use;
    let (client, server) = talk::channel().expect("memory");
    let client = client.one([1; 8]).expect("open");
    let client = client.two([2; 8]).expect("open");
    client.block(ExBox::new(3)).expect("open");
    let Ok(FirstMessage::One(one, server)) = server.recv() else {
        panic!("another message")
    };
    let Ok(SecondMessage::Two(two, server)) = server.recv() else {
        panic!("another message")
    };
    assert_eq!((one, two), ([1; 8], [2; 8]));
    let Ok(ThirdMessage::Block(block)) = server.recv() else {
        panic!("another message")
    };
    assert_eq!(*block, 3);
    drop(block);
    // What is sent and never received is found in the queue.
    let (client, server) = talk::channel().expect("memory");
    let client = client.one([1; 8]).and_then(|client| client.two([2; 8]));
    client
        .and_then(|client| client.block(ExBox::new(4)))
        .expect("open");
    drop(server);
    assert_eq!(real::exchange::census().in_use, before);
}
