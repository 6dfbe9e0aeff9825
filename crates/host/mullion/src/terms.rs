//! What ends a function's calls, beside the limits of its domain.

use mullion_runtime::{CallArguments, CallError, CallLimits, Canceller, Entry, Returned};

/// What ends a function's calls, beside the limits of its domain.
#[derive(Clone, Default)]
pub(crate) struct Terms {
    pub(crate) limits: Option<CallLimits>,
    /// Each of them.
    pub(crate) cancellers: Vec<Canceller>,
}

impl Terms {
    /// The cancellers, if there are terms.
    pub(crate) fn cancellers_of(terms: Option<&Self>) -> &[Canceller] {
        terms.map_or(&[], |terms| &terms.cancellers)
    }

    pub(crate) fn limited(limits: Option<&CallLimits>) -> Self {
        Self {
            limits: limits.copied(),
            cancellers: Vec::new(),
        }
    }
}

impl Terms {
    #[inline(never)]
    pub(crate) fn call(
        &self,
        domain: &mullion_runtime::WindowDomain,
        entry: Entry,
        arguments: &CallArguments,
    ) -> Result<Returned, Box<CallError>> {
        match (&self.limits, &*self.cancellers) {
            (None, []) => domain.call(entry, arguments),
            (Some(limits), []) => domain.call_limited(entry, arguments, limits),
            (limits, some) => domain.call_cancellable(entry, arguments, limits.as_ref(), some),
        }
    }
}
