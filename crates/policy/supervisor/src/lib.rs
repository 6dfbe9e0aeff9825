//! Domains, ownership, permissions, exports and groups: who may touch which words of memory.
//!
//! Pure policy: no input or output, no machine, no `unsafe`, no dependency. What enforces the decisions
//! is a [`Mechanism`] behind a small trait.
//!
//! ```text
//!   a call  ->  Supervisor::call  ->  judged word by word  ->  State::change  ->  Mechanism::write, flush
//!               who calls?            TABLE_1, or Error         regions and       only where somebody's
//!               (CallStack)           and nothing changes       indexes           permission changes
//! ```
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod audit;
mod batch;
mod call;
mod domain;
mod error;
mod few;
mod group;
mod holdings;
mod living;
mod mechanism;
mod memory;
mod permission;
mod policy;
mod prepared;
mod range;
mod region;
mod set;
mod snapshot;
mod sorted;
mod state;
mod supervisor;
mod table;
mod thread;

pub use audit::{AuditLog, Decision};
pub use call::{Call, Change, Reply};
pub use domain::{CallStack, DomainId, GroupId, ThreadId};
pub use error::{BatchError, Error, Rule};
pub use holdings::HoldingNumber;
pub use mechanism::{Holders, Mechanism, Recorder, StackRegisters};
pub use permission::{Level, Order, Permission};
pub use policy::{Family, JoinPolicy, JoinRequest};
pub use prepared::PreparedGrant;
pub use range::{Range, RangeError, WORD_BYTES};
pub use region::{Grant, Holding, Subject};
pub use snapshot::{DomainState, GroupState, Snapshot};
pub use supervisor::Supervisor;
pub use table::{Row, TABLE_1};
pub use thread::{Frame, Thread, word_of};
