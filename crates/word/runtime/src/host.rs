//! The host: one table for the process, and who is granted what.

use crate::domain::{Core, Domain};
use crate::fault::{self, Report};
use crate::gates;
use crate::load::{self, LoadError};
use crate::memory::Reserved;
use crate::module::Module;
use crate::policy::Policy;
use crate::watchdog;
use mullion_supervisor::{DomainId, Error, Level, Permission, Range, Supervisor};
use mullion_word_abi::{ADDRESS_BITS, STACK_REGION};
use mullion_word_table::{self as table, Code, Inside, Table};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use thiserror::Error;

pub(crate) const ROOT: DomainId = DomainId::SUPERVISOR;

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

/// Why memory was not granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum GrantError {
    /// The supervisor refuses.
    #[error("{0}")]
    Refused(#[from] Error),
    /// It is no memory that can be granted.
    #[error("{bytes} bytes at {address:#x} are no memory that can be granted")]
    NoMemory {
        /// Where.
        address: u64,
        /// How much.
        bytes: u64,
    },
}

/// The process's own.
pub(crate) struct World {
    supervisor: Mutex<Supervisor<Table>>,
    pub(crate) inside: Arc<Inside>,
    pub(crate) stacks: Stacks,
    /// By the supervisor's number; for reports.
    pub(crate) domains: Mutex<HashMap<DomainId, &'static Core>>,
    pub(crate) hook: Mutex<Option<Hook>>,
    _gates: table::Loaded,
}

type Hook = Box<dyn Fn(&Report) + Send>;

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

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

static WORLD: OnceLock<Result<World, SetupError>> = OnceLock::new();

/// The world, behind the first [`Host::new`] that did not fail.
pub(crate) fn world() -> &'static World {
    match WORLD.get() {
        Some(Ok(world)) => world,
        _ => unreachable!("domains and their gates are made by a host"),
    }
}

impl World {
    fn new() -> Result<World, SetupError> {
        let system = |what| {
            move |source| SetupError::System {
                what,
                source: Arc::new(source),
            }
        };
        let inside = Inside::new()?;
        let table = Table::reserve(table::Limits::default(), Arc::clone(&inside))
            .map_err(|error| SetupError::Table(Arc::new(error)))?;
        let space = Range::bytes(0, 1 << ADDRESS_BITS).expect("whole words");
        let text = gates::address(gates::mullion_word_gates) as usize
            ..gates::address(gates::mullion_word_gates_end) as usize;
        let gates = Code::new(text, Vec::new())
            .expect("no range is wrong")
            .load();
        fault::install().map_err(system("handlers for faults"))?;
        watchdog::install().map_err(system("a handler for limits"))?;
        Ok(World {
            supervisor: Mutex::new(Supervisor::new(space, table)),
            inside,
            stacks: Stacks::new().map_err(system("addresses for stacks"))?,
            domains: Mutex::new(HashMap::new()),
            hook: Mutex::new(None),
            _gates: gates,
        })
    }

    pub(crate) fn supervisor(&self) -> MutexGuard<'_, Supervisor<Table>> {
        lock(&self.supervisor)
    }
}

/// What was changed for a domain, to be put back.
#[derive(Debug)]
#[must_use = "put it back"]
pub(crate) struct Raised {
    id: DomainId,
    /// Owner, words, and the permission that was there.
    pieces: Vec<(DomainId, Range, Permission)>,
}

/// The words that bytes lie in.
pub(crate) fn words(address: u64, bytes: u64) -> Result<Range, GrantError> {
    let wrong = GrantError::NoMemory { address, bytes };
    let last = address.checked_add(bytes.max(1) - 1).ok_or(wrong)?;
    Range::words(address / 4, last / 4 - address / 4 + 1).map_err(|_| wrong)
}

/// Gives `id` at least `permission` on these bytes. Acts for who owns them, because the host decides.
pub(crate) fn raise(
    supervisor: &mut Supervisor<Table>,
    id: DomainId,
    range: Range,
    permission: Permission,
) -> Result<Raised, GrantError> {
    let mut raised = Raised {
        id,
        pieces: Vec::new(),
    };
    let found: Vec<_> = supervisor
        .regions(range)
        .map(|(piece, holding)| (piece, holding.owner, holding.direct(id.into()).access))
        .collect();
    for (piece, owner, held) in found {
        if held == permission || held == Permission::ReadWrite {
            continue;
        }
        let Some(piece) = piece.overlap(range) else {
            continue;
        };
        if let Err(error) = supervisor.mprot_export(&owner, id, piece, permission) {
            lower(supervisor, raised);
            return Err(error.into());
        }
        raised.pieces.push((owner, piece, held));
    }
    Ok(raised)
}

