//! A module becomes a domain: mapped, relocated, its slots filled, and all of it told to the supervisor.
//!
//! ```text
//!   base                                        base + bytes          the process's thunks (`thunks.rs`)
//!   |  the module's segments, as in its file    |                     |  ...  |  this domain's  |  ...  |
//! ```

use crate::core::{Core, Instances, Life};
use crate::follow;
use crate::gates::{Import, Inner, state};
use crate::holder::Holder;
use crate::memory::{PAGE, Reserved, lock};
use crate::module::{Access, Module, Value};
use crate::note;
use crate::object;
use crate::policy::{Effect, FunctionPolicy, Policy};
use crate::rights::{self, GrantError, NOT_FURTHER, ROOT};
use crate::thunks::{Own, THUNK, Thunks, Way};
use crate::tick;
use crate::wanted::Keep;
use crate::world::world;
use mullion_plain::Plain;
use mullion_supervisor::{DomainId, Error, GroupId, Permission, Range, Subject, Supervisor};
use mullion_word_abi::{
    SLOT_ENTER, SLOT_FIRST_IMPORT, SLOT_LEAVE, SLOT_MARK, SLOT_READ, SLOT_UNWIND,
};
use mullion_word_table::{Code, CodeError, Table};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CString;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use thiserror::Error;

