//! The machine of the Mondrix paper, and nothing else: permission tables, lookaside buffers, gates, stack
//! registers, caches, and the supervisor's bottom half.
//!
//! Two things here are not the paper's, and each is in a file that says so. One is the run-length encoding of
//! table entries (`table/runs.rs`). The other is the second set of caches, which runs the same program without
//! protection. It stands for the paper's unmodified Linux (`machine/mod.rs`).

pub mod access;
pub mod bottom;
pub mod cache;
pub mod config;
pub mod gates;
pub mod machine;
pub mod measurement;
pub mod plb;
pub mod stack;
pub mod table;
