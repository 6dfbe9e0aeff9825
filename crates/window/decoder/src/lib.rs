//! What the verifiers of the walls share: one instruction from its bytes, and marks on the bytes of code.
//!
//! [`table`] is the list of instructions that code behind a wall may have, as text. [`row`] makes tables for
//! [`decode`] of it, when this crate is compiled. [`size`] says how many bytes an operand in memory has.
//! [`marks`] remembers where instructions start, where branches go and where none may go.
//!
//! No input makes anything here panic.
#![forbid(unsafe_code)]
#![deny(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]

pub mod decode;
#[cfg(test)]
#[allow(clippy::indexing_slicing, clippy::expect_used, reason = "a test")]
mod iced_tests;
pub mod label;
pub mod marks;
pub mod refusal;
pub mod report;
#[allow(
    clippy::indexing_slicing,
    clippy::panic,
    reason = "runs at compile time only"
)]
pub mod row;
#[allow(
    clippy::indexing_slicing,
    clippy::panic,
    reason = "runs at compile time only"
)]
pub mod size;
pub mod table;

pub use decode::Instruction;
pub use marks::Marks;
pub use refusal::Refusal;
pub use report::Report;
