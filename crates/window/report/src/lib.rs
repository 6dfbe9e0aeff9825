//! What the run time reports: faults, limits and errors as data, with their names and texts.
//!
//! This is not trusted. The run time makes these values when it has decided already. Two functions of them it calls,
//! [`fault::Cause::kind`] and [`error::Error::limit`], and only to count. So a fault here tells a host the wrong reason,
//! or counts it as another.
#![forbid(unsafe_code)]

pub mod error;
pub mod fault;
pub mod kinds;
