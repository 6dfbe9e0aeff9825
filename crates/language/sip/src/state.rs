//! The state of this crate that a program has once; see `mullion_sip_core::State` for how copies come to share it.

use std::sync::{Mutex, OnceLock};
use std::time::Instant;

use crate::inner::{CORE, EXCHANGE};
use crate::kernel::{Ends, KERNEL, Kernel, Offered};
use crate::process::names::Names;
use crate::process::{survey, upstream};
use crate::remote;

/// All of it.
pub(crate) struct State {
    /// Of the crates below.
    pub(crate) core: &'static mullion_sip_core::State,
    pub(crate) exchange: &'static mullion_sip_exchange::interior::State,
    /// The table whose calls work with this state.
    pub(crate) kernel: &'static Kernel,
    pub(crate) beginning: OnceLock<Instant>,
    pub(crate) ends: Ends,
    pub(crate) offered: Mutex<Offered>,
    pub(crate) names: Mutex<Names>,
    pub(crate) upstream: upstream::State,
    pub(crate) survey: survey::State,
    pub(crate) remote: remote::State,
}

/// This copy's.
pub(crate) static OWN: State = State {
    core: CORE.own_state(),
    exchange: EXCHANGE.own_state(),
    kernel: &KERNEL,
    beginning: OnceLock::new(),
    ends: Ends::new(),
    offered: Mutex::new(Offered::new()),
    names: Mutex::new(Names::new()),
    upstream: upstream::State::new(),
    survey: survey::State::new(),
    remote: remote::State::new(),
};

mullion_sip_core::__state!(OWN: State);
