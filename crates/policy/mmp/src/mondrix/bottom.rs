//! The bottom half of the supervisor: what it decides becomes words in permission, gate and stack tables.
//!
//! A call's writes are held back until the call is over ([`Bottom::commit`]). A group's write is the same range with
//! the same permission for several domains. So it is one write to tables that share what can be shared.

use crate::access::{Perm, WORD};
use crate::config::{Config, ConfigError};
use crate::gates::{GateEntry, GateTable};
use crate::stack::StackTable;
use crate::table::memory::{TableMemory, Traffic};
use crate::table::multilevel::{MultiLevel, Runs, Vector};
use crate::table::sorted::SortedTable;
use crate::table::{Format, MemoryBlock, PermissionTable, Root, Walk};
use mullion_recorder::Recorder;
use mullion_supervisor::{DomainId, Mechanism, Permission, Range, StackRegisters, ThreadId};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range as Bytes;

/// One domain's tables.
#[derive(Debug)]
struct DomainTables {
    root: Root,
    gates: GateTable,
}

/// What the hardware's caches must forget after a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stale {
    /// What they say of a domain's permissions and gates in a range.
    Domain(u32, Bytes<u64>),
    /// What they say of the running thread's stack write table in a range.
    StackWords(Bytes<u64>),
    /// All they say of a stack write table.
    Stack,
    /// A line may have gates that it had not.
    Gates(Bytes<u64>),
}

/// All tables, as the supervisor's mechanism.
#[derive(Debug)]
pub struct Bottom {
    format: Box<dyn PermissionTable>,
    memory: TableMemory,
    address_bits: u32,
    granularity: u64,
    line_bytes: u64,
    share_groups: bool,
    domains: Vec<Option<DomainTables>>,
    stacks: BTreeMap<u32, StackTable>,
    /// Word-granular truth, kept only when the tables are coarser than words.
    exact: Option<Recorder>,
    /// For each domain and granule, the words that it may touch only because the granule is coarse.
    exposed: HashMap<(u32, u64), u32>,
    pending: Vec<(DomainId, Range, Permission)>,
    hints: Vec<(Vec<DomainId>, Range)>,
    removed: Vec<DomainId>,
    stale: Vec<Stale>,
    registers: Option<(ThreadId, StackRegisters)>,
    writes: u64,
}

impl Bottom {
    /// Empty tables over addresses of this many bits.
    pub fn new(config: &Config, address_bits: u32) -> Result<Self, ConfigError> {
        let granularity = config.tables.granularity;
        let coarse = granularity > WORD;
        Ok(Bottom {
            format: match config.tables.format {
                Format::Sorted => Box::new(SortedTable::new(address_bits)?),
                Format::Vector => Box::new(MultiLevel::<Vector>::new(address_bits, granularity)?),
                Format::Runs => Box::new(MultiLevel::<Runs>::new(address_bits, granularity)?),
            },
            memory: TableMemory::new().with_log(),
            address_bits,
            granularity,
            line_bytes: config.caches.line_bytes,
            share_groups: config.tables.share_groups,
            domains: Vec::new(),
            stacks: BTreeMap::new(),
            exact: coarse.then(Recorder::new),
            exposed: HashMap::new(),
            pending: Vec::new(),
            hints: Vec::new(),
            removed: Vec::new(),
            stale: Vec::new(),
            registers: None,
            writes: 0,
        })
    }

    /// The memory that the tables are in.
    pub fn memory(&self) -> &TableMemory {
        &self.memory
    }

    /// The memory's counters.
    pub fn traffic(&self) -> Traffic {
        self.memory.traffic()
    }

    /// Forgets the log of touched words.
    pub fn clear_log(&mut self) {
        self.memory.clear_log();
    }

    /// Ranges written so far.
    pub fn writes(&self) -> u64 {
        self.writes
    }

    /// Words that domains may touch now only because granules are coarser than what was granted.
    pub fn exposed_words(&self) -> u64 {
        self.exposed.values().map(|&words| u64::from(words)).sum()
    }

    /// The registers of the thread that runs, as last loaded.
    pub fn registers(&self) -> Option<(ThreadId, StackRegisters)> {
        self.registers
    }

    /// Gives a new thread its stack write table.
    pub fn create_stack(&mut self, thread: ThreadId, stack: Range) {
        let bytes = self.bytes(stack);
        let table = StackTable::new(&mut self.memory, &bytes);
        self.stacks.insert(thread.get(), table);
    }

    /// Takes an ended thread's stack write table away.
    pub fn end_stack(&mut self, thread: ThreadId) {
        if let Some(table) = self.stacks.remove(&thread.get()) {
            table.destroy(&mut self.memory);
        }
    }

