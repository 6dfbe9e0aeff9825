//! Processes: their table, their family tree, their limits and their ends.
//!
//! ```text
//!   spawn -> Tree: a place, a parent -> home worker: heap, main thread -> runs
//!   returned | exit | panic | kill | limit | fault -> the worker takes its threads -> bury:
//!       teardown functions -> hooks -> heap -> number dies -> children are ended -> parent is told
//! ```

mod child;
mod ending;
mod exit;
mod life;
mod limits;
mod numbered;
pub(crate) mod panic;
pub(crate) mod record;
mod rights;
pub(crate) mod spawn;
pub(crate) mod tree;

pub use child::Child;
pub(crate) use ending::{end_as, end_asked, end_now, exit};
pub use exit::{Cause, Exit, Message};
pub use life::Life;
pub(crate) use life::{life, lives, living};
pub use limits::Limits;
pub use numbered::Unfinished;
pub(crate) use numbered::{kill_numbered, own_rights, wait_numbered};
pub(crate) use record::{PLACES, Process, place, reserve};
pub use rights::Rights;
pub use spawn::{First, Home, Options, SpawnError};
pub(crate) use spawn::{begin, spawn};
pub(crate) use tree::{Tree, with_rights};
