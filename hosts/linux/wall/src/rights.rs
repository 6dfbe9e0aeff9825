//! Rights to the kernel's objects: given when a check asks for them, taken back when the object is freed.
//!
//! ```text
//!   check refuses ──► the kernel: which object is there? ──► its kind is in the policy ──► granted
//!   the module allocates ──► its object ─────────────────────────────────────────────────► granted
//!   kfree, kmem_cache_free, pages go back ──► freed ─────────────────────────────────────► taken from all modules
//! ```
//!
//! A policy's `[group]` has lists of kinds, as the kernel names them (`mullion_object` of the patch): `reads` and `writes`.

use crate::kernel::{Kernel, Object};
use crate::{WALL, journal, later, live, trees};
use mullion_word::runtime::{Domain, Granted, Host};
use mullion_word_policy::File;
use mullion_word_table::Access;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a policy says of kinds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kinds {
    /// The module's name and `_`: so the names of its own caches begin.
    prefix: String,
    reads: BTreeSet<String>,
    writes: BTreeSet<String>,
    /// What it frees of what others have allocated.
    frees: BTreeSet<String>,
    /// Caches of its own whose names do not begin so.
    caches: BTreeSet<String>,
    /// What is not there is told and granted: for a run that writes a policy.
    learns: bool,
    /// What it allocates is its own until its end.
    pub(crate) owns: bool,
}

impl Kinds {
    pub(crate) fn of(name: &str, file: &File) -> Kinds {
        let list = |name: &str| -> BTreeSet<String> {
            let found = file.groups.get(name).into_iter().flatten();
            found.cloned().collect()
        };
        Kinds {
            prefix: format!("{name}_"),
            reads: list("reads"),
            writes: list("writes"),
            frees: list("frees"),
            caches: list("caches"),
            owns: list("recovers").contains("memory"),
            learns: file.groups.contains_key("learn"),
        }
    }

    /// A kind of which the policy says that it is written, and nobody may: the running task's own state, or the processor's.
    /// What a module changes there it changes by calls, which are noted, so an ended call leaves nothing behind.
    pub(crate) fn wrong(&self) -> Option<&str> {
        let mut writes = self.writes.iter().map(String::as_str);
        writes.find(|kind| is_of_task(kind))
    }

    /// Whether an object may be written; none: not even read. Memory that another module has allocated for itself has a kind with
    /// the name of that module in front: `fat.kmalloc_8k`.
    fn right_to(&self, object: &Object) -> Option<bool> {
        let owned = || Some(format!("{}.{}", owner(object.start)?, object.kind));
        let by_kind = self.right(&object.kind);
        by_kind.or_else(|| self.right(&owned()?))
    }

    fn right(&self, kind: &str) -> Option<bool> {
        match (self.writes.contains(kind), self.reads.contains(kind)) {
            (true, _) => Some(true),
            (false, true) => Some(false),
            (false, false) => None,
        }
    }
}

/// The name of the module that has allocated what begins there for itself.
fn owner(start: u64) -> Option<String> {
    let id = objects().get(&start)?.owner?;
    live::name(id)
}

/// Of the running task, or of the processor: what the kernel counts there it believes.
fn is_of_task(kind: &str) -> bool {
    matches!(kind, "task_struct" | "thread_info" | "percpu") || kind.starts_with("task.")
}

/// What was granted of an object: to which module, and whether to write.
struct Grants {
    bytes: u64,
    kind: String,
    /// The module that has allocated it for itself: it goes back when that is ended.
    owner: Option<u32>,
    /// The module that has allocated it, and the cache that it has named.
    from: Option<(u32, Option<u64>)>,
    all: Vec<(u32, bool, Granted)>,
    /// Parts that a module may write, which may not write all of it: from where to where.
    parts: Vec<(u32, u64, u64)>,
    /// Modules whose policies name the kind, and which have handed the object to the kernel: they are granted it when they ask.
    named: Vec<u32>,
}

impl Grants {
    fn of(object: &Object) -> Grants {
        Grants {
            bytes: object.bytes,
            kind: object.kind.clone(),
            owner: None,
            from: None,
            all: Vec::new(),
            parts: Vec::new(),
            named: Vec::new(),
        }
    }
}

