//! What software isolated processes say to each other: blocks with one owner, and channels whose contract is a state
//! machine.
//!
//! ```text
//!   channel/    endpoints, contracts, messages; ends that the kernel holds for peers in other OS processes
//!   exchange/   the heap: blocks that move by pointer, their owners' ledgers, values as bytes
//!   ---------------------------------------------------------------------------- mullion-sip-core
//! ```
//! **What a process can name here** is what `mullion-sip` gives out, and is sound. Everything else is reached through an
//! [`Interior`], which only `unsafe` code makes: see `mullion_sip_core::Core`.

// A library's copy has all of the kernel, and calls a part of it.
#![cfg_attr(
    feature = "separate",
    allow(dead_code, unused_imports, unreachable_pub)
)]

extern crate self as mullion_sip;

pub mod channel;
pub mod exchange;
mod inner;
pub mod interior;
mod state;

#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;

pub use exchange::{ExBox, ExString, ExVec, Exchange};
pub use interior::Interior;
pub use mullion_sip_macros::{Exchange, contract};
