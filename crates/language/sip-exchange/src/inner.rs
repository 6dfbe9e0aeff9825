//! The core, as this crate's own code calls it.

use mullion_sip_core::Core;

// SAFETY: this crate is the core's own: it keeps the value from processes, whose libraries see its public items alone,
// and calls each method as its text says.
pub(crate) const CORE: Core = unsafe { Core::new() };
