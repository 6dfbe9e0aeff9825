//! Holds what the documents say of the tree against the tree.
//!
//! The tests do the holding. `cargo run -p mullion-checks --bin trusted` makes the page of trusted lines.
#![forbid(unsafe_code)]

pub mod imports;
pub mod lines;
pub mod names;
pub mod prose;
pub mod rust_text;
pub mod safety;
pub mod tree;
pub mod trusted;
