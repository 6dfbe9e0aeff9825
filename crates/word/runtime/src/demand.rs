//! Rights on demand: what a policy gives in many places, and a module uses in few of them, is granted when a check refuses it.
//!
//! ```text
//!   check ──► cold ──► trap ──► handler: the hook grants ──► cold, from its beginning: looks at the table again
//! ```
//!
//! The hook decides. What is believed of the module's code is the verifier's: where the `cold` of a trap begins. Nothing but
//! this one check leads there, and it changes only scratch registers, so it can be run again.
//!
//! Other checks may stand in front of this one in its straight line, and their accesses behind it. Their answers are from before
//! the hook. While it runs, a right may be taken from the domain, and nobody waits for the thread. So the call ends if
//! the domain has lost something meanwhile, unless this check stands alone.

use crate::core::Domain;
use crate::follow;
use crate::gates::Here;
use crate::instance;
use crate::learn::as_host;
use crate::operand;
use crate::report::FaultKind;
use mullion_word_table::{Access, asks, has_lost};

impl Domain {
    /// Asks `hook` when an access of the module is refused. The hook gets the first address without the right, and
    /// how many bytes the check covers from there. It also gets whether the access is to write. If it grants and says
    /// so, the access is looked at again. Otherwise it is refused. Only the first hook counts.
    ///
    /// It runs in the handler of a signal, on a stack of 256 KiB, and holds up the module's call alone. It may take locks that are
    /// not held while the module is called. It must not call into a domain; such a call is refused.
    pub fn on_demand(&self, hook: impl Fn(u64, u64, bool) -> bool + Send + Sync + 'static) {
        let _first = self.core.demand.set(Box::new(hook));
    }
}

/// What a hook has brought about.
pub(crate) enum Answered {
    /// The right was granted, and the thread looks again.
    Granted,
    /// It was not, or nobody was asked.
    Refused,
    /// It was granted, and another one was taken away, which the thread may have looked at before.
    Lost,
}

/// Asks the domain's hook, if it has one and an access was refused.
///
/// # Safety
/// In the handler of a fault of the running domain.
pub(crate) unsafe fn answered(
    here: &mut Here,
    kind: Option<FaultKind>,
    registers: &[u64; 16],
    context: &mut libc::ucontext_t,
) -> Answered {
    // SAFETY: a domain runs.
    let core = unsafe { (*here.domain).core() };
    let Some(hook) = core
        .demand
        .get()
        .filter(|_| kind == Some(FaultKind::Access))
    else {
        return Answered::Refused;
    };
    let went = &mut context.uc_mcontext.gregs[libc::REG_RIP as usize];
    let colds = &core.module.parts.colds;
    let at = (*went as u64).wrapping_sub(core.base);
    let Ok(place) = colds.binary_search_by_key(&at, |cold| cold.trap) else {
        return Answered::Refused;
    };
    let holder = instance::holder(here);
    let Some(found) = operand::refused(core, holder, *went as u64, registers) else {
        return Answered::Refused;
    };
    let (wanted, write) = match found.right {
        2 => (Access::WRITE, true),
        _ => (Access::READ, false),
    };
    asks(holder.id);
    // SAFETY: the domain that faulted runs on this thread, and its context says where it was.
    let granted = unsafe {
        as_host(here, registers[4], || {
            let granted = hook(found.address, found.bytes, write);
            follow::granted(core);
            granted
        })
    };
    let has_lost = has_lost();
    // Without this a hook that grants something else would be asked for ever.
    if !granted || !holder.view.allows(found.address, 1, wanted) {
        return Answered::Refused;
    }
    let cold = &colds[place];
    if has_lost && !cold.is_alone {
        return Answered::Lost;
    }
    *went = (core.base + cold.start) as i64;
    Answered::Granted
}
