//! What is known of a domain, for its gates, its threads and its handles.

use crate::gates::{Frame, Import, Inner, Seat, state};
use crate::holder::Holder;
use crate::lent::Lent;
use crate::memory::Reserved;
use crate::memory::lock;
use crate::module::Module;
use crate::note;
use crate::policy::{ErrorValue, FunctionPolicy, Limits};
use crate::report::{Report, StackWords};
use crate::rights::Raised;
use crate::thunks::Own;
use crate::wanted::Keep;
use mullion_plain::Plain;
use mullion_supervisor::{DomainId, GroupId};
use mullion_word_abi::OWN_FIRST;
use mullion_word_table::Loaded;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use thiserror::Error;

/// What a host does about a right that is missing (`demand.rs`). It is told the address, the bytes from there to the end of what
/// the check covers, and whether to write.
pub(crate) type Demand = Box<dyn Fn(u64, u64, bool) -> bool + Send + Sync>;

/// All that is known of a domain. It is never freed: gates have its address.
pub(crate) struct Core {
    pub(crate) inner: Inner,
    pub(crate) id: DomainId,
    pub(crate) holder: Holder,
    pub(crate) module: Arc<Module>,
    pub(crate) memory: Reserved,
    pub(crate) base: u64,
    pub(crate) text: Range<u64>,
    pub(crate) imports: Box<[Import]>,
    pub(crate) symbols: Vec<u64>,
    pub(crate) limits: Limits,
    pub(crate) error: ErrorValue,
    /// Its memory outlives it.
    pub(crate) stays_mapped: bool,
    /// What the host keeps with it.
    pub(crate) tag: AtomicU64,
    /// By the body's address in the file.
    pub(crate) exports: BTreeMap<u64, FunctionPolicy>,
    /// Of all other gates.
    pub(crate) other_gates: Option<FunctionPolicy>,
    pub(crate) life: Mutex<Life>,
    pub(crate) keep: Keep,
    pub(crate) seats: Mutex<Vec<SeatAt>>,
    pub(crate) instances: Option<Instances>,
    pub(crate) reports: Mutex<Vec<Report>>,
    /// A domain that has it is not confined: what is refused is told, and done.
    pub(crate) learning: Option<note::Hook>,
    /// Is asked before an access is refused.
    pub(crate) demand: OnceLock<Demand>,
    /// Functions that a learning domain has called by address without leave.
    pub(crate) learned: Mutex<HashMap<u64, &'static Import>>,
    /// Functions that are offered by an address of a call, behind the load.
    pub(crate) offered: Mutex<Vec<(u64, &'static Import)>>,
    /// For reports, made when first needed.
    pub(crate) points: OnceLock<Points>,
}

// SAFETY: all that changes is atomic or behind a lock; the pointers are to what stays.
unsafe impl Sync for Core {}
// SAFETY: nothing in it belongs to the thread that made it: a lock or an atomic value guards what changes.
unsafe impl Send for Core {}

/// A domain, until it is unloaded. Handles are copies.
#[derive(Clone, Copy)]
pub struct Domain {
    pub(crate) core: &'static Core,
}

/// A place for instances. It is never freed.
pub(crate) struct Principal {
    pub(crate) holder: Holder,
    pub(crate) core: &'static Core,
    /// Odd while an instance has it. Changes under `turn`.
    pub(crate) life: AtomicU64,
    pub(crate) turn: Mutex<Kept>,
}

/// What an instance has besides.
#[derive(Default)]
pub(crate) struct Kept {
    pub(crate) names: Vec<u64>,
    /// Granted by hand, for good.
    pub(crate) raised: Vec<Raised>,
}

/// The instances of a module.
pub(crate) struct Instances {
    pub(crate) group: GroupId,
    pub(crate) named: Mutex<HashMap<u64, &'static Principal>>,
    pub(crate) all: Mutex<Vec<&'static Principal>>,
    pub(crate) free: Mutex<Vec<&'static Principal>>,
}

/// Why a domain cannot be ended or restarted now.
#[derive(Debug, Error)]
pub enum EndError {
    /// Calls in it have not returned.
    #[error("{0} calls of {1} have not returned; they end when they next come back to it")]
    InUse(u64, Plain),
    /// It has been unloaded.
    #[error("it was unloaded")]
    Gone,
    /// The supervisor refuses.
    #[error("{0}")]
    Refused(#[from] mullion_supervisor::Error),
    /// The system refuses memory.
    #[error("no memory for fresh data: {0}")]
    Memory(#[from] std::io::Error),
}

/// The looks at the map, each with the trap that it leads to, in order. Distances from the start of the text.
pub(crate) type Points = Vec<(u32, u32)>;

#[derive(Default)]
pub(crate) struct Life {
    pub(crate) code: Option<Loaded>,
    pub(crate) thunks: Option<Own>,
    pub(crate) is_gone: bool,
}

/// A seat of a thread that lives. The thread takes it off the list before it goes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SeatAt(pub(crate) *const Seat);

// SAFETY: the list it is on is locked, and only the atomic depth of a seat is read through it.
unsafe impl Send for SeatAt {}

impl Principal {
    /// Where threads have its seats.
    pub(crate) fn index(&self) -> u32 {
        u32::from(self.holder.view.number() - OWN_FIRST)
    }

    pub(crate) fn is_live(&self, life: u64) -> bool {
        self.life.load(Ordering::Acquire) == life
    }
}

impl Instances {
    pub(crate) fn new(group: GroupId) -> Instances {
        Instances {
            group,
            named: Mutex::default(),
            all: Mutex::default(),
            free: Mutex::default(),
        }
    }

    /// Every place there has ever been.
    pub(crate) fn all(&self) -> Vec<&'static Principal> {
        lock(&self.all).clone()
    }
}

impl Core {
    pub(crate) fn is_ended(&self) -> bool {
        self.inner.state.load(Ordering::Acquire) & state::ENDED != 0
    }

