//! The states of all modules, which copies of this crate share: see `mullion_sip_core::CoreState`.

use std::mem::offset_of;
use std::sync::OnceLock;

use mullion_sip_digest::Digest;

use crate::channel::place::EndpointPlace;
use crate::channel::{AnyEndpoint, Info};
use crate::exchange::common_memory::{self, CommonMemory};
use crate::exchange::region::{self, Ledger, Record, Region};
use crate::exchange::worker::{self, Worker};

/// All of them.
#[allow(missing_debug_implementations)]
pub struct State {
    region: &'static OnceLock<Region>,
    workers: &'static worker::State,
    common_memory: &'static OnceLock<CommonMemory>,
}

/// This copy's.
pub(crate) static OWN: State = State {
    region: &region::OWN,
    workers: &worker::OWN,
    common_memory: &common_memory::OWN,
};

/// From here on this copy of the crate works with the host's state. Nothing of it has been used.
#[cfg(feature = "separate")]
pub(crate) fn attach(host: &'static State) {
    region::attach(host.region);
    worker::attach(host.workers);
    common_memory::attach(host.common_memory);
}

/// Where the compiler has put what copies of this crate share.
pub(crate) const LAYOUT: Digest = Digest::new()
    .number(size_of::<State>() as u64)
    .number(offset_of!(State, region) as u64)
    .number(offset_of!(State, workers) as u64)
    .number(offset_of!(State, common_memory) as u64)
    .number(size_of::<worker::State>() as u64)
    .number(size_of::<CommonMemory>() as u64)
    .number(size_of::<Worker>() as u64)
    .number(align_of::<Worker>() as u64)
    .number(size_of::<Ledger>() as u64)
    .number(size_of::<Record>() as u64)
    .number(offset_of!(Record, next) as u64)
    .number(offset_of!(Record, previous) as u64)
    .number(offset_of!(Record, holder) as u64)
    .number(offset_of!(Record, work) as u64)
    .number(offset_of!(Record, count) as u64)
    .number(offset_of!(Record, scan) as u64)
    .number(size_of::<Info>() as u64)
    .number(size_of::<EndpointPlace>() as u64)
    .number(align_of::<EndpointPlace>() as u64)
    .number(size_of::<AnyEndpoint>() as u64)
    .number(offset_of!(Info, name) as u64)
    .number(offset_of!(Info, text) as u64)
    .number(offset_of!(Info, digest) as u64)
    .number(offset_of!(Info, states) as u64)
    .number(offset_of!(Info, rings) as u64)
    .number(offset_of!(Info, size) as u64)
    .number(offset_of!(Info, visit) as u64)
    .finish();
