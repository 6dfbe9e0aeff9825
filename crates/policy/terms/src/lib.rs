//! What the supervisor speaks of: ranges of words, domains, groups, threads, permissions and their order.
#![no_std]
#![forbid(unsafe_code)]

pub mod domain;
pub mod permission;
pub mod range;
pub mod subject;
