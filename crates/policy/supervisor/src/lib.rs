//! Domains, ownership, permissions, exports and groups: who may touch which words of memory.
//!
//! Pure policy: no input or output, no machine, no `unsafe`, no dependency but the names of things
//! (`mullion-terms`) and the texts of refusals (`mullion-refusal`). What enforces the decisions
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

mod batch;
mod call;
mod few;
mod group;
mod holdings;
mod living;
mod mechanism;
mod memory;
mod policy;
mod prepared;
mod region;
mod set;
mod sheet;
mod snapshot;
mod sorted;
mod state;
mod supervisor;
mod thread;

pub use call::{Call, Change, Reply};
pub use holdings::HoldingNumber;
pub use mechanism::{Holders, Mechanism, StackRegisters};
pub use mullion_refusal::audit::{AuditLog, Decision};
pub use mullion_refusal::error::{BatchError, Error, Rule};
pub use mullion_refusal::table::{Row, TABLE_1};
pub use mullion_terms::domain::{CallStack, DomainId, GroupId, ThreadId};
pub use mullion_terms::permission::{Level, Order, Permission};
pub use mullion_terms::range::{Range, RangeError, WORD_BYTES};
pub use mullion_terms::subject::Subject;
pub use policy::{Family, JoinPolicy, JoinRequest};
pub use prepared::PreparedGrant;
pub use region::{Grant, Holding};
pub use snapshot::{DomainState, GroupState, Snapshot};
pub use supervisor::Supervisor;
pub use thread::{Frame, Thread, word_of};
