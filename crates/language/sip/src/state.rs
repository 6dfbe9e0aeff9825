//! The states of all modules, which copies of this crate share: see `mullion_sip_core::CoreState`.

use std::sync::{Mutex, OnceLock};
use std::time::Instant;

use crate::inner::{CORE, EXCHANGE};
use crate::kernel::offered::Offered;
use crate::kernel::{ends, offered, time};
use crate::process::names::Names;
use crate::process::upstream::Upstream;
use crate::process::{names, survey, upstream};

/// All of them, those of the crates below included.
pub(crate) struct State {
    core: &'static mullion_sip_core::CoreState,
    exchange: &'static mullion_sip_exchange::interior::State,
    beginning: &'static OnceLock<Instant>,
    ends: &'static ends::State,
    offered: &'static Mutex<Offered>,
    names: &'static Mutex<Names>,
    upstream: &'static OnceLock<&'static dyn Upstream>,
    counts: &'static names::counts::State,
    survey: &'static survey::State,
}

/// This copy's.
pub(crate) static OWN: State = State {
    core: CORE.own_state(),
    exchange: EXCHANGE.own_state(),
    beginning: &time::OWN,
    ends: &ends::OWN,
    offered: &offered::OWN,
    names: &names::OWN,
    upstream: &upstream::OWN,
    counts: &names::counts::OWN,
    survey: &survey::OWN,
};

/// From here on this copy of the crate, and of the crates below, works with the host's state.
///
/// # Safety
/// `host` is the state of a copy of this crate with the same layout. Nothing but the allocator of this copy has been
/// used, and by the calling OS thread only.
#[cfg(feature = "separate")]
pub(crate) unsafe fn attach(host: &'static State) {
    // SAFETY: the caller promises it of this crate's state, which the layouts of the crates below are part of.
    unsafe {
        CORE.attach(host.core);
        EXCHANGE.attach(host.exchange);
    }
    time::attach(host.beginning);
    ends::attach(host.ends);
    offered::attach(host.offered);
    names::attach(host.names);
    upstream::attach(host.upstream);
    names::counts::attach(host.counts);
    survey::attach(host.survey);
}

/// Where the compiler has put the fields.
pub(crate) const PLACES: [usize; 9] = {
    use std::mem::offset_of;
    [
        offset_of!(State, core),
        offset_of!(State, exchange),
        offset_of!(State, beginning),
        offset_of!(State, ends),
        offset_of!(State, offered),
        offset_of!(State, names),
        offset_of!(State, upstream),
        offset_of!(State, counts),
        offset_of!(State, survey),
    ]
};