/// Why there is no domain.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The host has no such symbol.
    #[error("{module} needs `{symbol}`, which the host does not have")]
    Missing {
        /// Which module.
        module: Plain,
        /// Which symbol.
        symbol: Plain,
    },
    /// A policy is for a function that the module does not export.
    #[error("the policy speaks of `{name}`, which {module} does not export")]
    NoExport {
        /// Which module.
        module: Plain,
        /// The name in the policy.
        name: String,
    },
    /// Two gates lead to one body, and only one of them has this policy.
    #[error(
        "{0} has two exports with one body, at {1:#x}, and the policy says different things of them"
    )]
    SharedBody(Plain, u64),
    /// The module is larger than its limit.
    #[error("{module} has {bytes} bytes of code and data, and {limit} is its limit")]
    TooLarge {
        /// Which module.
        module: Plain,
        /// How large it is.
        bytes: u64,
        /// [`Limits::image`](crate::Limits::image).
        limit: u64,
    },
    /// A policy speaks of an argument that is in no register, so that nobody would look at it.
    #[error(
        "the policy of `{name}` speaks of argument {argument}; only 0 to 5, in registers, can have effects"
    )]
    OnStack {
        /// Which function.
        name: String,
        /// Which argument, from 0.
        argument: u8,
    },
    /// An effect has a size that it cannot have.
    #[error(
        "the policy of `{name}` has {effect:?}: lists and texts are read, no vectors are handed over, and what the host gets a copy of \
         has one effect"
    )]
    Misfit {
        /// Which function.
        name: String,
        /// Its effect.
        effect: Box<Effect>,
    },
    /// No symbol table says how large a variable is.
    #[error(
        "the policy gives the host's variable `{0}`, whose size no symbol table has; say it there"
    )]
    NoSize(String),
    /// The supervisor refuses.
    #[error("{0}")]
    Refused(#[from] GrantError),
    /// The checked ranges are wrong.
    #[error("{0}")]
    Code(#[from] CodeError),
    /// The system refuses memory.
    #[error("no memory for the module: {0}")]
    Memory(#[from] std::io::Error),
}

impl From<Error> for LoadError {
    fn from(error: Error) -> LoadError {
        LoadError::Refused(error.into())
    }
}

/// Where the host's dynamic linker finds a symbol.
pub(crate) fn dlsym(name: &str) -> Option<usize> {
    let name = CString::new(name).ok()?;
    // SAFETY: the name ends with a zero.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found as usize)
}

pub(crate) fn load(
    module: &Arc<Module>,
    policy: Policy,
    learning: Option<note::Hook>,
    resolve: &mut dyn FnMut(&str) -> Option<usize>,
) -> Result<&'static Core, LoadError> {
    let parts = &module.parts;
    let offers = policy.offers.iter();
    let offers = offers.filter_map(|(name, offer)| Some((name, offer.policy.as_ref()?)));
    for (name, function) in offers.chain(&policy.exports) {
        if let Some(argument) = function.beyond() {
            let name = name.clone();
            return Err(LoadError::OnStack { name, argument });
        }
        if let Some(effect) = function.misfit() {
            let name = name.clone();
            let effect = Box::new(effect);
            return Err(LoadError::Misfit { name, effect });
        }
    }
    // Before anything is reserved or written: the table takes memory for each word that is told.
    let sizes = parts.segments.iter().map(|segment| segment.bytes);
    let (bytes, limit) = (sizes.sum(), policy.limits.image);
    if bytes > limit {
        let module = module.name.clone();
        return Err(LoadError::TooLarge {
            module,
            bytes,
            limit,
        });
    }
    let memory = Reserved::new(module.bytes)?;
    let slots = SLOT_FIRST_IMPORT + parts.imports.len() as u64;
    let thunks = Own::take(&world().thunks, slots)?;
    let base = memory.base();
    let exports = exports(module, &policy)?;
    let symbols = symbols(module, base, resolve)?;
    let imports = imports(module, &policy, learning.is_some(), resolve)?;
    let data = data(module, &policy, resolve)?;

    let whole = Range::bytes(base, memory.bytes()).map_err(Error::Range)?;
    let id = subdivide(whole)?;
    let undo = |error: LoadError| {
        let _gone = world().supervisor().pd_free(&ROOT, id);
        Err(error)
    };
    let Some(view) = world().supervisor().mechanism().view(id) else {
        return undo(Error::NoRoom { words: 0 }.into());
    };
    let instances = match policy.has_instances() {
        true => match group(id) {
            Ok(group) => Some(Instances::new(group)),
            Err(error) => return undo(error.into()),
        },
        false => None,
    };
    let subject = instances.as_ref().map_or(id.into(), |all| all.group.into());
    let holder = Holder::new(id, subject, view);
    let mut bits = 0;
    let other_gates = (policy.stacked != 0).then(|| FunctionPolicy {
        error: policy.error,
        ..FunctionPolicy::of(&[]).stacked(policy.stacked)
    });
    if !exports.is_empty() || other_gates.is_some() || imports.iter().any(Import::calls_back) {
        bits |= state::POLICY;
    }
    // A learning domain remembers the arguments of its calls, and each call may be for another instance.
    if learning.is_some() || instances.is_some() {
        bits |= state::SLOW;
    }
    // An instance runs with rights of its own, of which the steps would not tell.
    if follow::is_on() && instances.is_none() {
        bits |= state::FOLLOWED;
    }
    if let Some(limit) = policy.limits.time {
        bits |= state::UNWATCHED;
        tick::expect(limit);
    }
    if parts.control_words {
        bits |= state::CONTROL_WORDS;
    }
    let text = parts
        .segments
        .iter()
        .filter(|s| s.access == Access::Execute);
    let text_start = text.clone().map(|s| base + s.address).min().unwrap_or(base);
    let text_end = text
        .map(|s| base + s.address + s.bytes)
        .max()
        .unwrap_or(base);
    let checked = parts.checked.iter();
    let checked = checked.map(|r| (base + r.start) as usize..(base + r.end) as usize);
    let code = match Code::new(text_start as usize..text_end as usize, checked.collect()) {
        Ok(code) => code,
        Err(error) => return undo(error.into()),
    };
    // What gates read of a domain stays for the life of the process: a pointer to its functions may be called at any time.
    let core: &'static mut Core = Box::leak(Box::new(Core {
        inner: Inner {
            index: u32::from(holder.view.number() - mullion_word_abi::OWN_FIRST),
            state: AtomicU32::new(bits),
            allowed: AtomicPtr::new(std::ptr::null_mut()),
            core: std::ptr::null(),
            bias: AtomicPtr::new(std::ptr::null_mut()),
            edition: AtomicU64::new(0),
        },
        id,
        holder,
        module: Arc::clone(module),
        memory,
        base,
        text: text_start..text_end,
        imports,
        symbols,
        limits: policy.limits,
        error: policy.error,
        stays_mapped: policy.stays_mapped,
        tag: AtomicU64::new(0),
        exports,
        other_gates,
        life: Mutex::new(Life::default()),
        keep: Keep::default(),
        seats: Mutex::default(),
        instances,
        reports: Mutex::default(),
        learning,
        demand: OnceLock::new(),
        learned: Mutex::default(),
        offered: Mutex::default(),
        points: OnceLock::new(),
    }));
    core.inner.core = (&raw const *core).cast();
    let core: &'static Core = core;
    let allowed = allowed(core.imports.iter());
    core.inner.allowed.store(allowed, Ordering::Release);
    lock(&core.life).code = Some(code.load());
    let made = map_text(core)
        .and_then(|()| write_thunks(core, &thunks))
        .map_err(LoadError::from)
        .and_then(|()| core.map_data(Some(&thunks)).map_err(LoadError::from))
        .and_then(|()| tell(core, &data).map_err(LoadError::from));
    if let Err(error) = made {
        return undo(error);
    }
    lock(&core.life).thunks = Some(thunks);
    lock(&world().domains).insert(core);
    Ok(core)
}

