//! `mullion bind` makes an interface that is declared once, as a plain C header, into typed stubs for both sides. They
//! copy in and out what must be copied (MiSFIT, section 7).
//!
//! ```text
//!   header.h -- gcc -E --> parse.rs -- Interface --> rust.rs       a module for a host in Rust
//!   (mullion/bind.h)       (lang-c)                  c.rs          a header for a host in C
//!                                                    extension.rs  the records of the extension
//!
//!   header.h, annotations.toml --> word.rs           an interface for policies of the word wall
//! ```
#![forbid(unsafe_code)]

mod c;
mod error;
mod extension;
mod model;
mod parse;
mod rust;
mod word;

pub use c::c;
pub use error::BindError;
pub use extension::extension;
pub use model::{
    BoundFunction, Count, Direction, Field, HeaderInterface, HeaderType, Parameter, Struct,
};
pub use parse::read;
pub use rust::rust;
pub use word::{Described, describe};