/// Puts back what [`raise`] found.
pub(crate) fn lower(supervisor: &mut Supervisor<Table>, raised: Raised) {
    for (owner, piece, held) in raised.pieces.iter().rev() {
        // The domain or the owner may have ended meanwhile: then it has nothing there.
        let _gone = supervisor.mprot_export(owner, raised.id, *piece, *held);
    }
}

/// The host's side of the word wall: one for the process, however many handles.
#[derive(Clone, Copy, Debug)]
pub struct Host(());

/// Memory that is granted until this is dropped.
#[derive(Debug)]
pub struct Granted(Option<Raised>);

impl Host {
    /// Reserves the table, and installs what is needed in this process: handlers for SIGSEGV, SIGBUS, SIGILL, SIGFPE and
    /// SIGTRAP, which pass on what is not theirs, and two real-time signals.
    pub fn new() -> Result<Host, SetupError> {
        match WORLD.get_or_init(World::new) {
            Ok(_) => Ok(Host(())),
            Err(error) => Err(error.clone()),
        }
    }

    /// Makes a domain of a module. Functions of the host are found by `dlsym`.
    pub fn load(&self, module: &Arc<Module>, policy: Policy) -> Result<Domain, LoadError> {
        self.load_with(module, policy, &mut load::dlsym)
    }

    /// As [`load`](Self::load); `resolve` says where a symbol of the host is.
    pub fn load_with(
        &self,
        module: &Arc<Module>,
        policy: Policy,
        resolve: &mut dyn FnMut(&str) -> Option<usize>,
    ) -> Result<Domain, LoadError> {
        load::load(module, policy, resolve)
    }

    /// Lets a domain read, or read and write, memory of the host until [`revoke`](Self::revoke).
    ///
    /// # Safety
    /// The host bears what the domain writes there, at any time.
    pub unsafe fn grant(
        &self,
        domain: &Domain,
        address: usize,
        bytes: usize,
        write: bool,
    ) -> Result<(), GrantError> {
        let range = words(address as u64, bytes as u64)?;
        // It stays.
        let _stays = raise(
            &mut world().supervisor(),
            domain.core.id,
            range,
            right(write),
        )?;
        Ok(())
    }

    /// As [`grant`](Self::grant), until the answer is dropped.
    ///
    /// # Safety
    /// As there.
    pub unsafe fn grant_for(
        &self,
        domain: &Domain,
        address: usize,
        bytes: usize,
        write: bool,
    ) -> Result<Granted, GrantError> {
        let range = words(address as u64, bytes as u64)?;
        let raised = raise(
            &mut world().supervisor(),
            domain.core.id,
            range,
            right(write),
        )?;
        Ok(Granted(Some(raised)))
    }

    /// Takes memory from all domains. When it returns, no access comes that was checked before, on any thread.
    pub fn revoke(&self, address: usize, bytes: usize) -> Result<(), GrantError> {
        let range = words(address as u64, bytes as u64)?;
        let mut supervisor = world().supervisor();
        let domains = lock(&world().domains);
        let pieces: Vec<_> = supervisor
            .regions(range)
            .flat_map(|(piece, holding)| {
                let holders = domains.keys().filter(|id| **id != holding.owner);
                let holders =
                    holders.filter(|id| holding.direct((**id).into()).access != Permission::None);
                holders
                    .map(move |id| (*id, holding.owner, piece))
                    .collect::<Vec<_>>()
            })
            .collect();
        for (id, owner, piece) in pieces {
            if let Some(piece) = piece.overlap(range) {
                supervisor.mprot_export(&owner, id, piece, Permission::None)?;
            }
        }
        Ok(())
    }

    /// Lets `from` call a function of `to` by its address, without the host.
    pub fn link(&self, from: &Domain, to: &Domain, name: &str) -> Result<(), GrantError> {
        let missing = GrantError::NoMemory {
            address: 0,
            bytes: 0,
        };
        let gate = to.function(name).ok_or(missing)? as u64;
        load::export_gate(&mut world().supervisor(), from.core.id, to.core.id, gate)?;
        Ok(())
    }

    /// Is called with each report, behind the call that has ended, before its caller goes on.
    pub fn on_fault(&self, hook: impl Fn(&Report) + Send + 'static) {
        *lock(&world().hook) = Some(Box::new(hook));
    }
}

fn right(write: bool) -> Permission {
    match write {
        true => Permission::ReadWrite,
        false => Permission::Read,
    }
}

impl Drop for Granted {
    fn drop(&mut self) {
        if let Some(raised) = self.0.take() {
            lower(&mut world().supervisor(), raised);
        }
    }
}

/// Exports with the level that cannot be passed on.
pub(crate) const NOT_FURTHER: Level = Level::None;