/// A domain that owns `range`. Collects what ended domains have left, if there is no number for it.
fn subdivide(range: Range) -> Result<DomainId, Error> {
    let mut supervisor = world().supervisor();
    match supervisor.pd_subdivide(&ROOT, range, Permission::None) {
        Err(Error::NoRoom { .. }) => {
            Table::collect(&mut supervisor);
            supervisor.pd_subdivide(&ROOT, range, Permission::None)
        }
        other => other,
    }
}

/// A group with a module's domain, for what its instances have, too.
fn group(id: DomainId) -> Result<GroupId, Error> {
    let mut supervisor = world().supervisor();
    let group = supervisor.group_create(&ROOT)?;
    supervisor.group_join(&id, group)?;
    Ok(group)
}

/// Policies of exports by the address of their bodies in the file.
fn exports(module: &Module, policy: &Policy) -> Result<BTreeMap<u64, FunctionPolicy>, LoadError> {
    let parts = &module.parts;
    let mut found = BTreeMap::new();
    let mut named = BTreeSet::new();
    for (name, policy) in &policy.exports {
        let symbol = parts.symbols.iter().find(|symbol| symbol.name == *name);
        let value = symbol.and_then(|symbol| symbol.value);
        let gate = parts.gates.iter().find(|gate| Some(gate.address) == value);
        let Some(gate) = gate else {
            return Err(LoadError::NoExport {
                module: module.name.clone(),
                name: name.clone(),
            });
        };
        named.insert(gate.address);
        let other = found.insert(gate.body, policy.clone());
        if other.is_some_and(|other| other != *policy) {
            return Err(LoadError::SharedBody(module.name.clone(), gate.body));
        }
    }
    // A gate says no more than where its body is. So one body has one policy, by whatever gate it is reached.
    let mut gates = parts.gates.iter();
    match gates.find(|gate| found.contains_key(&gate.body) && !named.contains(&gate.address)) {
        Some(gate) => Err(LoadError::SharedBody(module.name.clone(), gate.body)),
        None => Ok(found),
    }
}

/// The addresses of all dynamic symbols.
fn symbols(
    module: &Module,
    base: u64,
    resolve: &mut dyn FnMut(&str) -> Option<usize>,
) -> Result<Vec<u64>, LoadError> {
    let parts = &module.parts;
    let mut used = vec![false; parts.symbols.len()];
    for relocation in &parts.relocations {
        if let Value::Symbol(at) = relocation.value
            && let Some(used) = used.get_mut(at)
        {
            *used = true;
        }
    }
    let address = |(symbol, used): (&crate::module::Symbol, bool)| match symbol.value {
        // The file may say anything; the module alone relies on it.
        Some(value) => Ok(base.wrapping_add(value)),
        None if !used => Ok(0),
        None => match resolve(&symbol.name) {
            Some(address) => Ok(address as u64),
            None if symbol.weak => Ok(0),
            None => Err(LoadError::Missing {
                module: module.name.clone(),
                symbol: symbol.name.clone(),
            }),
        },
    };
    parts.symbols.iter().zip(used).map(address).collect()
}

