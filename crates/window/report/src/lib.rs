//! What the run time reports: faults, limits and errors as data, with their names and texts, and what is counted of a domain.
//!
//! This is not trusted. The run time makes these values when it has decided already. It calls functions of them to
//! count, in a [`meter::Meter`], which hosts read and the run time never asks. When a call has ended by a fault, it asks
//! what the fault means ([`meaning`]), and hands the answer to its host. So a fault here tells a host the wrong reason or
//! the wrong figure.
#![forbid(unsafe_code)]

pub mod error;
pub mod fault;
pub mod kinds;
pub mod meaning;
pub mod meter;
pub mod refused;
