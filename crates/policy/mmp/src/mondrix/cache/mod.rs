//! The processor's caches, as the paper has them (Mondrix, section 5.2): instructions and data at level one, a
//! unified level two.

mod hierarchy;
mod one;

pub use hierarchy::Hierarchy;
pub use one::{Cache, GATES_UNKNOWN};

#[cfg(test)]
mod tests;
