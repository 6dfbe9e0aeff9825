//! `mullion get`: known C libraries, made ready behind a wall by recipes.
//!
//! ```text
//! recipes/NAME/recipe.toml    sources, steps of the library's own build, archives
//! recipes/NAME/walled_NAME.h  the interface that hosts get, with the marks of <mullion/bind.h>
//! recipes/NAME/glue.c         that interface over the library's own
//! recipes/NAME/host.c         an example
//!          |
//!   fetched by digest, built by `mullion cc`, linked with its glue, verified, bound
//!          |
//! DIRECTORY: NAME.mx, the header, stubs for hosts in C and Rust, the example, the licences
//! ```
//!
//! Nothing of this is trusted: a host verifies the image, as it does any other.
#![forbid(unsafe_code)]

mod build;
mod error;
mod recipe;

pub use build::{Kitchen, make};
pub use error::GetError;
pub use recipe::{NAMES, Recipe};
