//! Evidence that machine code may be loaded behind the language alone.

use mullion_decide::Decision;
use std::sync::Arc;

/// Machine code that nothing confines and nobody has verified, and leave to run it in the host itself. Nothing but
/// [`Authoriser::admit_native`](crate::Authoriser::admit_native) makes one. It owns the bytes whose digest was decided
/// about, and [`Loaded`](crate::Loaded) takes none: no domain can be made of it.
#[derive(Clone, Debug)]
pub struct Native {
    bytes: Arc<[u8]>,
    decision: Arc<Decision>,
}

impl Native {
    pub(crate) fn decided(bytes: Arc<[u8]>, decision: Decision) -> Self {
        Native {
            bytes,
            decision: Arc::new(decision),
        }
    }

    /// The file that was decided about.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What was decided.
    #[must_use]
    pub fn decision(&self) -> &Decision {
        &self.decision
    }
}
