//! A model of Mondriaan memory protection hardware: permission tables, lookaside buffers, caches, cycles.
//!
//! The hardware of *Mondrix: Memory Isolation for Linux using Mondriaan Memory Protection* (SOSP 2005), sections 2
//! and 5. It is driven by a [trace] of what a program did, and by the real [supervisor](mullion_supervisor). The
//! decisions are written into permission tables word by word. `docs/model.md` says what is modelled and what is not.
//!
//! Each room is a folder. A room uses the rooms named with it, and no others; `tests/rooms.rs` holds the
//! folders to this table.
//!
//! | room | what it is | uses |
//! | --- | --- | --- |
//! | [`trace`] | what a program did: [`event`]s in memory, and the file that they are read from and written to | nothing |
//! | [`mondrix`] | the paper's machine, and what it measures | trace |
//! | [`report`] | a measurement as text, laid out as the paper's tables, with the paper's own rows | mondrix |
//! | [`synth`] | traces of programs that do not exist, by their parameters | trace |
//! | [`convert`] | traces that other programs wrote | trace |
//! | [`recorder`] | what a real supervisor decided, as a trace | trace |
//! | [`log`] | a whole log of a supervisor, as a trace's file | recorder, trace |
//!
//! The parts of the machine are named at the root too:
//!
//! | module | what it is |
//! | --- | --- |
//! | [`table`] | permission tables in three formats, and the memory they are in |
//! | [`bottom`] | the supervisor's bottom half: decisions become words in tables |
//! | [`plb`], [`gates`], [`stack`], [`cache`] | the hardware's caches of permissions, gates, stacks and lines |
//! | [`machine`] | all of it together; checks every access and counts every cycle |
//! | [`measurement`] | what a run measured |
//! | [`config`] | every number, with its source |
#![forbid(unsafe_code)]

pub mod convert;
pub mod log;
pub mod mondrix;
pub mod recorder;
pub mod report;
pub mod synth;
pub mod trace;

pub use mondrix::{access, bottom, cache, config, gates, machine, measurement, plb, stack, table};
pub use trace::event;
