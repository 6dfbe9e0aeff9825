//! Processes: their table, their family tree, their limits and their ends.
//!
//! ```text
//!   spawn -> Tree: a place, a parent -> home worker: heap, main thread -> runs
//!   returned | exit | panic | kill | limit | fault -> the worker takes its threads -> bury:
//!       teardown hooks -> names -> heap -> number dies -> children are ended -> parent is told
//! ```

mod exit;
mod limits;
pub mod names;
mod numbered;
pub(crate) mod panic;
mod record;
mod records;
mod restart;
mod service;
pub(crate) mod spawn;
mod statistics;
pub(crate) mod survey;
mod tree;

pub use exit::{Cause, Exit, Message};
pub use limits::Limits;
pub use names::{BACKLOG, Rights};
pub(crate) use numbered::{Unfinished, kill_numbered, own_rights, wait_numbered};
pub(crate) use record::{PLACES, Process, place, reserve};
pub use records::{Books, Memory, Records};
pub use restart::{Policy, supervise};
pub(crate) use service::bind_service;
pub use service::{Service, open, serve};
pub use spawn::{Child, Home, Options, Program, SpawnError, exit, spawn};
pub(crate) use spawn::{begin, bury, end_as, end_asked};
pub use statistics::Statistics;
pub(crate) use statistics::statistics_of;
pub use survey::{End, Holding, Kind};
pub(crate) use tree::Tree;
