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

pub use paint::{Options, Theme, paint};
pub use records::Records;
pub use state::{
    Access, Address, Domain, Export, Grant, Group, Label, Region, Space, State, VERSION,
};
pub use validate::{StateError, Valid};
pub use view::View;

/// What a state looks like as JSON, for people.
pub const FORMAT: &str = include_str!("format.txt");