/// By the address where the object begins.
static OBJECTS: Mutex<BTreeMap<u64, Grants>> = Mutex::new(BTreeMap::new());

/// Rights to objects that were given, and taken back when those were freed.
pub(crate) static GIVEN: AtomicUsize = AtomicUsize::new(0);
pub(crate) static TAKEN: AtomicUsize = AtomicUsize::new(0);

fn objects() -> MutexGuard<'static, BTreeMap<u64, Grants>> {
    OBJECTS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn grant(host: Host, kernel: Kernel, domain: &Domain, object: &Object, write: bool) -> bool {
    let (start, bytes) = (object.start as usize, object.bytes as usize);
    // SAFETY: the policy gives the module this object, and what it writes there is the kernel's risk.
    let Ok(granted) = (unsafe { host.grant_for(domain, start, bytes, write) }) else {
        return false;
    };
    kernel.grants(object);
    GIVEN.fetch_add(1, Ordering::Relaxed);
    let mut objects = objects();
    let grants = objects
        .entry(object.start)
        .or_insert_with(|| Grants::of(object));
    grants.bytes = grants.bytes.max(object.bytes);
    grants.all.push((domain.id().get(), write, granted));
    true
}

/// Lets the module ask.
pub(crate) fn on_demand(host: Host, kernel: Kernel, domain: Domain, kinds: Kinds, name: String) {
    let told: Mutex<BTreeSet<(String, bool)>> = Mutex::default();
    domain.on_demand(move |address, _, write| {
        let own = kernel.object(address);
        // Another module's data is to be read alone.
        let Some(object) = own.or_else(|| live::data(address).filter(|_| !write)) else {
            return false;
        };
        let right = match kinds.right_to(&object) {
            Some(true) if object.kind.starts_with("data.") => Some(false),
            right => right,
        };
        let is_enough = right == Some(true) || right == Some(false) && !write;
        if !is_enough {
            if !kinds.learns || write && is_of_task(&object.kind) {
                return false;
            }
            let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
            if told.insert((object.kind.clone(), write)) {
                let list = if write { "writes" } else { "reads" };
                let owner = owner(object.start).map_or(String::new(), |name| name + ".");
                kernel.say(&format!("learn {name}: {list} {owner}{}", object.kind));
            }
        }
        grant(host, kernel, &domain, &object, write || right == Some(true))
    });
}

/// The object at an address becomes the module's, which has allocated it. Nothing happens for what is no object.
pub(crate) fn allocated(
    host: Host,
    kernel: Kernel,
    domain: &Domain,
    address: u64,
    cache: Option<u64>,
) {
    let found = kernel.object(address);
    let Some(object) = found.filter(|object| object.start == address) else {
        return;
    };
    grant(host, kernel, domain, &object, true);
    // Objects of other caches are parts of what the kernel has lists of.
    let is_block = object.kind.starts_with("kmalloc_") || object.kind == AREA;
    let owns = is_block && kinds().get(&domain.id().get()).is_some_and(|of| of.owns);
    if let Some(grants) = objects().get_mut(&object.start) {
        let id = domain.id().get();
        grants.from = Some((id, cache));
        if owns {
            grants.owner = Some(id);
        }
    }
}

/// The module may read the object at an address as long as it is.
pub(crate) fn shows(host: Host, kernel: Kernel, domain: &Domain, address: u64) {
    if let Some(object) = kernel.object(address) {
        grant(host, kernel, domain, &object, false);
    }
}

/// The object at an address is the module's to write. It goes back by itself, and not when the module is ended.
pub(crate) fn has(host: Host, kernel: Kernel, domain: &Domain, address: u64) {
    let object = kernel.object(address);
    if let Some(object) = object.filter(|object| !may_write(domain, object.start)) {
        grant(host, kernel, domain, &object, true);
    }
}