    /// Writes what a call has decided into the tables. What became stale is for the caller to flush.
    pub fn commit(&mut self) -> Vec<Stale> {
        let mut pending = std::mem::take(&mut self.pending);
        // The same range and permission for several domains is one write for all of them.
        pending.sort_unstable_by_key(|&(domain, range, permission)| (range, permission, domain));
        for same in pending.chunk_by(|one, other| (one.1, one.2) == (other.1, other.2)) {
            let (_, range, permission) = same[0];
            self.writes += same.len() as u64;
            for &(domain, ..) in same {
                self.write_gates(domain, range, permission);
            }
            // The two bits under a switch gate depend on whether the holder is its destination.
            let mut by_perm: [Vec<DomainId>; 4] = Default::default();
            for &(domain, ..) in same {
                by_perm[bits_of(permission, domain) as usize].push(domain);
            }
            for (perm, domains) in Perm::ALL.into_iter().zip(by_perm) {
                self.write_perms(&domains, range, perm);
            }
        }
        pending.clear();
        self.pending = pending;
        for (members, range) in std::mem::take(&mut self.hints) {
            let roots: Vec<Root> = members
                .iter()
                .filter_map(|member| self.tables(*member).map(|tables| tables.root))
                .collect();
            let bytes = self.bytes(range);
            self.format.share(&mut self.memory, &roots, bytes);
        }
        for domain in std::mem::take(&mut self.removed) {
            let slot = self.domains.get_mut(domain.get() as usize);
            if let Some(tables) = slot.and_then(Option::take) {
                self.format.destroy(&mut self.memory, tables.root);
                tables.gates.destroy(&mut self.memory);
            }
        }
        std::mem::take(&mut self.stale)
    }

    /// What the hardware finds for an address; an unknown domain has nothing anywhere.
    pub fn look_up(&self, domain: u32, address: u64, walk: &mut Walk) -> MemoryBlock {
        match self.domains.get(domain as usize) {
            Some(Some(tables)) => self
                .format
                .look_up(&self.memory, tables.root, address, walk),
            _ => MemoryBlock::uniform(0, self.address_bits, Perm::None),
        }
    }

    /// What the hardware finds in the running thread's stack write table.
    pub fn look_up_stack(&self, address: u64, walk: &mut Walk) -> Option<MemoryBlock> {
        let (thread, _) = self.registers?;
        let table = self.stacks.get(&thread.get())?;
        Some(table.look_up(&self.memory, address, walk))
    }

    /// All gates that a domain has on the line of an address.
    pub fn gates_on_line(
        &self,
        domain: u32,
        address: u64,
        walk: &mut Walk,
    ) -> Vec<(u64, GateEntry)> {
        match self.domains.get(domain as usize) {
            Some(Some(tables)) => tables.gates.walk(&self.memory, address, walk),
            _ => Vec::new(),
        }
    }

    fn tables(&self, domain: DomainId) -> Option<&DomainTables> {
        self.domains.get(domain.get() as usize)?.as_ref()
    }

    fn bytes(&self, range: Range) -> Bytes<u64> {
        range.start() * WORD..range.end() * WORD
    }

    fn write_perms(&mut self, domains: &[DomainId], range: Range, perm: Perm) {
        if domains.is_empty() {
            return;
        }
        if self.exact.is_none() {
            let bytes = self.bytes(range);
            self.set(domains, bytes, perm);
            return;
        }
        self.write_coarse(domains, range, perm);
    }

    /// Sets granules: those inside the range to its permission, those at its edges to the strongest
    /// permission of any of their words. Domains whose granules end up alike are written together, so
    /// that what they share stays shared.
    fn write_coarse(&mut self, domains: &[DomainId], range: Range, perm: Perm) {
        let bytes = self.bytes(range);
        if let Some(exact) = &mut self.exact {
            for &domain in domains {
                exact.write(domain, range, permission_of(perm));
            }
        }
        let size = self.granularity;
        let inner = bytes.start.next_multiple_of(size)..bytes.end / size * size;
        let mut edges = vec![bytes.start / size, (bytes.end - 1) / size];
        edges.dedup();
        edges.retain(|granule| !inner.contains(&(granule * size)));
        if !inner.is_empty() {
            self.set(domains, inner.clone(), perm);
            self.exposed.retain(|&(of, granule), _| {
                !inner.contains(&(granule * size)) || domains.iter().all(|one| one.get() != of)
            });
        }
        for granule in edges {
            let mut by_perm: [Vec<DomainId>; 4] = Default::default();
            for &domain in domains {
                let (joined, exposed) = self.join(domain, granule);
                by_perm[joined as usize].push(domain);
                if exposed > 0 {
                    self.exposed.insert((domain.get(), granule), exposed);
                } else {
                    self.exposed.remove(&(domain.get(), granule));
                }
            }
            for (joined, alike) in Perm::ALL.into_iter().zip(by_perm) {
                self.set(&alike, granule * size..(granule + 1) * size, joined);
            }
        }
    }

