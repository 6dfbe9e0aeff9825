//! Policies of the word wall as text (docs/word-policy.md).
//!
//! ```text
//!   rot13.toml ──► text.rs ──► File ──┐
//!                  effect.rs          ├─► lower.rs ──► the run time's Policy
//!   sqlite3.toml ► text.rs ──► File ──┘
//!                  write.rs ◄── File
//!                  learn.rs: what a module did without leave ──► File
//! ```
//!
//! A file is a module's policy, or describes the interface of a host, which policies of modules refer to by
//! names. Who reads a policy relies on this crate: if it read a file as something else, it would grant what nobody
//! wrote. So it takes nothing that it does not know.
#![forbid(unsafe_code)]

mod effect;
mod file;
mod learn;
mod lower;
mod text;
mod write;

pub use effect::EffectError;
pub use file::{Call, Export, File, HostVariable, Limits};
pub use learn::Learned;
pub use lower::{Interface, LowerError, allocator};
pub use text::TextError;

/// What modules may call of the C library: allocators, numbers and the like.
pub const C_LIBRARY: &str = include_str!("c.toml");
