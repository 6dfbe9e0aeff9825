//! The permission table of the word wall: who may do what with each word of four bytes (docs/word.md).
//!
//! The supervisor decides. [`Table`] is its mechanism, which writes what was decided. Checked code reads it
//! inline, without a lock and without a call.
//!
//! ```text
//!   address --(/ 4)--> shadow: two bytes for each word: the number of who may do what here
//!                        |
//!                        +-- equal to the domain's own number (in a register): read and write. The common case.
//!                        |
//!                        +-- otherwise: the domain's map, one byte for each number: its bits decide
//! ```
//!
//! Where both are is a contract with checked code: `docs/word-form.md`.
//!
//! A right that is given or taken on words changes the shadow of these words. A domain that joins or leaves a
//! group, or ends, changes maps only.
//!
//! Code checks first and accesses later. So taking a right away also waits until no thread is between the two
//! with an answer from before: [`Inside`].
#![cfg(all(
    target_arch = "x86_64",
    target_os = "linux",
    target_pointer_width = "64"
))]

mod access;
mod barrier;
mod check;
mod code;
mod counted;
mod inside;
mod numbers;
mod shifted;
mod space;
mod table;

pub use access::Access;
pub use barrier::barrier;
pub use check::{checked_code, load4, store4};
pub use code::{Code, CodeError, Loaded, is_code};
pub use inside::{Held, Inside, SetupError, Visit, asks, has_lost, is_stepping};
pub use mullion_word_abi::ADDRESS_BITS;
pub use space::SpaceError;
pub use table::{Limits, Settling, Table, Usage, View};
