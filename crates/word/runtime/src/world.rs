//! What the process has once: the supervisor with its table, and addresses for stacks.

use crate::biased::{Biased, Guard};
use crate::core::Core;
use crate::gates;
use crate::memory::{Reserved, lock};
use crate::report::Report;
use crate::rights::Decider;
use crate::thunks::Thunks;
use mullion_supervisor::{DomainId, Range, Supervisor};
use mullion_word_abi::{ADDRESS_BITS, STACK_REGION};
use mullion_word_table::{self as table, Code, Inside, Table};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use thiserror::Error;

/// Addresses for data stacks: every second region of so many.
const STACKS: u64 = 1 << 16;

/// Why there is no word wall in this process.
#[derive(Clone, Debug, Error)]
pub enum SetupError {
    /// There is no table.
    #[error("{0}")]
    Table(Arc<table::SpaceError>),
    /// Threads cannot be waited for.
    #[error("{0}")]
    Inside(#[from] table::SetupError),
    /// The system refuses something.
    #[error("the word wall cannot have {what}: {source}")]
    System {
        /// What.
        what: &'static str,
        /// What it said.
        source: Arc<std::io::Error>,
    },
}

/// The process's own.
pub(crate) struct World {
    decider: Biased<Decider>,
    pub(crate) inside: Arc<Inside>,
    pub(crate) stacks: Stacks,
    pub(crate) private: Private,
    pub(crate) words: Words,
    pub(crate) thunks: Thunks,
    pub(crate) domains: Mutex<Domains>,
    pub(crate) hook: Mutex<Option<Hook>>,
    _gates: table::Loaded,
}

type Hook = Arc<dyn Fn(&Report) + Send + Sync>;

/// Domains that live.
#[derive(Default)]
pub(crate) struct Domains {
    by_number: HashMap<DomainId, &'static Core>,
    by_place: BTreeMap<u64, &'static Core>,
}

impl Domains {
    pub(crate) fn insert(&mut self, core: &'static Core) {
        self.by_number.insert(core.id, core);
        self.by_place.insert(core.base, core);
    }

    pub(crate) fn remove(&mut self, core: &Core) {
        self.by_number.remove(&core.id);
        self.by_place.remove(&core.base);
    }

    pub(crate) fn get(&self, number: DomainId) -> Option<&'static Core> {
        self.by_number.get(&number).copied()
    }

    /// The one in whose memory an address is.
    pub(crate) fn at(&self, address: u64) -> Option<&'static Core> {
        let (base, core) = self.by_place.range(..=address).next_back()?;
        (address - base < core.memory.bytes()).then_some(*core)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &'static Core> {
        self.by_number.values().copied()
    }
}

/// Regions for data stacks.
pub(crate) struct Stacks {
    pub(crate) memory: Reserved,
    first: u64,
    free: Mutex<(u64, Vec<u64>)>,
}

impl Stacks {
    fn new() -> std::io::Result<Stacks> {
        let memory = Reserved::new((2 * STACKS + 2) * STACK_REGION)?;
        let first = (memory.base() + STACK_REGION).next_multiple_of(STACK_REGION);
        Ok(Stacks {
            memory,
            first,
            free: Mutex::new((0, Vec::new())),
        })
    }

    /// A region between two that are never mapped.
    pub(crate) fn take(&self) -> Option<u64> {
        let mut free = lock(&self.free);
        free.1.pop().or_else(|| {
            free.0 += 1;
            (free.0 < STACKS).then(|| self.first + (free.0 - 1) * 2 * STACK_REGION)
        })
    }

    pub(crate) fn give(&self, region: u64) {
        // Without access and memory again.
        if self
            .memory
            .map(region, STACK_REGION, libc::PROT_NONE)
            .is_ok()
        {
            lock(&self.free).1.push(region);
        }
    }

    /// The region that an address is in, if it is a stack's, or next to one.
    pub(crate) fn is_near(&self, address: u64) -> bool {
        (self.memory.base()..self.memory.base() + self.memory.bytes()).contains(&address)
    }
}

/// Threads at a time, and what each has of [`Private`].
const THREADS: u64 = 1 << 15;
pub(crate) const PRIVATE: u64 = 2 << 20;

