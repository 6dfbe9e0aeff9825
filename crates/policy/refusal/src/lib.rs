//! What the supervisor refuses with: rules, errors and ways out, and Table 1 as text.
//!
//! This is not trusted. The supervisor makes these values when it has refused already, and calls nothing of them. A fault
//! here tells a caller the wrong reason.
#![no_std]
#![forbid(unsafe_code)]

pub mod error;
pub mod table;
