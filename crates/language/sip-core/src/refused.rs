//! The answer of who decides that changes nothing.

use thiserror::Error;

/// The decider says no. Nothing has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("the decider of this host's processes refuses")]
pub struct Refused;
