//! Connections to backends that mod_proxy gives to modules of protocols, and what their policies let these write of them.

use crate::deeds;
use crate::frame::Frame;
use crate::layout::read;
use crate::object::Kind;
use crate::walled::{Walled, lock};

/// What a module may write of its connections to backends (`proxy_conn_rec`), and of what is counted for all of them.
pub(crate) const BACKEND_FIELDS: [(&str, u64, u64); 7] = [
    (crate::shadows::OF_BACKEND, 8, 8),
    ("proxy_worker_shared.lbstatus", SHARED_STATUS, 4),
    ("proxy_worker_shared.elected", SHARED_ELECTED, 8),
    ("proxy_conn_rec.close", 84, 4),
    ("proxy_conn_rec.data", 64, 8),
    ("proxy_worker_shared.transferred", SHARED_TRANSFERRED, 8),
    ("proxy_worker_shared.read", SHARED_READ, 8),
];
const SHARED_STATUS: u64 = 424;
const SHARED_ELECTED: u64 = 552;
const SHARED_TRANSFERRED: u64 = 576;
const SHARED_READ: u64 = 584;
/// Where a worker has what processes share of it.
const WORKER_SHARED: u64 = 24;

/// A connection to a backend that mod_proxy has given to the module.
pub(crate) struct Backend {
    pub(crate) at: u64,
    pub(crate) connection: u64,
    pub(crate) worker: u64,
    pub(crate) socket: u64,
    pub(crate) address: u64,
    pub(crate) pools: [u64; 2],
}

impl Walled {
    /// Connections to backends that this thread's calls have: other threads open and close theirs.
    pub(crate) fn backends(&self) -> Vec<Backend> {
        match self.deeds.has(deeds::BACKENDS) {
            true => {
                let acquired = lock(&self.acquired);
                let own = acquired.iter().filter(|(_, thread)| *thread == here());
                own.map(|(at, _)| backend(*at)).collect()
            }
            false => Vec::new(),
        }
    }

    /// A connection goes back to mod_proxy.
    pub(crate) fn release(&self, at: u64) {
        lock(&self.acquired).retain(|(known, _)| *known != at);
        self.forget_object(at);
    }

    /// Grants what the policy names of a connection to a backend.
    pub(crate) fn demand_backend(&'static self, frame: &Frame, at: u64) -> bool {
        let Some(pool) = frame.any_home() else {
            return false;
        };
        if self.backend_fields.is_empty() {
            return false;
        }
        let shared = |worker: u64| {
            // SAFETY: a module with these fields gets workers of mod_proxy's, which keeps them as long as the configuration.
            let at = unsafe { read(worker + WORKER_SHARED) };
            (at, "proxy_worker_shared")
        };
        let backends = self.backends();
        let own = backends
            .iter()
            .map(|backend| (backend.at, "proxy_conn_rec"));
        let workers = backends.iter().map(|backend| backend.worker);
        let workers = workers.chain(self.made(Kind::Thing)).chain(frame.things());
        let workers = workers.filter(|worker| *worker != 0).map(shared);
        for (start, structure) in own.chain(workers) {
            for (name, offset, bytes) in BACKEND_FIELDS {
                let is_named =
                    || name.starts_with(structure) && self.backend_fields.contains(&name);
                if at.wrapping_sub(start + offset) < bytes && is_named() {
                    return self.lend(frame, pool, start + offset, bytes).is_ok();
                }
            }
        }
        false
    }
}

/// A number of this thread.
pub(crate) fn here() -> u64 {
    // SAFETY: it asks for a number.
    unsafe { libc::pthread_self() }
}

fn backend(at: u64) -> Backend {
    // SAFETY: mod_proxy keeps these structures as long as the process lives.
    let word = |offset: u64| unsafe { read(at + offset) };
    Backend {
        at,
        connection: word(0),
        worker: word(16),
        socket: word(56),
        address: word(40),
        pools: [word(24), word(48)],
    }
}
