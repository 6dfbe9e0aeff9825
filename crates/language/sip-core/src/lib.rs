//! The core of software isolated processes: everything that runs them, and nothing of what they say to each other.
//!
//! ```text
//!   crates above: exchange heap, channels, names, the kernel's table ...     use Core, and register hooks
//!   ------------------------------------------------------------- interface.rs, hooks.rs
//!   process/   table, family tree, limits, every way to end       thread/   coroutines, scheduler, stacks, watch
//!   heap/      a heap and pages for each process                  wait      park and unpark
//!   critical   pieces of code that an end waits for               decide    who is asked before memory changes hands
//!   owner      who owns something                                 system    what Linux is asked for
//!   order      a store before a later load
//! ```
//! A process and all its threads live on one worker (an OS thread pinned to one core) and never leave it. So its heap
//! and its threads need no atomic operation.
//!
//! **What a process can name here** is what `mullion-sip` gives out, and is sound. Everything else is reached through a
//! [`Core`], which only `unsafe` code makes. A library of a process is safe code, and has none, even if it depends on
//! this crate directly.

// A library's copy has all of the kernel, and calls a part of it.
#![cfg_attr(
    feature = "separate",
    allow(dead_code, unused_imports, unreachable_pub)
)]

#[macro_use]
mod program;

mod critical;
mod current;
mod decide;
pub mod heap;
mod hooks;
mod interface;
pub mod locals;
pub mod order;
mod owners;
pub mod process;
mod refused;
mod start;
mod state;
mod system;
mod table;
pub mod thread;
pub mod wait;
mod waiter;

/// Who owns something: a process by its number and generation, or the host.
pub mod owner {
    pub use crate::current::current;
    pub use crate::owners::{Owner, Teardown};
}

pub use critical::{AsHost, Critical};
pub use decide::{ChannelEnd, DecideError, Decider, Span};
pub use hooks::Hooks;
pub use interface::{Core, Running};
pub use refused::Refused;
pub use start::StartError;
pub use state::CoreState;
pub use system::FutexWait;
pub use table::{Table, Zeroed};
pub use thread::inbox::Bed;
pub use thread::worker::{Events, SharedWorker, Worker};
pub use thread::workers::Workers;
