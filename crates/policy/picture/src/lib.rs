//! A supervisor's state as JSON, and as a picture.
//!
//! ```text
//!   Supervisor::snapshot -> State (JSON) -> State::validate -> Chart (rows, columns, cells) -> SVG
//! ```
//!
//! Domains are columns, addresses are rows, permissions are colours, a thick edge is ownership, and groups
//! are lines (figures 1, 4 and 5 of the Mondrix paper). Nothing here is trusted: a picture that is wrong
//! gives nobody access to anything.
#![forbid(unsafe_code)]

mod chart;
mod fold;
mod layout;
mod paint;
mod records;
mod state;
mod text;
mod validate;
mod view;

pub use paint::{PaintOptions, Theme, paint};
pub use records::Records;
pub use state::{
    AccessKind, ByteAddress, DrawnDomain, DrawnGrant, DrawnGroup, ExportLevel, Label, Region,
    Space, SupervisorState, VERSION,
};
pub use validate::{StateError, Valid};
pub use view::Excerpt;

/// What a state looks like as JSON, for people.
pub const FORMAT: &str = include_str!("format.txt");
