//! The run time of the word wall: loads modules of checked code (docs/word-form.md), and has their gates, stacks,
//! faults and limits. [`Host`] is where a host begins.
//!
//! ```text
//!   host ──call──► switch gate ──► enter ──► body ──ret──► return gate ──► host
//!                  (the module's)  gates.s   │
//!                                            ├─ slot of an import ──► leave ──► function of the host
//!                                            └─ another domain's switch gate ──► enter
//! ```
//!
//! A gate takes the short way through `gates.s` if there is nothing to decide. What has a policy goes through
//! `slow.rs`, which grants, checks and takes back by what the policy says (`policy.rs`).
#![cfg(all(
    target_arch = "x86_64",
    target_os = "linux",
    target_pointer_width = "64"
))]

mod biased;
mod blocks;
mod callback;
mod core;
mod demand;
mod domain;
mod fault;
mod fibre;
mod follow;
mod fork;
mod gates;
mod gone;
mod holder;
mod host;
mod instance;
mod keep;
mod learn;
mod lease;
mod lent;
mod load;
mod measure;
mod memory;
mod module;
mod note;
mod object;
mod operand;
mod piece;
mod policy;
mod reach;
mod refuse;
mod report;
mod rights;
mod room;
mod signals;
mod size;
mod slabs;
mod slow;
mod snapshot;
mod thread;
mod thunks;
mod tick;
mod unchecked;
mod verified;
mod wanted;
mod watchdog;
mod world;

pub use biased::{Biased, Guard};
pub use core::{Domain, EndError};
pub use fibre::Kept;
pub use follow::ModuleStep;
pub use host::{Granted, Host, PreparedGrant};
pub use instance::{Instance, InstanceError};
pub use lease::{Grantee, Lease, caller, calling};
pub use load::LoadError;
pub use module::{
    Access, Cold, Gate, Module, ModuleError, Parts, Relocation, Segment, Symbol, Tls, Value,
};
pub use mullion_plain::Plain;
pub use mullion_supervisor::{AuditLog, Snapshot};
pub use note::{Note, Want};
pub use object::{Block, Object, Owner};
pub use policy::{Effect, ErrorValue, FunctionPolicy, Limits, Policy};
pub use reach::{copy_at, text_at};
pub use refuse::refuse;
pub use report::{FaultKind, Reached, ReachedField, Report, StackWords};
pub use rights::GrantError;
pub use size::{Bits, Number, Size, Sum, Term};
pub use world::SetupError;
