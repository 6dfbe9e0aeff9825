//! Modules with owners: the part of the loader's service that is trusted (`docs/loader-protocol.md`).
//!
//! ```text
//!   client -- bytes --> service: sockets, frames, queues, bounds -- bytes --> ClientExchange::receive
//!                                                                                  | a signature over
//!                                                                                  v this client's challenge
//!   client <-- Line <-------------------- Sealed <---- Reply <---- Modules <---- Asked
//!              takes what is sealed for its own exchange           by the owner's key alone
//! ```
//!
//! `crates/loading/service` moves bytes and decides who waits. It is not trusted, and the types keep it so:
//!
//! - An [`Asked`] comes of a frame only, whose signature is over the challenge of its own [`ClientExchange`].
//!   A frame that is brought to another client's exchange is an error.
//! - [`Modules`] takes an `Asked` whole. Whom a module belongs to is the key in it.
//! - An answer is [`Sealed`]: nobody can look into it, and only the [`Line`] of its exchange takes it.
//!
//! What a fault of the service can do is to serve late, unfairly or not at all.
#![forbid(unsafe_code)]

mod exchange;
mod modules;
mod rules;
pub mod wire;

pub use exchange::{Answered, Asked, ClientExchange, Heard, Line, Misdelivered, Sealed};
pub use modules::{Figures, Gauge, Heavy, ImportsFor, Modules, Observer, Room};
pub use mullion_loader::Authoriser;
pub use mullion_runtime::Limits;
pub use rules::Rules;