/// Pieces of an object are the module's, by where they begin and end, and whether to write. It frees none of that.
pub(crate) fn has_pieces(
    host: Host,
    kernel: Kernel,
    domain: &Domain,
    object: &Object,
    pieces: &[(u64, u64, bool)],
) {
    let right = |(start, end, write): &(u64, u64, bool)| {
        let bytes = end.checked_sub(*start).filter(|bytes| *bytes != 0)? as usize;
        // SAFETY: the kernel has made it for this module, and what the module writes there is the kernel's risk.
        let granted = unsafe { host.grant_for(domain, *start as usize, bytes, *write) }.ok()?;
        Some((domain.id().get(), false, granted))
    };
    let rights: Vec<(u32, bool, Granted)> = pieces.iter().filter_map(right).collect();
    kernel.grants(object);
    GIVEN.fetch_add(rights.len(), Ordering::Relaxed);
    let mut objects = objects();
    let grants = objects
        .entry(object.start)
        .or_insert_with(|| Grants::of(object));
    grants.all.extend(rights);
    let written = pieces.iter().filter(|(_, _, write)| *write);
    let part = |(start, end, _): &(u64, u64, bool)| (domain.id().get(), *start, *end);
    grants.parts.extend(written.map(part));
}

/// Whether parts of the object that begins there were the module's, and its memory has not gone back since: a device that was registered.
pub(crate) fn has_parts(domain: &Domain, address: u64) -> bool {
    let id = domain.id().get();
    let objects = objects();
    let parts = objects.get(&address).map(|grants| &grants.parts);
    parts.is_some_and(|parts| parts.iter().any(|(of, _, _)| *of == id))
}

/// What the policies of modules say, by their numbers.
static KINDS: Mutex<BTreeMap<u32, Kinds>> = Mutex::new(BTreeMap::new());

fn kinds() -> MutexGuard<'static, BTreeMap<u32, Kinds>> {
    KINDS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the policy of a module says.
pub(crate) fn has_kinds(domain: &Domain, of: &Kinds) {
    kinds().insert(domain.id().get(), of.clone());
}

/// Answers of [`has_such`], and the edition of [`OBJECTS`] for which each is true: what is asked again is found by its address.
static LATEST: Mutex<[Latest; 512]> = Mutex::new([(0, 0, 0, ""); 512]);

