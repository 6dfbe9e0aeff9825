//! What requests and answers hold, with limits understood.

use mullion_decide::{Limit, Limits};
pub use mullion_wire::content::*;

/// The limits of a request to load.
///
/// # Errors
/// A name that is no limit's.
pub(crate) fn limits(load: &Load) -> Result<Limits, WireError> {
    let mut limits = Limits::NONE;
    for (name, amount) in &load.limits {
        let limit = Limit::named(name).ok_or_else(|| WireError::Limit(name.clone()))?;
        limits.set(limit, Some(*amount));
    }
    Ok(limits)
}
