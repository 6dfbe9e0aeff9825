//! What an image file says of itself: its segments, its note, its records, its relocations.
//!
//! ```text
//! file -> outline.rs  segments, thread-local template   -+
//!         dynamic.rs  relocations                        +-> Outline, and a violation for each rule that is broken
//!         note.rs     note, imports, exports            -+
//! ```
//!
//! This crate is not trusted. [`Outline::read`] makes plain data of bytes. The verifier checks by itself
//! where the segments lie, in the window and in the file, and that there are no more imports than slots. It verifies
//! the code in them, for the number of imports and the protection that the outline names. All else leads only to
//! memory of the domain. The run time refuses an entry without a label in front of it, and a relocation that is not in
//! data. So a fault here starts a domain wrongly, behind its wall, or refuses it.
//!
//! Nothing here panics, whatever the input.
#![forbid(unsafe_code)]
#![deny(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]

mod dynamic;
mod file;
mod note;
mod outline;

pub use dynamic::Relocation;
pub use file::read_image;
pub use note::{Export, ImageKind};
pub use outline::{Outline, Permission, Segment, TlsTemplate};
