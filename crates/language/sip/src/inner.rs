//! The crates below, as this crate's own code calls them.

use mullion_sip_core::Core;
use mullion_sip_exchange::Interior;

// SAFETY: this crate is the core's own: it keeps the value from processes, whose libraries see its public items alone,
// and calls each method as its text says.
pub(crate) const CORE: Core = unsafe { Core::new() };

// SAFETY: as for `CORE`; this crate is the heap's own, too.
pub(crate) const EXCHANGE: Interior = unsafe { Interior::new() };
