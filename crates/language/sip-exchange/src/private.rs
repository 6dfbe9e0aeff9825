//! What the macros' code calls. Not for people.

pub use crate::channel::endpoint::{Arrived, Endpoint, channel};
pub use crate::channel::message::{Covered, End, Message, Receives, Sends, State};
pub use crate::exchange::walk::{Scan, Visitor};
pub use crate::exchange::wire::{DecodeError, EncodeError, Reader, Step, Writer};