/// What no module may ever have, in one place, which the table refuses: control stacks, stacks of signal handlers, and
/// threads' lists of seats.
pub(crate) struct Private {
    pub(crate) memory: Reserved,
    free: Mutex<(u64, Vec<u64>)>,
}

impl Private {
    fn new() -> std::io::Result<Private> {
        Ok(Private {
            memory: Reserved::new(THREADS * PRIVATE)?,
            free: Mutex::default(),
        })
    }

    /// Addresses for a thread, without access.
    pub(crate) fn take(&self) -> Option<u64> {
        let mut free = lock(&self.free);
        free.1.pop().or_else(|| {
            free.0 += 1;
            (free.0 <= THREADS).then(|| self.memory.base() + (free.0 - 1) * PRIVATE)
        })
    }

    pub(crate) fn give(&self, block: u64) {
        if self.memory.map(block, PRIVATE, libc::PROT_NONE).is_ok() {
            lock(&self.free).1.push(block);
        }
    }
}

/// A word for each place, which it owns: the supervisor wants a domain to own something.
pub(crate) struct Words {
    memory: Reserved,
    next: AtomicU64,
}

impl Words {
    fn new() -> std::io::Result<Words> {
        Ok(Words {
            memory: Reserved::new(WORDS)?,
            next: AtomicU64::new(0),
        })
    }

    pub(crate) fn take(&self) -> Option<Range> {
        let at = self.next.fetch_add(4, Ordering::Relaxed);
        let address = self.memory.base() + at;
        Range::bytes(address, 4).ok().filter(|_| at < WORDS)
    }
}

/// Addresses for them. Places come back, and those of modules that have ended do not.
const WORDS: u64 = 1 << 32;

static WORLD: OnceLock<Result<World, SetupError>> = OnceLock::new();

/// Makes the world if there is none; `install` installs handlers.
pub(crate) fn open(install: fn() -> std::io::Result<()>) -> Result<(), SetupError> {
    match WORLD.get_or_init(|| World::new(install)) {
        Ok(_) => Ok(()),
        Err(error) => Err(error.clone()),
    }
}

/// The world, behind the first `Host::new` that did not fail.
pub(crate) fn world() -> &'static World {
    match WORLD.get() {
        Some(Ok(world)) => world,
        _ => unreachable!("domains and their gates are made by a host"),
    }
}

/// The world, if there is one yet.
pub(crate) fn try_world() -> Option<&'static World> {
    WORLD.get()?.as_ref().ok()
}

impl World {
    fn new(install: fn() -> std::io::Result<()>) -> Result<World, SetupError> {
        let system = |what| {
            move |source| SetupError::System {
                what,
                source: Arc::new(source),
            }
        };
        let inside = Inside::new()?;
        let mut table = Table::reserve(table::Limits::default(), Arc::clone(&inside))
            .map_err(|error| SetupError::Table(Arc::new(error)))?;
        let private = Private::new().map_err(system("addresses for control stacks"))?;
        let thunks = Thunks::new().map_err(system("memory for thunks"))?;
        for memory in [&private.memory, thunks.memory()] {
            table.close(Range::bytes(memory.base(), memory.bytes()).expect("whole words"));
        }
        let space = Range::bytes(0, 1 << ADDRESS_BITS).expect("whole words");
        let text = gates::address(gates::mullion_word_gates) as usize
            ..gates::address(gates::mullion_word_gates_end) as usize;
        let gates = Code::new(text, Vec::new())
            .expect("no range is wrong")
            .load();
        install().map_err(system("handlers for faults and limits"))?;
        Ok(World {
            decider: Biased::new(Decider::new(Supervisor::new(space, table))),
            inside,
            thunks,
            private,
            words: Words::new().map_err(system("addresses for instances"))?,
            stacks: Stacks::new().map_err(system("addresses for stacks"))?,
            domains: Mutex::default(),
            hook: Mutex::new(None),
            _gates: gates,
        })
    }

    #[inline]
    pub(crate) fn supervisor(&self) -> Guard<'_, Decider> {
        self.decider.lock()
    }

    /// As [`supervisor`](Self::supervisor), while the process is copied.
    pub(crate) fn supervisor_in_copies(&self) -> Guard<'_, Decider> {
        self.decider.lock_whole()
    }
}