    /// The strongest permission in a granule, and how many words have less. Two bits cannot say "write
    /// and execute": there, writing is what is lost.
    fn join(&self, domain: DomainId, granule: u64) -> (Perm, u32) {
        let words = self.granularity / WORD;
        let exact = self.exact.as_ref();
        let perms: Vec<Perm> = (granule * words..(granule + 1) * words)
            .map(|word| {
                let held = exact.map_or(Permission::None, |exact| exact.permission(domain, word));
                bits_of(held, domain)
            })
            .collect();
        let joined = perms.iter().copied().max_by_key(|perm| perm.bits());
        let joined = joined.unwrap_or_default();
        let less = perms.iter().filter(|perm| **perm != joined).count();
        (joined, less as u32)
    }

    fn set(&mut self, domains: &[DomainId], bytes: Bytes<u64>, perm: Perm) {
        let mut roots: Vec<(u32, Root)> = domains
            .iter()
            .filter_map(|domain| Some((domain.get(), self.tables(*domain)?.root)))
            .collect();
        if self.share_groups && roots.len() > 1 {
            let mut all: Vec<Root> = roots.iter().map(|(_, root)| *root).collect();
            self.format.set(&mut self.memory, &mut all, bytes, perm);
            for ((_, root), new) in roots.iter_mut().zip(all) {
                *root = new;
            }
        } else {
            for (_, root) in &mut roots {
                let one = std::slice::from_mut(root);
                self.format.set(&mut self.memory, one, bytes.clone(), perm);
            }
        }
        for (domain, root) in roots {
            if let Some(Some(tables)) = self.domains.get_mut(domain as usize) {
                tables.root = root;
            }
        }
    }

    fn write_gates(&mut self, domain: DomainId, range: Range, permission: Permission) {
        let bytes = self.bytes(range);
        let Some(Some(tables)) = self.domains.get_mut(domain.get() as usize) else {
            return;
        };
        let gate = match permission {
            Permission::SwitchGate { to } => GateEntry::Switch {
                to: to.get() as u16,
            },
            Permission::ReturnGate => GateEntry::Return,
            _ => {
                for address in tables.gates.in_range(bytes) {
                    tables.gates.remove(&mut self.memory, address);
                }
                return;
            }
        };
        for word in range.start()..range.end() {
            tables.gates.insert(&mut self.memory, word * WORD, gate);
        }
        self.stale.push(Stale::Gates(bytes));
    }
}

impl Mechanism for Bottom {
    fn create(&mut self, domain: DomainId) {
        let index = domain.get() as usize;
        if self.domains.len() <= index {
            self.domains.resize_with(index + 1, || None);
        }
        // Domain 0 reaches all of memory without a table (Mondrix, section 2.1).
        if domain != DomainId::SUPERVISOR {
            let root = self.format.create(&mut self.memory);
            let gates = GateTable::new(&mut self.memory, self.address_bits, self.line_bytes);
            self.domains[index] = Some(DomainTables { root, gates });
        }
        if let Some(exact) = &mut self.exact {
            exact.create(domain);
        }
    }

    fn remove(&mut self, domain: DomainId) {
        self.removed.push(domain);
        self.exposed.retain(|&(of, _), _| of != domain.get());
        if let Some(exact) = &mut self.exact {
            exact.remove(domain);
        }
    }

    fn write(&mut self, domain: DomainId, range: Range, permission: Permission) {
        if domain != DomainId::SUPERVISOR {
            self.pending.push((domain, range, permission));
        }
    }

    fn flush(&mut self, domain: DomainId, range: Range) {
        if domain != DomainId::SUPERVISOR {
            let bytes = self.bytes(range);
            let size = self.granularity;
            let start = bytes.start / size * size;
            let end = bytes.end.next_multiple_of(size);
            self.stale.push(Stale::Domain(domain.get(), start..end));
        }
    }

    fn alike(&mut self, members: &[DomainId], range: Range, _: Permission) {
        if self.share_groups {
            self.hints.push((members.to_vec(), range));
        }
    }

    fn write_stack(&mut self, thread: ThreadId, range: Range, writable: bool) {
        let bytes = self.bytes(range);
        if let Some(table) = self.stacks.get(&thread.get()) {
            table.set(&mut self.memory, &bytes, writable);
            self.stale.push(Stale::StackWords(bytes));
        }
    }

    fn load_stack(&mut self, thread: ThreadId, registers: StackRegisters) {
        self.registers = Some((thread, registers));
    }

    fn flush_stack(&mut self, thread: ThreadId) {
        if self.registers.is_some_and(|(running, _)| running == thread) {
            self.registers = None;
        }
        self.stale.push(Stale::Stack);
    }
}

/// The two bits for what a domain holds. Behind a gate the word is executable for who executes there.
fn bits_of(permission: Permission, holder: DomainId) -> Perm {
    match permission {
        Permission::None => Perm::None,
        Permission::Read => Perm::Read,
        Permission::ReadWrite => Perm::ReadWrite,
        _ if permission.executes(holder) => Perm::ExecuteRead,
        _ => Perm::None,
    }
}

const fn permission_of(perm: Perm) -> Permission {
    match perm {
        Perm::None => Permission::None,
        Perm::Read => Permission::Read,
        Perm::ReadWrite => Permission::ReadWrite,
        Perm::ExecuteRead => Permission::ExecuteRead,
    }
}
