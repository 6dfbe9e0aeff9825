//! The contracts that the examples speak.
#![forbid(unsafe_code)]

use mullion_sip::{ExVec, contract};

#[cfg(not(feature = "other-echo"))]
contract! {
    /// What is said comes back.
    pub mod echo {
        Idle: client { Say(ExVec<u8>) -> Busy, Close -> end }
        Busy: server { Said(ExVec<u8>) -> Idle }
    }
}

#[cfg(feature = "other-echo")]
contract! {
    /// What is said comes back, with a number.
    pub mod echo {
        Idle: client { Say(ExVec<u8>) -> Busy, Close -> end }
        Busy: server { Said((ExVec<u8>, u32)) -> Idle }
    }
}
