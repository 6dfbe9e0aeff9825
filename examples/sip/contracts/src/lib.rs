//! The contracts that the examples speak. Both sides of a channel are built with this crate, and compare the digests
//! of what they were built with when they meet.
#![forbid(unsafe_code)]

use mullion_sip::{ExString, ExVec, Exchange, contract};

contract! {
    /// What is said comes back.
    pub mod echo {
        Idle: client { Say(ExVec<u8>) -> Busy, Close -> end }
        Busy: server { Said(ExVec<u8>) -> Idle }
    }
}

contract! {
    /// Ends of `echo`, for somebody else, or from somebody else.
    pub mod meet {
        Idle: client { Offer(super::echo::Client<super::echo::Idle>) -> Offered, Want -> Wanted }
        Offered: server { Thanks -> end }
        Wanted: server { Here(super::echo::Client<super::echo::Idle>) -> end }
    }
}

contract! {
    /// Numbers, as many at a time as who sends them likes, when they are asked for.
    pub mod numbers {
        Idle: client { Next -> Busy, Stop -> end }
        Busy: server { Batch(ExVec<u64>) -> Idle, Last -> end }
    }
}

contract! {
    /// Work for whoever asks: one piece at a time.
    pub mod jobs {
        Idle: client { Fetch -> Waiting }
        Waiting: server { Job(u32) -> Working, NoMore -> end }
        Working: client { Done(u64) -> Idle }
    }
}

/// A key with its value.
#[derive(Exchange, Debug)]
pub struct Pair {
    /// The key.
    pub key: ExString,
    /// The value.
    pub value: ExVec<u8>,
}

contract! {
    /// A store of values by key.
    pub mod store {
        Idle: client { Put(super::Pair) -> Busy, Get(ExString) -> Busy, Remove(ExString) -> Busy, Close -> end }
        // `Nothing`: there was none. `Full`: it was not put.
        Busy: server { Value(ExVec<u8>) -> Idle, Nothing -> Idle, Full -> Idle }
    }
}

contract! {
    /// One thread wakes another of its process, which waits for many things at once.
    #[endless]
    pub mod bell {
        Ring: client { Knock -> Heard }
        Heard: server { Come -> Ring }
    }
}

/// What a client of the network asks for.
#[derive(Exchange, Debug)]
pub struct Request {
    /// Whether it wants the head of the answer only.
    pub head_only: bool,
    /// Whether the connection may be used again.
    pub keep: bool,
    /// The file, as `part/part`.
    pub path: ExString,
    /// Bytes that the request takes of those that were given.
    pub used: u32,
}

contract! {
    /// From a client's bytes to its request.
    pub mod parse {
        Idle: client { Bytes(ExVec<u8>) -> Busy, Done -> end }
        // `Bad`: the status to answer, before the connection is closed.
        Busy: server { More -> Idle, Request(super::Request) -> Idle, Bad(u16) -> Idle }
    }
}
