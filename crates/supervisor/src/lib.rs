//! Domains, ownership, permissions, exports and groups: who may touch which words of memory.
//!
//! Pure policy: no input or output, no machine, no `unsafe`, no dependency. What enforces the decisions
//! is a [`Mechanism`] behind a small trait.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod domain;
mod mechanism;
mod permission;
mod range;

pub use domain::{CallStack, DomainId, GroupId, ThreadId};
pub use mechanism::{Mechanism, Recorder, StackRegisters};
pub use permission::{Level, Order, Permission};
pub use range::{Range, RangeError, WORD_BYTES};
