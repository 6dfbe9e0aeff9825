//! The contracts that the examples speak.
#![forbid(unsafe_code)]

use mullion_sip::{ExVec, contract};

contract! {
    /// What is said comes back.
    pub mod echo {
        Idle: client { Say(ExVec<u8>) -> Busy, Close -> end }
        Busy: server { Said(ExVec<u8>) -> Idle }
    }
}
