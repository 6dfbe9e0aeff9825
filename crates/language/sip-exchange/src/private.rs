//! What the macros' code calls. Not for people.

pub use crate::channel::endpoint::{Arrived, Endpoint, channel};
pub use crate::channel::message::{Covered, End, Message, Receives, Sends, State};
pub use crate::exchange::coding::{DecodeError, EncodeError, Reader, Step, Writer};
pub use crate::exchange::visitor::{Scan, Visitor};
