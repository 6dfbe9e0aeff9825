//! Functions of the host that refuse what a module asks for.

use crate::gates::here;
use crate::thread;
use std::sync::atomic::Ordering;

/// Why a module's call ends.
#[derive(Clone, Debug, Default)]
pub(crate) struct Refusal {
    pub(crate) what: String,
    /// The line of policy that would have allowed it.
    pub(crate) allow: Option<String>,
}

impl From<String> for Refusal {
    fn from(what: String) -> Refusal {
        Refusal { what, allow: None }
    }
}

/// For a function of the host that a module has called, on the same thread. The module's call ends as soon as the
/// function returns, as if a policy had refused it. The report says `what`. The function's result is seen by nobody.
///
/// Modules that the function calls meanwhile are not concerned. Outside of such a function it has no effect.
pub fn refuse(what: impl Into<String>) {
    refuse_by(what.into().into());
}

/// As [`refuse`].
pub(crate) fn refuse_by(refusal: Refusal) {
    // SAFETY: it is the thread's own.
    let is_called = unsafe { !(*here()).frame.is_null() };
    let Some(thread) = thread::this().ok().filter(|_| is_called) else {
        return;
    };
    // SAFETY: it is the thread's own.
    unsafe {
        let here = here();
        thread.refusals.push(((*here).frame, refusal));
        (*here).pending.store(1, Ordering::Relaxed);
    }
}
