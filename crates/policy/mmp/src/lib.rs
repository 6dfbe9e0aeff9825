//! A model of Mondriaan memory protection hardware: permission tables, lookaside buffers, caches, cycles.
//!
//! The hardware of *Mondrix: Memory Isolation for Linux using Mondriaan Memory Protection* (SOSP 2005),
//! sections 2 and 5, driven by a [trace] of what a program did and by the real
//! [supervisor](mullion_supervisor), whose decisions are written into permission tables word by word.
//! `docs/model.md` says what is modelled and what is not.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`event`], [`trace`] | what a program did, in memory and as a file |
//! | [`table`] | permission tables in three formats, and the memory they are in |
//! | [`bottom`] | the supervisor's bottom half: decisions become words in tables |
//! | [`plb`], [`gates`], [`stack`], [`cache`] | the hardware's caches of permissions, gates, stacks and lines |
//! | [`machine`] | all of it together; checks every access and counts every cycle |
//! | [`report`] | what was measured, laid out as the paper's tables |
//! | [`synth`] | traces of programs that do not exist, by their parameters |
//! | [`config`] | every number, with its source |
#![forbid(unsafe_code)]

pub mod access;
pub mod bottom;
pub mod cache;
pub mod config;
pub mod event;
pub mod gates;
pub mod machine;
pub mod plb;
pub mod report;
pub mod stack;
pub mod synth;
pub mod table;
pub mod trace;
