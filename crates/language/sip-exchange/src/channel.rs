//! Channels: two endpoints, and a contract that says who may send what, when.
//!
//! ```
//! # extern crate mullion_sip_exchange as mullion_sip;
//! use mullion_sip::{ExVec, Exchange, contract};
//!
//! #[derive(Exchange)]
//! pub struct ReadRequest { offset: u64, length: u32 }
//!
//! contract! {
//!     /// Reading a file, piece by piece.
//!     pub mod file_read {
//!         Idle: client { Read(ReadRequest) -> Busy, Close -> end }
//!         Busy: server { Data(ExVec<u8>) -> Idle, Error(i32) -> Idle }
//!     }
//! }
//! use file_read::{BusyMessage, IdleMessage};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (client, server) = file_read::channel()?;
//! let client = client.read(ReadRequest { offset: 0, length: 5 })?;
//!
//! let IdleMessage::Read(request, server) = server.recv()? else { panic!("closed") };
//! let server = server.data(ExVec::copy_of(&b"hello, world"[..request.length as usize]))?;
//!
//! let BusyMessage::Data(data, client) = client.recv()? else { panic!("an error") };
//! assert_eq!(&*data, b"hello");
//! client.close()?;
//! assert!(matches!(server.recv()?, IdleMessage::Close));
//! # Ok(())
//! # }
//! ```
//!
//! **States.** In each state one side sends and the other receives. An endpoint's type names its state, and has
//! the operations of that state only; what is sent twice, or out of turn, does not compile:
//! ```compile_fail
//! # extern crate mullion_sip_exchange as mullion_sip;
//! # use mullion_sip::contract;
//! contract! {
//!     pub mod ask { Ask: client { Question(u32) -> Answer } Answer: server { Reply(u32) -> end } }
//! }
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (client, _server) = ask::channel()?;
//! let waiting = client.question(1)?;
//! waiting.question(2)?; // in state `Answer` the client receives
//! # Ok(())
//! # }
//! ```
//!
//! **Queues.** A side that sends in several states in a row fills its queue by as much. It can go on only when
//! its peer has received everything and answered. So a queue's bound is the longest such run, `contract!` knows
//! it, refuses runs without an end, and a send neither blocks nor allocates.
//!
//! **Endpoints in messages.** An endpoint may be sent in a state in which it is to send. Then nothing is on its way
//! to it: its peer waits. So no queue ever holds the receiver of a queue that holds something. That keeps channels
//! from forming rings that nobody can reach and nobody can free.
//!
//! **Ends.** An endpoint that is dropped, or whose process ends, is [`ChannelClosed`] at its peer, after
//! everything that was sent before. A message that nobody will receive is freed, and the endpoints in it are
//! closed.

use std::time::Duration;

pub use any::{AnyEndpoint, Mismatch};
pub use contract::{Contract, Info, Side};
pub use select::{Incoming, Port, select, select_for};

pub(crate) mod admit;
pub(crate) mod any;
pub(crate) mod bytes;
pub(crate) mod contract;
pub(crate) mod endpoint;
pub(crate) mod foreign;
pub(crate) mod line;
pub(crate) mod message;
pub(crate) mod place;
mod select;
mod visit;

/// The peer has gone: its endpoint was dropped, or its process has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the channel's other end is closed")]
pub struct ChannelClosed;

/// Why no message was received, by an operation that does not wait for ever.
#[derive(PartialEq, Eq, Debug, thiserror::Error)]
pub enum TryRecvError<E> {
    /// There is none yet; here is the endpoint again.
    #[error("no message yet")]
    Empty(E),
    /// The peer has gone, and so has the endpoint.
    #[error(transparent)]
    Closed(#[from] ChannelClosed),
}

/// The time at which a wait that begins now ends; `None` if that is beyond what the clock can count.
fn deadline(timeout: Duration) -> Option<std::time::Instant> {
    std::time::Instant::now().checked_add(timeout)
}

#[cfg(test)]
mod tests;