/// What the slots of imports lead to. A function that is not offered leads to a refusal.
fn imports(
    module: &Module,
    policy: &Policy,
    learns: bool,
    resolve: &mut dyn FnMut(&str) -> Option<usize>,
) -> Result<Box<[Import]>, LoadError> {
    let mut found: Vec<Import> = Vec::new();
    for name in &module.parts.imports {
        let Some(offer) = policy.offers.get(name) else {
            let address = learns.then(|| resolve(name)).flatten();
            found.push(match address {
                Some(address) => Import::learned(name, address as u64),
                None => Import::refused(name),
            });
            continue;
        };
        let address = offer.address.or_else(|| resolve(name).map(|at| at as u64));
        let target = address.ok_or_else(|| LoadError::Missing {
            module: module.name.clone(),
            symbol: name.as_str().into(),
        })?;
        found.push(Import::new(
            name,
            target,
            offer.policy.clone(),
            module.parts.control_words,
        ));
    }
    // Offers that the module does not import by name can be called by address.
    for (name, offer) in &policy.offers {
        let address = offer.address.or_else(|| resolve(name).map(|at| at as u64));
        if let Some(target) = address.filter(|_| !module.parts.imports.contains(name)) {
            found.push(Import::new(
                name,
                target,
                offer.policy.clone(),
                module.parts.control_words,
            ));
        }
    }
    Ok(found.into_boxed_slice())
}

/// Where the host's variables are that the policy names, and whether they may be written.
fn data(
    module: &Module,
    policy: &Policy,
    resolve: &mut dyn FnMut(&str) -> Option<usize>,
) -> Result<Vec<(Range, bool)>, LoadError> {
    let mut found = Vec::new();
    for (name, data) in &policy.data {
        let missing = || LoadError::Missing {
            module: module.name.clone(),
            symbol: name.as_str().into(),
        };
        let address = resolve(name).ok_or_else(missing)? as u64;
        let bytes = data.bytes.or_else(|| object::size_of_symbol(address));
        let bytes = bytes.ok_or_else(|| LoadError::NoSize(name.clone()))?;
        found.push((rights::words(address, bytes)?, data.write));
    }
    Ok(found)
}

impl Import {
    /// With `words`, the module may have changed the control words of floating point, and the host needs its own.
    pub(crate) fn new(
        name: &str,
        target: u64,
        policy: Option<FunctionPolicy>,
        words: bool,
    ) -> Import {
        let gate = policy.is_some().then(|| behind_gate(target)).flatten();
        Import {
            target,
            slow: (policy.is_some() || words || follow::is_on()).into(),
            policy: policy.map(FunctionPolicy::leaving_last),
            name: name.to_owned(),
            is_learned: false,
            gate,
        }
    }

    /// Whether its policy says what calls of functions mean that are passed to it.
    fn calls_back(&self) -> bool {
        let policy = self.policy.as_ref();
        policy.is_some_and(|policy| !policy.callbacks.is_empty())
    }

    /// It is not offered: calls of it are told, and made.
    pub(crate) fn learned(name: &str, target: u64) -> Import {
        Import {
            target,
            slow: 1,
            policy: None,
            name: name.to_owned(),
            is_learned: true,
            gate: None,
        }
    }

    /// It leads to a refusal by name.
    pub(crate) fn refused(name: &str) -> Import {
        Import {
            target: 0,
            slow: 1,
            policy: None,
            name: name.to_owned(),
            is_learned: false,
            gate: None,
        }
    }
}

/// The domain whose switch gate is there, and where its body is.
pub(crate) fn behind_gate(address: u64) -> Option<(&'static Inner, u64)> {
    let callee = owner_of_gate(address)?;
    let gate = callee.module.gate(address.wrapping_sub(callee.base))?;
    Some((&callee.inner, callee.base + gate.body))
}

/// The table that `mullion_word_leave_any` looks up: a mask, then pairs of an address and its import. Kept for ever.
fn allowed<'a>(imports: impl Iterator<Item = &'a Import>) -> *mut u64 {
    let all = imports.filter(|import| import.target != 0);
    allowed_at(all.map(|import| (import.target, import)).collect())
}

/// The same of imports with the addresses that calls of them have. Later ones come first.
fn allowed_at(all: Vec<(u64, &Import)>) -> *mut u64 {
    let size = (2 * all.len() + 1).next_power_of_two();
    let mut table = vec![0u64; 1 + 2 * size];
    table[0] = size as u64 - 1;
    for (address, import) in all {
        let mut at = (address >> 4) as usize & (size - 1);
        while table[1 + 2 * at] != 0 && table[1 + 2 * at] != address {
            at = (at + 1) & (size - 1);
        }
        table[1 + 2 * at] = address;
        table[2 + 2 * at] = std::ptr::from_ref(import) as u64;
    }
    Box::leak(table.into_boxed_slice()).as_mut_ptr()
}

