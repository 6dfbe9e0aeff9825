//! What only carries bytes and texts between clients and the loader.
//!
//! ```text
//!   frame      a message's bytes, with bounds      content    an operation's object, and an answer's
//!   reason     why something is not loaded         keynote    why an assertion does not count
//!   document   where a file of TOML is wrong       text       texts of strangers, shortened
//! ```
//!
//! This crate is not trusted. Its functions get bytes and give values, or get values and give bytes, and keep nothing.
//! The session in `crates/loading/decide` checks a signature over what was taken from a frame. It takes the owner's key
//! from there, and never from a request's content. So a fault in the reading of a request makes it ask for something else
//! that the same owner may ask for. Errors are made when it has been decided that something fails.
#![forbid(unsafe_code)]

pub mod content;
pub mod document;
pub mod frame;
pub mod keynote;
pub mod reason;
pub mod text;
