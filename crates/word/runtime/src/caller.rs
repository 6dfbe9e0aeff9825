//! Which domain has called a function of the host.

use crate::core::Domain;
use crate::gates::here;

/// For a function of the host that a module has called, on the same thread: the domain of that module. Outside of such a
/// function it is the one that the thread's latest call is in, if there is one.
#[must_use]
pub fn caller() -> Option<Domain> {
    // SAFETY: they are the thread's own; a frame on its control stack has a seat, which has a domain, as long as the entry
    // has not returned.
    unsafe {
        let frame = (*here()).frame.as_ref()?;
        let seat = frame.seat.as_ref()?;
        Some(Domain {
            core: (*seat.inner).core(),
        })
    }
}
