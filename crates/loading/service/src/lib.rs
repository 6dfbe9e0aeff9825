//! The code loader as a service (`docs/loader-protocol.md`).
//!
//! ```text
//!   clients --- poll ------- one thread: sockets, frames, deadlines, bounds
//!                 |  a whole frame, with its connection's session
//!                 v
//!               workers ---- a few threads: signatures, Authoriser::admit;
//!                 |          those with credentials first, strangers in turn
//!                 |
//!               Modules ---- domains by number, each with an owner and a thread (mullion-modules)
//! ```
//!
//! One thread waits for all connections; none of them can make it wait. What
//! takes time is done by a fixed number of workers, one request of a connection
//! at a time. So the queue is no longer than there are connections. Code
//! that was loaded runs on a thread of its own, of which there are no more than
//! there may be modules. A host's own `Authoriser` and `Imports` go in, so any process can be a loader.
//!
//! None of this is trusted. Requests and answers are values of [`mullion_modules`]: a request is good for the exchange
//! that it was signed for. An answer can be sent to its own client alone. So a fault here can serve late, unfairly
//! or not at all; it can load nothing, call nothing, and show nobody what is another's.
#![forbid(unsafe_code)]

mod address;
mod client;
mod connection;
mod server;
mod settings;
mod workers;

pub use address::{Address, ListenError, ServiceListener};
pub use client::{Client, ClientError, Progress};
pub use mullion_modules::{Figures, Gauge, ImportsFor, Observer, Rules, wire};
pub use server::{Server, Stopper};
pub use settings::Settings;