/// From now on the domain's calls of these addresses lead to these functions of the host. A table that was in force
/// before stays in memory: a gate may read it.
pub(crate) fn offer(core: &Core, calls: Vec<(u64, &'static Import)>) {
    if calls.iter().any(|(_, import)| import.calls_back()) {
        let state = &core.inner.state;
        state.fetch_or(state::POLICY, Ordering::SeqCst);
    }
    let mut offered = lock(&core.offered);
    offered.extend(calls);
    let imports = core.imports.iter().filter(|import| import.target != 0);
    let first = imports.map(|import| (import.target, import));
    let table = allowed_at(first.chain(offered.iter().copied()).collect());
    core.inner.allowed.store(table, Ordering::Release);
}

fn map_text(core: &Core) -> std::io::Result<()> {
    for segment in &core.module.parts.segments {
        let protection = match segment.access {
            Access::Write => continue,
            Access::Read => libc::PROT_READ,
            Access::Execute => libc::PROT_READ | libc::PROT_EXEC,
        };
        let bytes = segment.bytes.next_multiple_of(PAGE);
        let at = core.base + segment.address;
        core.memory
            .map_file(at, bytes, protection, &core.module.file, segment.address)?;
    }
    Ok(())
}

/// What the slots lead to.
fn write_thunks(core: &Core, own: &Own) -> std::io::Result<()> {
    let thunks = &world().thunks;
    let inner = std::ptr::from_ref(&core.inner) as u64;
    let first = [
        (SLOT_ENTER, Way::Enter),
        (SLOT_LEAVE, Way::LeaveAny),
        (SLOT_MARK, Way::Mark),
        (SLOT_UNWIND, Way::Unwind),
        (SLOT_READ, Way::Read),
    ];
    let mut code = vec![0xcc; (SLOT_FIRST_IMPORT * THUNK) as usize];
    for (slot, way) in first {
        let place = (slot * THUNK) as usize..((slot + 1) * THUNK) as usize;
        code[place].copy_from_slice(&thunks.thunk(own.at(slot), inner, way));
    }
    let imports = core.imports.iter().take(core.module.parts.imports.len());
    for (import, slot) in imports.zip(SLOT_FIRST_IMPORT..) {
        let is_direct = import.target != 0 && import.policy.is_none();
        let is_gate = is_direct && owner_of_gate(import.target).is_some();
        code.extend(match is_gate {
            true => Thunks::straight(import.target),
            false => thunks.thunk(own.at(slot), std::ptr::from_ref(import) as u64, Way::Leave),
        });
    }
    own.write(code)
}

/// The domain whose switch gate is at `address`.
pub(crate) fn owner_of_gate(address: u64) -> Option<&'static Core> {
    let owner = lock(&world().domains).at(address)?;
    owner.module.is_gate(address - owner.base).then_some(owner)
}

impl Core {
    /// Fresh data: mapped and relocated. What becomes read-only is made with the first one, with the slots in it, and stays: a gate
    /// may be called at any time, and jumps to what its slot says.
    pub(crate) fn map_data(&self, first: Option<&Own>) -> std::io::Result<()> {
        let (parts, base) = (&self.module.parts, self.base);
        let both = libc::PROT_READ | libc::PROT_WRITE;
        let stays = match &parts.relro {
            Some(fixed) if first.is_none() => fixed.clone(),
            _ => 0..0,
        };
        for segment in parts.segments.iter().filter(|s| s.access == Access::Write) {
            let (start, end) = (
                segment.address,
                segment.address + segment.bytes.next_multiple_of(PAGE),
            );
            for part in [
                start..stays.start.clamp(start, end),
                stays.end.clamp(start, end)..end,
            ] {
                if !part.is_empty() {
                    let (at, bytes) = (base + part.start, part.end - part.start);
                    let file = &self.module.file;
                    self.memory.map_file(at, bytes, both, file, part.start)?;
                }
            }
        }
        let put = |at: u64, value: u64| {
            // SAFETY: `Module::new` has seen that it lies in a segment that was just mapped to be written, and no
            // code of the domain runs.
            unsafe { ((base + at) as *mut u64).write_unaligned(value) };
        };
        for relocation in &parts.relocations {
            // `Module::from_parts` has seen that it lies within these pages, or outside of them.
            if stays.contains(&relocation.at) {
                continue;
            }
            let value = match relocation.value {
                Value::Base => base,
                Value::Symbol(at) => self.symbols.get(at).copied().unwrap_or(0),
            };
            put(relocation.at, value.wrapping_add_signed(relocation.addend));
        }
        let Some(thunks) = first else {
            return Ok(());
        };
        let imports = SLOT_FIRST_IMPORT..SLOT_FIRST_IMPORT + parts.imports.len() as u64;
        for slot in (SLOT_ENTER..=SLOT_READ).chain(imports) {
            put(parts.slots.start + 8 * slot, thunks.at(slot));
        }
        match &parts.relro {
            Some(fixed) if !fixed.is_empty() => {
                self.memory
                    .protect(base + fixed.start, fixed.end - fixed.start, libc::PROT_READ)
            }
            _ => Ok(()),
        }
    }
}

