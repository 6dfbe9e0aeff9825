//! Connections to backends that mod_proxy gives to modules of protocols, and what their policies let these write of them.

use crate::copied;
use crate::deeds;
use crate::frame::{self, Frame};
use crate::layout::read;
use crate::object::Kind;
use crate::partners;
use crate::pools;
use crate::walled::{Answer, Walled, lock};

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

/// Bytes of such a connection, and where it says that nobody may use it again: the byte, and the bit.
const BYTES: u64 = 144;
const CLOSE: (u64, u8) = (86, 2);
/// Where it has its worker, and a brigade of mod_proxy's own.
const WORKER: u64 = 16;
const BRIGADE: u64 = 104;

/// A connection to a backend that mod_proxy has given to the module. A mod_proxy with a wall is not believed: each of these is looked at, and
/// is an object of that module's, or 0.
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
    pub(crate) fn backends(&'static self) -> Vec<Backend> {
        match self.deeds.has(deeds::BACKENDS) {
            true => {
                let owner = partners::proxy();
                let own = self.acquired_here().into_iter();
                own.map(|at| backend(owner, at)).collect()
            }
            false => Vec::new(),
        }
    }

    fn acquired_here(&self) -> Vec<u64> {
        let acquired = lock(&self.acquired);
        let own = acquired.iter().filter(|(_, thread)| *thread == here());
        own.map(|(at, _)| *at).collect()
    }

    /// A connection goes back to mod_proxy.
    pub(crate) fn release(&self, at: u64) {
        lock(&self.acquired).retain(|(known, _)| *known != at);
        self.forget_object(at);
    }

    /// Gives back what an ended call of this thread has. A call that it was made in ends, too, and may still use a connection.
    pub(crate) fn give_back(&'static self) {
        let is_outer = frame::now().is_some_and(|frame| frame.is_in(self));
        if is_outer || !self.deeds.has(deeds::BACKENDS) {
            return;
        }
        for at in self.acquired_here() {
            self.release(at);
            let Some(real) = partners::release() else {
                continue;
            };
            // SAFETY: mod_proxy has given the connection to the call that has ended, and nobody else has it. It lies in memory of a
            // mod_proxy without a wall, which keeps it, or in memory that is the module's for good.
            unsafe {
                *((at + CLOSE.0) as *mut u8) |= CLOSE.1;
                let real: extern "C" fn(*const i8, u64, u64) -> i32 = std::mem::transmute(real);
                real(c"mullion".as_ptr(), at, frame::main_server().unwrap_or(0));
            }
        }
    }

    /// Takes the turn with what belongs to this thread's connections of a mod_proxy with a wall, until the call of the host returns, and
    /// keeps it. Those connections go with no request, and threads of mod_proxy know all of them.
    pub(crate) fn take_backends(&'static self, frame: &Frame) -> Answer<()> {
        let Some(owner) = partners::proxy() else {
            return Ok(());
        };
        for at in self.acquired_here() {
            for pool in backend(Some(owner), at).pools {
                let is_bound = pools::is_bound(pool);
                if pool == 0 {
                    continue;
                }
                if !pools::hold(frame, pool, is_bound) {
                    return Err(format!("{pool:#x}, with a backend, ends"));
                }
                if !is_bound {
                    frame.take_turn(pool)?;
                }
            }
        }
        Ok(())
    }

    /// The core's brigade that mod_proxy has for a connection to a backend, which is passed on as it is.
    pub(crate) fn brigade_of_backend(&'static self, at: u64) -> Option<u64> {
        if at == 0 || !self.deeds.has(deeds::BACKENDS) {
            return None;
        }
        let mut own = self.acquired_here().into_iter();
        // SAFETY: mod_proxy keeps the connections that it has given out, or they lie in memory that is the module's for good.
        own.find(|backend| unsafe { read(*backend + BRIGADE) } == at)?;
        match partners::proxy() {
            None => Some(at),
            Some(owner) => owner.real_brigade(at),
        }
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
            let mut word = [0; 8];
            let is_read = copied::bytes(worker + WORKER_SHARED, &mut word).is_ok();
            let at = u64::from_ne_bytes(word);
            is_read.then_some((at, "proxy_worker_shared"))
        };
        let owner = partners::proxy();
        let own = self.acquired_here();
        // SAFETY: mod_proxy keeps these structures, or they lie in memory that is the module's for good.
        let workers = own.iter().map(|at| unsafe { read(*at + WORKER) });
        let workers: Vec<u64> = workers.collect();
        let own = own.into_iter().map(|at| (at, "proxy_conn_rec"));
        let workers = workers.into_iter();
        let workers = workers.chain(self.made(Kind::Thing)).chain(frame.workers());
        let workers = workers.filter(|worker| *worker != 0).filter_map(shared);
        for (start, structure) in own.chain(workers) {
            for (name, offset, bytes) in BACKEND_FIELDS {
                let is_named =
                    || name.starts_with(structure) && self.backend_fields.contains(&name);
                let field = start.wrapping_add(offset);
                if at.wrapping_sub(field) < bytes && is_named() {
                    return match owner {
                        None => self.lend(frame, pool, field, bytes).is_ok(),
                        Some(owner) => self.borrow_of(owner, field, bytes),
                    };
                }
            }
        }
        false
    }

    /// Grants words that are memory of another module's, for as long as that one has them. No other words are granted, whatever that
    /// module says where its structures are.
    fn borrow_of(&'static self, owner: &'static Walled, at: u64, bytes: u64) -> bool {
        let within =
            |start: u64, size: u64| at >= start && at.saturating_add(bytes) <= start + size;
        match owner.block(at) {
            Some((pool, start, size)) if within(start, size) => {
                self.borrow((pool, at, bytes)).is_ok()
            }
            Some(_) => false,
            None => self.demand_words_of_segment(at, bytes, |whose| {
                std::ptr::eq(whose, owner) || owner.partners.contains(&whose.name)
            }),
        }
    }
}

/// A number of this thread.
pub(crate) fn here() -> u64 {
    // SAFETY: it asks for a number.
    unsafe { libc::pthread_self() }
}

/// Whether a connection lies where a mod_proxy with a wall has its own memory. Without a wall it is believed.
pub(crate) fn lies_right(at: u64) -> bool {
    partners::proxy().is_none_or(|owner| {
        let block = owner.block(at);
        block.is_some_and(|(_, start, size)| at + BYTES <= start + size)
    })
}

fn backend(owner: Option<&'static Walled>, at: u64) -> Backend {
    // SAFETY: mod_proxy keeps these structures as long as the process lives, or they lie in memory that is the module's for good.
    let word = |offset: u64| unsafe { read(at + offset) };
    let object = |offset: u64, kind: Kind| {
        let object = word(offset);
        let is_own = owner.is_none_or(|owner| owner.has_made(object, kind));
        if is_own { object } else { 0 }
    };
    Backend {
        at,
        connection: object(0, Kind::Connection),
        worker: word(WORKER),
        socket: object(56, Kind::Socket),
        address: object(40, Kind::Address),
        pools: [object(24, Kind::Pool), object(48, Kind::Pool)],
    }
}