/// The edition, the module, the address, and what names the type.
type Latest = (u64, u32, u64, &'static str);

/// It changes when something is taken out of [`OBJECTS`].
static EDITION: AtomicU64 = AtomicU64::new(1);

fn of_latest(domain: &Domain, (address, kind): (u64, &'static str)) -> (usize, Latest) {
    // Objects lie at multiples of some hundred bytes.
    let place = (address >> 3 ^ address >> 12) as usize % 512;
    let edition = EDITION.load(Ordering::Relaxed);
    (place, (edition, domain.id().get(), address, kind))
}

/// Whether [`has_such`] has said so of this, and no object was freed since.
pub(crate) fn is_latest(domain: &Domain, what: (u64, &'static str)) -> bool {
    let (place, wanted) = of_latest(domain, what);
    LATEST.lock().unwrap_or_else(PoisonError::into_inner)[place] == wanted
}

pub(crate) fn latest(domain: &Domain, what: (u64, &'static str)) {
    let (place, found) = of_latest(domain, what);
    LATEST.lock().unwrap_or_else(PoisonError::into_inner)[place] = found;
}

/// Whether the module has an object there which is such a one: where it begins, and its kind. The kernel tells when objects are
/// freed of which something was granted, so nobody has to ask it what lies there.
pub(crate) fn has_such(
    domain: &Domain,
    address: u64,
    is_it: impl FnOnce(u64, &str) -> bool,
) -> bool {
    let id = domain.id().get();
    let objects = objects();
    let Some((start, grants)) = objects.range(..=address).next_back() else {
        return false;
    };
    let has_it = || grants.all.iter().any(|(of, _, _)| *of == id) || grants.named.contains(&id);
    address - start < grants.bytes
        && !is_frame(&grants.kind)
        && has_it()
        && is_it(*start, &grants.kind)
}

/// A page may come to belong to another file, and the kernel frees nothing: of its structure the kernel is asked each time.
fn is_frame(kind: &str) -> bool {
    kind.starts_with("frame")
}

/// The kernel is asked no more whether the module may have the object, until it is freed.
pub(crate) fn is_named(kernel: Kernel, domain: &Domain, object: &Object) {
    if is_frame(&object.kind) {
        return;
    }
    kernel.grants(object);
    let mut objects = objects();
    let grants = objects.entry(object.start);
    let grants = grants.or_insert_with(|| Grants::of(object));
    let id = domain.id().get();
    if !grants.named.contains(&id) {
        grants.named.push(id);
    }
}

/// Whether the module was granted the object, or is granted it when it asks.
pub(crate) fn may_have(domain: &Domain, object: &Object) -> bool {
    let id = domain.id().get();
    let asks = |kinds: &Kinds| kinds.learns || kinds.right_to(object).is_some();
    let has = |grants: &Grants| grants.all.iter().any(|(of, _, _)| *of == id);
    let has_it = objects().get(&object.start).is_some_and(has);
    has_it || kinds().get(&id).is_some_and(asks)
}

/// Whether the module may read, or write, a word there, or is granted it when it asks.
pub(crate) fn may(domain: &Domain, address: u64, write: bool) -> bool {
    may_bytes(domain, (address, 8), write)
}

/// The same of a byte.
pub(crate) fn may_byte(domain: &Domain, address: u64, write: bool) -> bool {
    may_bytes(domain, (address, 1), write)
}

/// Whether the module may read a word there now, without asking.
pub(crate) fn may_now(domain: &Domain, address: u64) -> bool {
    domain.view().allows(address, 8, Access::READ)
}

/// The same of so many bytes.
pub(crate) fn may_bytes(domain: &Domain, (address, bytes): (u64, u64), write: bool) -> bool {
    let access = if write { Access::WRITE } else { Access::READ };
    if domain.view().allows(address, bytes, access) {
        return true;
    }
    let object = WALL.get().and_then(|wall| wall.kernel.object(address));
    let is_inside = |object: &Object| bytes <= object.start + object.bytes - address;
    object
        .filter(is_inside)
        .is_some_and(|object| match kinds().get(&domain.id().get()) {
            Some(kinds) => match kinds.right_to(&object) {
                Some(right) => right || !write,
                None => kinds.learns,
            },
            None => false,
        })
}

/// Whether the kernel may make something of so many bytes there for the module. All of it must be memory of its own, or lie in one
/// object that it may write.
pub(crate) fn may_construct(domain: &Domain, address: u64, bytes: u64) -> bool {
    let Some(end) = address.checked_add(bytes) else {
        return false;
    };
    if domain.view().allows(address, bytes, Access::WRITE)
        || domain.has_data(address as usize, bytes as usize)
    {
        return true;
    }
    let object = WALL.get().and_then(|wall| wall.kernel.object(address));
    object.is_some_and(|object| {
        let may = || may_bytes(domain, (address, bytes), true);
        end <= object.start + object.bytes && (is_own_kind(domain, &object.kind) || may())
    })
}

/// The kind of memory whose pages lie together in the kernel's addresses alone.
pub(crate) const AREA: &str = "vmalloc";

/// The area of this kind that begins there, and its bytes.
pub(crate) fn area(address: u64) -> Option<(u64, u64)> {
    let object = WALL.get()?.kernel.object(address)?;
    (object.kind == AREA && object.start == address).then_some((object.start, object.bytes))
}

/// Frees what an ended module has allocated for itself. How many pieces that were.
pub(crate) fn free_all(kernel: Kernel, domain: &Domain) -> usize {
    let Some(kvfree) = kernel.symbol("kvfree", std::ptr::null_mut()) else {
        return 0;
    };
    // SAFETY: the kernel's function of this name takes an address of a block, or of an area.
    let kvfree: extern "C" fn(u64) = unsafe { std::mem::transmute(kvfree) };
    let id = Some(domain.id().get());
    let objects = objects();
    let own = objects.iter().filter(|(_, grants)| grants.owner == id);
    let own: Vec<u64> = own.map(|(start, _)| *start).collect();
    // `freed` comes back here.
    drop(objects);
    for start in &own {
        let area = area(*start);
        kvfree(*start);
        if let Some((start, bytes)) = area {
            freed(start, bytes);
        }
    }
    own.len()
}

/// Whether this memory is the module's to write until the kernel tells that it was freed: its own data, or within an object that
/// it was granted. What a call lends it is not.
pub(crate) fn lasts(domain: &Domain, start: u64, bytes: usize) -> bool {
    if domain.has_data(start as usize, bytes) {
        return domain.view().allows(start, bytes as u64, Access::WRITE);
    }
    let object = WALL.get().and_then(|wall| wall.kernel.object(start));
    object.is_some_and(|object| {
        let end = start + bytes as u64;
        let is_inside = end <= object.start + object.bytes;
        let objects = objects();
        let parts = objects.get(&object.start).map(|grants| &grants.parts);
        let id = domain.id().get();
        let has = |(of, from, to): &(u32, u64, u64)| *of == id && *from <= start && end <= *to;
        let is_part = parts.is_some_and(|parts| parts.iter().any(has));
        drop(objects);
        is_inside && (is_part || may_write(domain, object.start))
    })
}

/// Whether the module has allocated what begins there as plain memory.
pub(crate) fn is_plain(address: u64) -> bool {
    let objects = objects();
    let grants = objects.get(&address);
    grants.is_some_and(|grants| grants.owner.is_some())
}

/// Whether the policy lets a module read something of this kind.
pub(crate) fn names(domain: &Domain, kind: &str) -> bool {
    let kinds = kinds();
    let of = kinds.get(&domain.id().get());
    of.is_some_and(|of| of.learns || of.right(kind).is_some())
}

/// Whether objects of this kind are of a cache of the module's, by its name. The module itself has written everything that lies there.
pub(crate) fn is_own_kind(domain: &Domain, kind: &str) -> bool {
    let kinds = kinds();
    let of = kinds.get(&domain.id().get());
    of.is_some_and(|of| kind.starts_with(&of.prefix))
}

/// Whether the module may make a cache of this name: objects of that kind are its own then.
pub(crate) fn makes_kind(domain: &Domain, kind: &str) -> bool {
    let kinds = kinds();
    let of = kinds.get(&domain.id().get());
    of.is_some_and(|of| kind.starts_with(&of.prefix) || of.caches.contains(kind))
}

/// Whether a cache has inodes, by how its name ends: that of one file system does not begin with the module's name. Parts that journals have of
/// an inode are none, and names with a point are no cache's.
pub(crate) fn has_inodes(kind: &str) -> bool {
    let is_short = || kind.ends_with("_inode") && !kind.contains('.') && kind != "jbd2_inode";
    kind.ends_with("inode_cache") || is_short()
}

/// Where the inode lies in objects of a cache, by its name: its constructor makes it there in each. And which module's constructor.
static INODES: Mutex<BTreeMap<String, (u32, u64)>> = Mutex::new(BTreeMap::new());

/// A constructor makes an inode. Whether its cache has them there.
pub(crate) fn makes_inode(domain: &Domain, inode: u64) -> bool {
    let object = WALL.get().and_then(|wall| wall.kernel.object(inode));
    let is_one = |object: &Object| has_inodes(&object.kind) || is_own_kind(domain, &object.kind);
    let Some(object) = object.filter(is_one) else {
        // An inode that no cache has is none that the kernel gets.
        return true;
    };
    let mut inodes = INODES.lock().unwrap_or_else(PoisonError::into_inner);
    let here = (domain.id().get(), inode - object.start);
    let known = inodes.get(&object.kind);
    let is_right = known.is_none_or(|known| known.1 == here.1);
    // The cache of a module that is loaded again is another one.
    let is_over = known.is_some_and(|(of, _)| *of != here.0 && !live::runs(*of));
    if known.is_none() || is_over {
        inodes.insert(object.kind, here);
    }
    is_right || is_over
}

/// Where the inode of an object is that begins there. None: nobody knows one in objects of this kind.
pub(crate) fn inode_in(start: u64, kind: &str) -> Option<u64> {
    // The kernel's own cache.
    if kind == "inode_cache" {
        return Some(start);
    }
    let inodes = INODES.lock().unwrap_or_else(PoisonError::into_inner);
    inodes.get(kind).map(|(_, offset)| start + offset)
}

/// Whether the module has allocated what begins there, or may write it and takes over what others have allocated of that kind.
pub(crate) fn may_free(domain: &Domain, address: u64) -> bool {
    let id = domain.id().get();
    let kind = {
        let objects = objects();
        let Some(grants) = objects.get(&address) else {
            return false;
        };
        if grants.from.is_some_and(|(of, _)| of == id) {
            return true;
        }
        grants.kind.clone()
    };
    let kinds = kinds();
    kinds.get(&id).is_some_and(|of| of.frees.contains(&kind)) && may_write(domain, address)
}

/// Whether the module has allocated what begins there.
pub(crate) fn has_allocated(domain: &Domain, address: u64) -> bool {
    let id = domain.id().get();
    let objects = objects();
    let from = objects.get(&address).and_then(|one| one.from);
    from.is_some_and(|(of, _)| of == id)
}

/// Whether a call lends these bytes to the module, to be read alone: it may read them now, has written none of them, and does not have
/// them by anything else.
pub(crate) fn is_lent(domain: &Domain, start: u64, bytes: u64) -> bool {
    let view = domain.view();
    let is_free = |at: u64| !view.allows(start + at, 1, Access::WRITE);
    let is_read = view.allows(start, bytes, Access::READ)
        && (0..bytes).step_by(8).all(is_free)
        && is_free(bytes - 1);
    let by_kind = || {
        let object = WALL.get().and_then(|wall| wall.kernel.object(start));
        object.is_some_and(|object| {
            let kinds = kinds();
            let of = kinds.get(&domain.id().get());
            let right = of.and_then(|of| of.right_to(&object));
            drop(kinds);
            right.is_some() || has_allocated(domain, object.start)
        })
    };
    is_read && !domain.has_data(start as usize, 1) && !by_kind()
}

/// Whether the module has allocated what begins there, in this cache.
pub(crate) fn is_of_cache(domain: &Domain, address: u64, cache: u64) -> bool {
    let wanted = Some((domain.id().get(), Some(cache)));
    objects()
        .get(&address)
        .is_some_and(|one| one.from == wanted)
}

/// Whether an object that begins there was granted to the module, to write.
pub(crate) fn may_write(domain: &Domain, address: u64) -> bool {
    let id = domain.id().get();
    let objects = objects();
    let grants = objects.get(&address);
    grants.is_some_and(|grants| {
        let mut all = grants.all.iter();
        all.any(|(of, write, _)| *of == id && *write)
    })
}

/// A module has ended, and what it was granted is not kept for it.
pub(crate) fn ended(domain: &Domain) {
    let id = domain.id().get();
    EDITION.fetch_add(1, Ordering::Relaxed);
    let mut gone = Vec::new();
    objects().retain(|_, grants| {
        let (own, others) = std::mem::take(&mut grants.all)
            .into_iter()
            .partition(|(of, _, _)| *of == id);
        let _: &Vec<(u32, bool, Granted)> = &own;
        grants.all = others;
        // Its number may be another one's next.
        grants.from = grants.from.filter(|(of, _)| *of != id);
        gone.extend(own);
        !grants.all.is_empty()
    });
    Granted::end_all(gone.into_iter().map(|(_, _, granted)| granted));
}

/// Takes what lies there from all modules.
pub(crate) fn freed(start: u64, bytes: u64) {
    trees::freed(start, bytes);
    journal::freed(start, bytes);
    let armed = later::freed(start, bytes);
    if let Some(wall) = WALL.get().filter(|_| armed != 0) {
        let what = format!("{armed} armed timers or works were in memory that was freed");
        wall.kernel.say(&what);
    }
    let gone: Vec<Granted> = {
        let mut objects = objects();
        let end = start.saturating_add(bytes);
        let before = objects.range(..start).next_back();
        let reaches = before.filter(|(at, grants)| **at + grants.bytes > start);
        let first = reaches.map_or(start, |(at, _)| *at);
        let keys: Vec<u64> = objects.range(first..end).map(|(at, _)| *at).collect();
        if !keys.is_empty() {
            EDITION.fetch_add(1, Ordering::Relaxed);
        }
        let grants = keys.iter().filter_map(|at| objects.remove(at));
        let all = grants.flat_map(|grants| grants.all);
        all.map(|(_, _, granted)| granted).collect()
    };
    TAKEN.fetch_add(gone.len(), Ordering::Relaxed);
    Granted::end_all(gone);
}
