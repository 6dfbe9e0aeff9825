//! Processes: what a process is made from, what it is called by, and what is known of it.
//!
//! ```text
//!   program   from a main function to a process            names, service   channels by path
//!   restart   children that are started again              statistics, survey, records   for people who look
//! ```
//! Their table, their family tree and their ends are in `mullion-sip-core`.

mod name;
pub mod names;
pub(crate) mod program;
mod records;
mod restart;
mod service;
mod statistics;
pub(crate) mod survey;
pub(crate) mod upstream;

pub use mullion_sip_core::process::{
    Cause, Child, Exit, Home, Limits, Message, Options, Rights, SpawnError,
};
pub use names::BACKLOG;
pub(crate) use program::end_as;
pub use program::{Program, exit, spawn};
pub use records::{Memory, Records, RecordsWriter};
pub use restart::{Policy, supervise};
pub(crate) use service::bind_service;
pub use service::{Service, open, serve};
pub use statistics::Statistics;
pub(crate) use statistics::statistics_of;
pub use survey::{End, Holding, Kind};