/// Who may do what: the module with its own memory, others with its gates, the module with the host's functions.
fn tell(core: &Core, data: &[(Range, bool)]) -> Result<(), GrantError> {
    let mut supervisor = world().supervisor();
    let (parts, base, id) = (&core.module.parts, core.base, core.id);
    let range = |at: u64, bytes: u64| Range::bytes(base + at, bytes).map_err(Error::Range);
    for segment in &parts.segments {
        let permission = match segment.access {
            Access::Read => Permission::Read,
            Access::Execute => Permission::ExecuteRead,
            Access::Write => Permission::ReadWrite,
        };
        let whole = range(segment.address, segment.bytes.next_multiple_of(PAGE))?;
        supervisor.mprot(&id, whole, permission)?;
        share(&mut supervisor, core, whole, permission)?;
    }
    if let Some(fixed) = parts.relro.as_ref().filter(|fixed| !fixed.is_empty()) {
        let words = range(fixed.start, fixed.end - fixed.start)?;
        supervisor.mprot(&id, words, Permission::Read)?;
        share(&mut supervisor, core, words, Permission::Read)?;
    }
    for (range, write) in data {
        rights::raise_for_good(&mut supervisor, &core.holder, *range, rights::right(*write))?;
    }
    for gate in &parts.gates {
        let (word, permission) = (range(gate.address, 4)?, Permission::SwitchGate { to: id });
        supervisor.mprot(&id, word, permission)?;
        share(&mut supervisor, core, word, permission)?;
    }
    let offered = |import: &&Import| import.target != 0 && !import.is_learned;
    for import in core.imports.iter().filter(offered) {
        match owner_of_gate(import.target) {
            // By its address, too, it leads to what its policy says.
            Some(callee) if import.gate.is_some() => {
                let word = range_of(import.target)?;
                let (to, leave) = (core.holder.subject, Permission::ReturnGate);
                supervisor.mprot_export_up_to(&callee.id, to, word, leave, NOT_FURTHER)?;
            }
            Some(callee) => {
                let to = core.holder.subject;
                export_gate(&mut supervisor, to, callee.id, import.target)?;
            }
            None => {
                let word = rights::words(import.target, 1)?;
                // A host without rights to its own function cannot give one on.
                let to = core.holder.subject;
                supervisor.mprot_export(&ROOT, to, word, Permission::ReturnGate)?;
            }
        }
    }
    Ok(())
}

/// The word of a gate.
fn range_of(gate: u64) -> Result<Range, Error> {
    Range::bytes(gate, 4).map_err(Error::Range)
}

/// What a module has of its own, its instances have, too.
fn share(
    supervisor: &mut Supervisor<Table>,
    core: &Core,
    range: Range,
    permission: Permission,
) -> Result<(), Error> {
    match &core.instances {
        Some(all) => {
            supervisor.mprot_export_up_to(&core.id, all.group, range, permission, NOT_FURTHER)
        }
        None => Ok(()),
    }
}

/// `from` may enter `to` at this gate.
pub(crate) fn export_gate(
    supervisor: &mut Supervisor<Table>,
    from: Subject,
    to: DomainId,
    gate: u64,
) -> Result<(), Error> {
    let word = range_of(gate)?;
    let permission = Permission::SwitchGate { to };
    supervisor.mprot_export_up_to(&to, from, word, permission, NOT_FURTHER)
}
