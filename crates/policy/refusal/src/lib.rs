//! What is said between the supervisor and its callers. Calls and replies are data; errors have rules and ways out. Table 1
//! is here as text, and so is the log.
//!
//! This is not trusted. A call is data, which the supervisor takes apart by itself. It makes errors when it has refused
//! already. It writes to the log when it has decided, and never reads it. A fault here tells somebody the wrong reason.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod audit;
pub mod call;
pub mod error;
pub mod table;