    /// The module, and its instances.
    pub(crate) fn holders(&'static self) -> impl Iterator<Item = &'static Holder> {
        let all = self.instances.as_ref().map(Instances::all);
        let all = all.into_iter().flatten().map(|one| &one.holder);
        std::iter::once(&self.holder).chain(all)
    }

    /// Whether something of these bytes is lent by the module or its instances, but for the loans of this seat from the mark on:
    /// those of the call that asks.
    pub(crate) fn lent(&self, bytes: &Range<u64>, (own, mark): (*const Seat, u64)) -> Lent {
        let seats = lock(&self.seats);
        let is_lent = seats.iter().any(|seat| {
            let limit = match std::ptr::eq(seat.0, own) {
                true => mark,
                false => u64::MAX,
            };
            // SAFETY: a seat on the list lives, and its loans are read as atomic values.
            unsafe { (*seat.0).loans.touch(bytes, limit) }
        });
        Lent {
            is_lent,
            is_alone: seats.len() == 1,
        }
    }

    /// The export with this body, for people.
    pub(crate) fn name_of(&self, body: u64) -> &str {
        let export = self.module.function_at(body.wrapping_sub(self.base));
        export.map_or("", |(name, _)| name)
    }

    /// The policy of the export with this body.
    pub(crate) fn export(&self, body: u64) -> Option<&FunctionPolicy> {
        let named = self.exports.get(&body.wrapping_sub(self.base));
        named.or(self.other_gates.as_ref())
    }

    /// What an ended call of the export with this body returns.
    pub(crate) fn error_of(&self, body: u64) -> ErrorValue {
        self.export(body).map_or(self.error, |policy| policy.error)
    }
}

/// The domain that gates have.
impl Inner {
    pub(crate) fn core(&self) -> &'static Core {
        // SAFETY: the loader puts it there before any gate leads here, and a `Core` is never freed.
        unsafe { &*self.core.cast::<Core>() }
    }
}

/// What a handler saw.
#[derive(Clone, Copy)]
pub(crate) struct Record {
    /// None: the domain had ended before.
    pub(crate) kind: Option<crate::report::FaultKind>,
    pub(crate) core: Option<&'static Core>,
    /// That was taken down. Only to be compared.
    pub(crate) frame: *const Frame,
    pub(crate) holder: Option<&'static Holder>,
    pub(crate) body: u64,
    pub(crate) at: u64,
    /// The call that led to a trap of the gates; 0 if there was none.
    pub(crate) call: u64,
    pub(crate) address: u64,
    pub(crate) registers: [u64; 16],
    pub(crate) stack: Option<StackWords>,
    /// The access was granted, and something was taken away meanwhile.
    pub(crate) has_lost: bool,
}

impl Default for Record {
    fn default() -> Record {
        Record {
            kind: None,
            core: None,
            frame: std::ptr::null(),
            holder: None,
            body: 0,
            at: 0,
            call: 0,
            address: 0,
            registers: [0; 16],
            stack: None,
            has_lost: false,
        }
    }
}
