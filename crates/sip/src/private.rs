//! What the macros' code calls. Not for people.

pub use crate::channel::contract::{Ring, Slot, Visit, info, slot};
pub use crate::channel::endpoint::{Endpoint, channel};
pub use crate::exchange::sendable::{must_be_exchange, visit_at};
pub use crate::exchange::walk::{Scan, Visitor};
pub use crate::exchange::wire::{
    DecodeError, EncodeError, Reader, Step, Wire, Writer, decode_at, encode_at,
};
