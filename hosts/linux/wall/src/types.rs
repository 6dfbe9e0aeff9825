//! Arguments of functions that a policy trusts: a pointer has to be to an object of the right kind, which the module may have.
//!
//! ```text
//!   kernel.types: new_inode: super_block      by the kernel's own headers (src/prototypes.rs)
//!   module ──► gate ──► a mediator of this function ──► is it a super block of the module's? ──► new_inode
//! ```

use crate::hands::{self, Hands};
use crate::journal::Thing;
use crate::kernel::Object;
use crate::lends::{self, Lends};
use crate::{WALL, costs, disks, formats, journal, packets, registrations, rights};
use mullion_word::runtime::{Domain, caller, refuse};
use mullion_word_table::Access;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

const TYPES: &str = include_str!("../../kernel.types");

/// What an argument has to be.
#[derive(Clone, Copy)]
enum Type {
    /// No pointer, or one at which somebody else looks: an effect of a policy, or another mediator.
    Any,
    /// Nothing but null.
    Null,
    /// The beginning of an object of a kind that begins, or ends, so.
    Object(&'static str),
    /// Within an object of such a kind.
    Within(&'static str),
    /// The beginning of an object of a kind that begins so, or within it. The module has not allocated it, and needs no right to it: it
    /// has it from the kernel.
    Foreign(&'static str, bool),
    /// An inode in an object of a cache for inodes, or of one of the module's own caches.
    Inode,
    /// The mapping of such a one, or of a block device.
    Mapping,
    /// A byte that the module may read now, or write.
    Byte,
    Stored,
    /// A format, whose conversions say what the arguments behind it are; and the gate's copy of one.
    Format,
    Copied,
    /// A word that it may read.
    Readable,
    /// What the module may write.
    Writable,
    /// So many bytes that it may write, or that lie in an object of one of its own caches: what a constructor is called with is
    /// granted to nobody yet.
    Constructed(u64),
    /// So many bytes that it may write.
    Written(u64),
    /// So many bytes that a call lends to the module to be read. The kernel follows what lies there: so the module can have written
    /// none of it.
    Lent(u64, Shape),
    /// A structure in which the module has made a plan to read pages of its own.
    Readahead,
    /// A digest that is being made, which names an algorithm that the module has got.
    Digest,
    /// What keeps a mounted file system of the module's from being frozen.
    OfSuper,
    /// Two words between whose addresses a text lies that the module may read.
    Between,
    /// A word that leads to a text which the module may write to its end.
    Texts,
    /// So many functions of the module, or nulls, in its own constants.
    Functions(u64),
    /// A function of the module.
    Code,
    /// The kernel's structure of the module.
    This,
    /// A table of characters that another one has registered.
    Characters,
    /// A name space of users.
    Users,
    /// A lock of so many bytes that the module may write, or a variable of the kernel that its policy names.
    Lock(u64),
    /// A number of 32 bits that is not below zero, and not large: the kernel adds it to a size.
    Count,
    /// A list of a file system's options: each names its parser, which the kernel calls.
    Options,
    /// Where messages about options go: what the kernel has made for that, or nowhere.
    OptionLog,
    /// A packet of the module's.
    Packet,
    /// A network device of the module's.
    Device,
    /// A disk of the module's, and its queue.
    Disk,
    Queue,
}

/// What is looked at in a structure that is lent: two of them have as many bytes.
#[derive(Clone, Copy)]
enum Shape {
    Plain,
    /// It begins with an open file.
    OfFile,
    /// It begins with a kind of vectors, and with yes or no.
    Vectors,
    /// Its second word is a mapping.
    OfMapping,
}

impl Type {
    /// None: nothing is known of pointers to such a structure, so nobody can say what may be handed on there.
    fn of(structure: &str) -> Option<Type> {
        if let Some(bytes) = structure.strip_prefix("constructed.") {
            return Some(Type::Constructed(bytes.parse().ok()?));
        }
        Some(match structure {
            "-" | BY_ADDRESS => Type::Any,
            "null" => Type::Null,
            // An inode is a part of its file system's object.
            "inode" => Type::Inode,
            "address_space" => Type::Mapping,
            "super_block" => Type::Object("kmalloc_2k"),
            "dentry" => Type::Object("dentry"),
            "buffer_head" => Type::Object("buffer_head"),
            "file" => Type::Object("filp"),
            "page" | "folio" => Type::Object("frame"),
            "block_device" => Type::Within("bdev_cache"),
            "seq_file" => Type::Foreign("seq_file", false),
            "fs_context" => Type::Foreign("kmalloc_", false),
            "fc_log" => Type::Foreign("kmalloc_96", false),
            "percpu_rw_semaphore" => Type::OfSuper,
            // What the kernel has of one that the module has registered.
            "file_system_type" => Type::Object("file_system_type"),
            "nls_table" => Type::Characters,
            "module" => Type::This,
            "user_namespace" => Type::Users,
            "mutex" => Type::Lock(24),
            "rw_semaphore" => Type::Lock(32),
            "count" => Type::Count,
            "fs_parameter_spec" => Type::Options,
            "p_log" => Type::OptionLog,
            "fs_parameter" => Type::Lent(40, Shape::Plain),
            "fs_parse_result" => Type::Written(16),
            "ratelimit_state" => Type::Written(40),
            "substring_t" => Type::Between,
            "number" => Type::Written(4),
            "out" | "xxh64_state" => Type::Writable,
            "text" | "memory" => Type::Byte,
            "texts" => Type::Texts,
            "format" => Type::Format,
            "stored" => Type::Stored,
            "code" => Type::Code,
            "sk_buff" => Type::Packet,
            "net_device" => Type::Device,
            "gendisk" => Type::Disk,
            "request_queue" => Type::Queue,
            "kiocb" => Type::Lent(48, Shape::OfFile),
            "iov_iter" => Type::Lent(40, Shape::Vectors),
            "writeback_control" => Type::Lent(48, Shape::Plain),
            "readahead_control" => Type::Lent(56, Shape::OfMapping),
            "fiemap_extent_info" => Type::Lent(24, Shape::Plain),
            "own_readahead_control" => Type::Readahead,
            "shash_desc" => Type::Digest,
            "iomap_ops" => Type::Functions(2),
            "kstat" => Type::Written(152),
            "iattr" => Type::Written(80),
            "fileattr" => Type::Written(28),
            "msdos_dir_entry" | "fid" | "skb_shared_hwtstamps" => Type::Readable,
            // Their mediators look (allocators.rs). The last one is followed by nobody in this configuration.
            "bio" | "blk_plug" | "crypto_tfm" | "crypto_alg" | "shash_alg" | "scomp_alg"
            | "notifier_block" | "rtnl_link_ops" | "kmem_cache" | "radix_tree_root"
            | "rcu_head" | "timer_list" | "work_struct" | "delayed_work" | "workqueue_struct"
            | "lock_class_key" => Type::Any,
            _ => return None,
        })
    }

    fn fits(self, domain: &Domain, pointer: u64) -> bool {
        match self {
            Type::Any | Type::Copied => true,
            Type::Null => false,
            Type::Foreign(kind, within) => is_foreign(domain, pointer, kind, within),
            Type::Written(bytes) => domain.view().allows(pointer, bytes, Access::WRITE),
            Type::Lent(bytes, shape) => {
                rights::is_lent(domain, pointer, bytes) && has_shape(domain, pointer, shape)
            }
            Type::Readahead => is_readahead(domain, pointer),
            Type::Digest => {
                let may = |bytes| domain.view().allows(pointer, bytes, Access::WRITE);
                // The algorithm begins with how much it writes behind that word.
                let bytes = || 8 + (word(word(pointer)) & u64::from(u32::MAX));
                may(8) && journal::holds(domain, Thing::Hash, word(pointer)) && may(bytes())
            }
            Type::OfSuper => registrations::is_of_super(domain, pointer),
            Type::Texts => {
                let is_its = domain.view().allows(pointer, 8, Access::WRITE);
                is_its && is_text(domain, word(pointer))
            }
            Type::Functions(count) => {
                let bytes = 8 * count as usize;
                let is_one = |at: u64| match word(pointer + 8 * at) {
                    0 => true,
                    function => domain.has_function(function as usize),
                };
                domain.has_data(pointer as usize, bytes) && (0..count).all(is_one)
            }
            Type::This => is_module(domain, pointer),
            Type::Characters => is_characters(pointer),
            Type::Users => is_users(pointer),
            // What it says is looked at behind this.
            Type::Format | Type::Byte => rights::may_byte(domain, pointer, false),
            Type::Stored => rights::may_byte(domain, pointer, true),
            Type::Readable => rights::may(domain, pointer, false),
            Type::Code => domain.has_function(pointer as usize),
            Type::Writable => rights::may(domain, pointer, true),
            Type::Constructed(bytes) => rights::may_construct(domain, pointer, bytes),
            Type::Between => {
                domain.view().allows(pointer, 16, Access::READ) && {
                    let (start, end) = (word(pointer), word(pointer + 8));
                    start == end || start < end && lends::may(domain, start, end - start, false)
                }
            }
            Type::Count => (0..=1 << 20).contains(&(pointer as i32)),
            Type::Options => are_options(domain, pointer),
            Type::OptionLog => {
                // What lies there is `struct fc_log`, which the module has from nobody else.
                let is_log = |log: u64| log == 0 || is_foreign(domain, log, "kmalloc_96", false);
                domain.view().allows(pointer, 16, Access::READ) && is_log(word(pointer + 8))
            }
            Type::Lock(bytes) => {
                let object = || WALL.get().and_then(|wall| wall.kernel.object(pointer));
                let is_named = |object: Object| {
                    let is_variable = object.kind.starts_with("variable.");
                    is_variable && object.start == pointer && rights::names(domain, &object.kind)
                };
                rights::may_bytes(domain, (pointer, bytes), true) || object().is_some_and(is_named)
            }
            Type::Packet => packets::is_its(domain, pointer),
            Type::Device => is_device(domain, pointer),
            Type::Disk => journal::holds(domain, Thing::Disk, pointer),
            Type::Queue => disks::is_queue(domain, pointer),
            Type::Inode => has(domain, (pointer, "inode"), |start, kind| {
                let is_one = rights::has_inodes(kind) || rights::is_own_kind(domain, kind);
                is_one && rights::inode_in(start, kind) == Some(pointer)
            }),
            Type::Mapping => has(domain, (pointer, "mapping"), |start, kind| {
                let is_one = rights::has_inodes(kind) || rights::is_own_kind(domain, kind);
                let of_inode = || registrations::mapping_of(rights::inode_in(start, kind)?);
                let mapping = match kind {
                    "bdev_cache" => registrations::mapping_of_device(start),
                    _ => is_one.then(of_inode).flatten(),
                };
                mapping == Some(pointer)
            }),
            Type::Object(wanted) => has(domain, (pointer, wanted), |start, kind| {
                start == pointer && (kind.starts_with(wanted) || kind.ends_with(wanted))
            }),
            // Nothing is both of this type and of the one above.
            Type::Within(wanted) => has(domain, (pointer, wanted), |_, kind| {
                kind.starts_with(wanted) || kind.ends_with(wanted)
            }),
        }
    }
}

/// Whether it is such an object of the module's, by the name that kernel.types has.
pub(crate) fn is_a(domain: &Domain, structure: &str, pointer: u64) -> bool {
    Type::of(structure).is_some_and(|one| one.fits(domain, pointer))
}

/// A word of memory that is there: what the module may read, or what the kernel has made.
fn word(address: u64) -> u64 {
    // SAFETY: the caller has found that the module may read it, or that it lies in the module's data.
    unsafe { (address as *const u64).read_unaligned() }
}

/// Whether the kernel has made it: an object of a kind that begins so, which the module has not allocated.
fn is_foreign(domain: &Domain, pointer: u64, kind: &str, within: bool) -> bool {
    let object = WALL.get().and_then(|wall| wall.kernel.object(pointer));
    object.is_some_and(|object| {
        let is_it = object.kind.starts_with(kind) && (within || object.start == pointer);
        is_it && !rights::has_allocated(domain, object.start)
    })
}

/// Whether what is lent looks so. The module cannot have written it.
fn has_shape(domain: &Domain, pointer: u64, shape: Shape) -> bool {
    let object = |at| WALL.get().and_then(|wall| wall.kernel.object(at));
    match shape {
        Shape::Plain => true,
        Shape::OfFile => {
            let file = word(pointer);
            object(file).is_some_and(|one| one.kind == "filp" && one.start == file)
        }
        Shape::Vectors => {
            let [kind, rest @ ..] = word(pointer).to_le_bytes();
            kind <= 6 && rest[..3].iter().all(|is| *is <= 1)
        }
        Shape::OfMapping => Type::Mapping.fits(domain, word(pointer + 8)),
    }
}

/// A plan to read pages: no file, a mapping of the module's, and the state of that, which the module may write.
fn is_readahead(domain: &Domain, pointer: u64) -> bool {
    domain.view().allows(pointer, 56, Access::WRITE)
        && word(pointer) == 0
        && Type::Mapping.fits(domain, word(pointer + 8))
        && domain.view().allows(word(pointer + 16), 32, Access::WRITE)
}

/// A list of options: each has a name, a parser that the kernel calls, and ends with one that has no name.
fn are_options(domain: &Domain, list: u64) -> bool {
    /// `struct fs_parameter_spec`, and more of them than any file system has.
    const BYTES: u64 = 32;
    const MOST: u64 = 256;
    for at in (0..MOST).map(|one| list.saturating_add(one * BYTES)) {
        if !domain.view().allows(at, BYTES, Access::READ) {
            return false;
        }
        let (name, parser) = (word(at), word(at + 8));
        if name == 0 {
            return true;
        }
        if parser != 0 && !may_call(domain, parser) {
            return false;
        }
    }
    false
}

/// Whether the module may write all bytes of a text, with the zero at its end.
fn is_text(domain: &Domain, text: u64) -> bool {
    const MOST: u64 = 1 << 16;
    for at in (text..text.saturating_add(MOST)).take_while(|_| text != 0) {
        if !domain.view().allows(at, 1, Access::WRITE) {
            return false;
        }
        // SAFETY: the module may write this byte, so memory is there.
        if unsafe { (at as *const u8).read_volatile() } == 0 {
            return true;
        }
    }
    text == 0
}

/// The kernel's structures of modules, by the numbers of their domains.
static MODULES: Mutex<Vec<(u32, u64)>> = Mutex::new(Vec::new());

/// The kernel has this structure of a module.
pub(crate) fn is_of(domain: &Domain, of: u64) {
    let id = domain.id().get();
    let mut modules = MODULES.lock().unwrap_or_else(PoisonError::into_inner);
    modules.retain(|(known, _)| *known != id);
    modules.push((id, of));
}

/// Where it is; 0: the kernel has none.
pub(crate) fn module(domain: &Domain) -> u64 {
    let id = domain.id().get();
    let modules = MODULES.lock().unwrap_or_else(PoisonError::into_inner);
    let found = modules.iter().find(|(known, _)| *known == id);
    found.map_or(0, |(_, of)| *of)
}

/// The kernel's function to which an address leads that a module has of it.
pub(crate) fn real(address: u64) -> u64 {
    let mut all = MEDIATORS.iter();
    let at = all.position(|mediator| *mediator as usize as u64 == address);
    at.map_or(address, |at| PLACES[at].real.load(Ordering::Relaxed) as u64)
}

/// Whether it is that.
pub(crate) fn is_module(domain: &Domain, pointer: u64) -> bool {
    let modules = MODULES.lock().unwrap_or_else(PoisonError::into_inner);
    modules.contains(&(domain.id().get(), pointer))
}

/// The first name space of users, or another one.
fn is_users(pointer: u64) -> bool {
    static FIRST: OnceLock<u64> = OnceLock::new();
    let Some(wall) = WALL.get() else {
        return false;
    };
    let first = || wall.kernel.symbol("init_user_ns", std::ptr::null_mut());
    let is_other = || {
        let object = wall.kernel.object(pointer);
        object.is_some_and(|one| one.start == pointer && one.kind == "user_namespace")
    };
    *FIRST.get_or_init(|| first().unwrap_or_default() as u64) == pointer || is_other()
}

/// Functions: where each is, and its name.
type Functions = Vec<(u64, String)>;

/// Functions of the kernel that a module's tables may have, by the numbers of domains.
static TABLES: Mutex<Vec<(u32, Functions)>> = Mutex::new(Vec::new());

/// A policy names these functions in `tables`.
pub(crate) fn has_tables(domain: &Domain, functions: Functions) {
    let id = domain.id().get();
    let mut tables = TABLES.lock().unwrap_or_else(PoisonError::into_inner);
    tables.retain(|(known, _)| *known != id);
    tables.push((id, functions));
}

/// The name of the function at an address, if it is one that the module's policy names in `tables`.
pub(crate) fn named_in_tables(domain: &Domain, function: u64) -> Option<String> {
    let id = domain.id().get();
    let tables = TABLES.lock().unwrap_or_else(PoisonError::into_inner);
    let (_, all) = tables.iter().find(|(of, _)| *of == id)?;
    // A function whose arguments are looked at has another address in a module.
    let real = real(function);
    let is_it = |(address, _): &&(u64, String)| *address == function || *address == real;
    all.iter().find(is_it).map(|(_, name)| name.clone())
}

/// Whether the kernel may call it where a table of the module says so: a function of the module, or one that its policy names.
pub(crate) fn may_call(domain: &Domain, function: u64) -> bool {
    domain.has_function(function as usize) || named_in_tables(domain, function).is_some()
}

/// A table of characters that is registered, or the kernel's own one. One of a module without a wall is a part of its data.
fn is_characters(pointer: u64) -> bool {
    let object = WALL.get().and_then(|wall| wall.kernel.object(pointer));
    let is_one = |object: Object| {
        let is_kind = matches!(&*object.kind, "nls_table" | "variable.default_table");
        is_kind && object.start == pointer
    };
    object.is_some_and(is_one)
}

/// Whether the module has an object there, or is granted it when it asks, and it is such a one: where it begins, and its kind. `what`
/// is where, and which type asks.
fn has(domain: &Domain, what: (u64, &'static str), is_it: impl Fn(u64, &str) -> bool) -> bool {
    let pointer = what.0;
    if rights::is_latest(domain, what) {
        return true;
    }
    if rights::has_such(domain, pointer, &is_it) {
        rights::latest(domain, what);
        return true;
    }
    let Some(wall) = WALL.get() else {
        return false;
    };
    let object = wall.kernel.object(pointer);
    let may =
        |object: &Object| is_it(object.start, &object.kind) && rights::may_have(domain, object);
    let Some(object) = object.filter(may) else {
        return false;
    };
    rights::is_named(wall.kernel, domain, &object);
    true
}

/// A device that the module has made, or that is registered for it. The kernel has a new one set up in a call of the module's, to
/// which it lends it.
fn is_device(domain: &Domain, pointer: u64) -> bool {
    let Some(wall) = WALL.get() else {
        return false;
    };
    let is_lent = || {
        let object = wall.kernel.object(pointer);
        let is_whole = object.is_some_and(|object| object.start == pointer);
        let may = domain.view().allows(pointer, 64, Access::WRITE);
        may && is_whole && !rights::is_plain(pointer)
    };
    journal::holds(domain, Thing::Device, pointer)
        || packets::is_device(wall.number(domain), pointer)
        || rights::has_parts(domain, pointer)
        || is_lent()
}

/// A function of the kernel that is called through a mediator.
struct Place {
    real: AtomicUsize,
    rule: OnceLock<Rule>,
}

struct Rule {
    name: String,
    has_effects: bool,
    arguments: Vec<(Type, bool)>,
    /// It is a function of another module, which hands references on.
    hands: Option<Hands>,
    /// Or which is lent memory by pointers in its arguments.
    lends: Option<Lends>,
    /// Nobody else counts calls of it.
    counts: bool,
}

/// Whether it is known what a function's arguments point to. Else an argument that a module must not hand on.
///
/// # Errors
/// What is not known.
pub(crate) fn is_known(name: &str, has_effects: bool) -> Result<(), String> {
    let Some(list) = line(name) else {
        return match has_effects {
            true => Ok(()),
            false => Err(format!("{name} has no line in kernel.types")),
        };
    };
    let mut words = list.split(' ').map(|word| word.trim_end_matches('?'));
    match words.find(|word| Type::of(word).is_none()) {
        Some(word) => Err(format!(
            "{name} has a pointer to {word}, of which nothing is known"
        )),
        None => Ok(()),
    }
}

/// Modules call it by an address that the kernel gives, so nobody can look before.
const BY_ADDRESS: &str = "by_address";

fn line(name: &str) -> Option<&'static str> {
    let mut lines = TYPES.lines();
    lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

/// The rule of a function, if there is anything to look at. What has no type, a policy's effects say better.
fn rule(name: &str, has_effects: bool, counts: bool) -> Option<Rule> {
    let list = line(name);
    let (hands, lends) = (hands::of(name), lends::of(name));
    let is_between = hands.is_some() || lends.is_some();
    // What may be called by an address that the kernel gives must stay what it is.
    if list.is_none_or(|list| list == BY_ADDRESS) && !is_between {
        return None;
    }
    let list = list.unwrap_or("-");
    let argument = |word: &str| match word.trim_end_matches('?') {
        "text" | "memory" | "stored" | "out" | "number" | "substring_t" if has_effects => {
            (Type::Any, true)
        }
        // The gate's copy.
        "format" if has_effects => (Type::Copied, true),
        name if has_effects && name.starts_with("constructed.") => (Type::Any, true),
        // A module whose policy names it is not loaded.
        name => (Type::of(name).unwrap_or(Type::Null), word.ends_with('?')),
    };
    let arguments: Vec<(Type, bool)> = list.split(' ').map(argument).take(14).collect();
    let looks = arguments.iter().any(|(one, _)| !matches!(one, Type::Any));
    let name = name.to_owned();
    (looks || counts || is_between).then_some(Rule {
        name,
        has_effects,
        arguments,
        hands,
        lends,
        counts,
    })
}

/// Whether all that a format of the call leads to may be read by the module.
fn formats_fit(domain: &Domain, rule: &Rule, all: &[u64; 14]) -> bool {
    rule.arguments.iter().enumerate().all(|(at, (is, _))| {
        let is_copy = matches!(is, Type::Copied);
        if !is_copy && !matches!(is, Type::Format) || journal::is_nothing(all[at]) {
            return true;
        }
        formats::fits(domain, all[at], &all[at + 1..], is_copy)
    })
}

#[allow(clippy::too_many_arguments, clippy::many_single_char_names)]
extern "C" fn mediator<const N: usize>(
    a: u64,
    b: u64,
    c: u64,
    d: u64,
    e: u64,
    f: u64,
    g: u64,
    h: u64,
    i: u64,
    j: u64,
    k: u64,
    l: u64,
    m: u64,
    n: u64,
) -> u64 {
    CALLS.fetch_add(1, Ordering::Relaxed);
    let place = &PLACES[N];
    let all = [a, b, c, d, e, f, g, h, i, j, k, l, m, n];
    let arguments = [a, b, c, d, e, f];
    if let Some(rule) = place.rule.get().filter(|rule| rule.counts) {
        costs::calls(&rule.name);
    }
    if let (Some(rule), Some(domain)) = (place.rule.get(), caller()) {
        let wrong = |(at, (is, may_be_null)): (usize, &(Type, bool))| {
            let pointer = all[at];
            let fits = match (is, journal::is_nothing(pointer)) {
                (Type::Count, _) | (_, false) => is.fits(&domain, pointer),
                (_, true) => *may_be_null || matches!(is, Type::Any),
            };
            !fits
        };
        if let Some(at) = rule.arguments.iter().enumerate().position(wrong) {
            let (name, pointer) = (&rule.name, all[at]);
            refuse(format!(
                "{name}: argument {at}, {pointer:#x}, is not such an object of the module's"
            ));
            return 0;
        }
        if !formats_fit(&domain, rule, &all) {
            refuse(format!(
                "{}: the format leads to what is not the module's to read",
                rule.name
            ));
            return 0;
        }
        if let Some(Err(what)) = rule
            .hands
            .as_ref()
            .map(|one| one.before(&domain, &arguments))
        {
            refuse(format!("{}: {what}", rule.name));
            return 0;
        }
        if let Some(Err(what)) = rule
            .lends
            .as_ref()
            .map(|one| one.before(&domain, &arguments))
        {
            refuse(format!("{}: {what}", rule.name));
            return 0;
        }
    }
    let real = place.real.load(Ordering::Relaxed);
    // SAFETY: `through` has set the address of a function before the module could call this one. It takes its arguments from
    // these registers and these words of the stack.
    let real: Function = unsafe { std::mem::transmute(real) };
    let result = real(a, b, c, d, e, f, g, h, i, j, k, l, m, n);
    let hands = place.rule.get().and_then(|rule| rule.hands.as_ref());
    if let (Some(hands), Some(domain)) = (hands, caller()) {
        hands.behind(&domain, &arguments, result);
    }
    result
}

/// Some functions have arguments on the stack: as many words as kernel.toml says at most.
#[rustfmt::skip]
type Function =
    extern "C" fn(u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64) -> u64;

macro_rules! places {
    ($($tens:literal)*) => {
        const MEDIATORS: &[Function] = &[
            $(mediator::<{ $tens * 8 }>, mediator::<{ $tens * 8 + 1 }>, mediator::<{ $tens * 8 + 2 }>,
              mediator::<{ $tens * 8 + 3 }>, mediator::<{ $tens * 8 + 4 }>, mediator::<{ $tens * 8 + 5 }>,
              mediator::<{ $tens * 8 + 6 }>, mediator::<{ $tens * 8 + 7 }>,)*
        ];
    };
}

places!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
        32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63);

static PLACES: [Place; 512] = [const {
    Place {
        real: AtomicUsize::new(0),
        rule: OnceLock::new(),
    }
}; 512];

/// Calls whose arguments were looked at, of all modules.
pub(crate) static CALLS: AtomicUsize = AtomicUsize::new(0);

static USED: Mutex<usize> = Mutex::new(0);

/// The address by which modules call a function: one that looks at the arguments, if the headers say what they are. `has_effects`: a
/// policy says of which memory. `has_mediator`: another one is behind this, and counts.
/// Nothing, if more functions are looked at than there are places: a module that calls such a one is not loaded.
pub(crate) fn through(
    name: &str,
    real: usize,
    has_effects: bool,
    has_mediator: bool,
) -> Option<usize> {
    let counts = costs::asked() && !has_mediator;
    let Some(rule) = rule(name, has_effects, counts) else {
        return Some(real);
    };
    let mut used = USED.lock().unwrap_or_else(PoisonError::into_inner);
    let known = PLACES[..*used].iter().position(|place| {
        let is_it = |one: &Rule| one.name == name && one.has_effects == has_effects;
        place.rule.get().is_some_and(is_it)
    });
    let at = known.unwrap_or(*used);
    if known.is_none() {
        let place = PLACES.get(at)?;
        *used += 1;
        place.real.store(real, Ordering::Relaxed);
        let _first = place.rule.set(rule);
    }
    Some(MEDIATORS[at] as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mullion_word_policy::File;
    use std::fs;
    use std::path::Path;

    #[test]
    fn what_nobody_knows_is_refused() {
        assert!(is_known("iput", false).is_ok());
        assert!(is_known("no_such_function", false).is_err());
        // The module's policy says of which memory.
        assert!(is_known("no_such_function", true).is_ok());
        assert!(Type::of("vm_area_struct").is_none());
        for line in TYPES.lines() {
            let (name, _) = line.split_once(": ").expect("a name and types");
            assert_eq!(is_known(name, false), Ok(()), "{line}");
        }
    }

    /// By our policies, which are files.
    #[test]
    fn all_functions_that_policies_trust_are_known() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../policies");
        let mut count = 0;
        for entry in fs::read_dir(folder).expect("policies") {
            let path = entry.expect("a policy").path();
            let text = fs::read_to_string(&path).expect("a text");
            let file = File::parse(&text).expect("a policy");
            for name in file.groups.get("trusts").into_iter().flatten() {
                let looks = crate::allocators::instead(name).is_some_and(|one| one.looks());
                let has_effects = file.calls.contains_key(name);
                let known = is_known(name, has_effects);
                assert!(looks || known.is_ok(), "{}: {known:?}", path.display());
                count += 1;
            }
        }
        assert!(count > 1000, "{count}");
    }
}
