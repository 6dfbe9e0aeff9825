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
use crate::{WALL, costs, disks, journal, packets, rights};
use mullion_word::runtime::{Domain, caller, refuse};
use mullion_word_table::Access;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

const TYPES: &str = include_str!("../../kernel.types");

/// What an argument has to be.
#[derive(Clone, Copy)]
enum Type {
    /// No pointer, or one of which nothing is known.
    Any,
    /// The beginning of an object of a kind that begins, or ends, so.
    Object(&'static str),
    /// Within an object of such a kind.
    Within(&'static str),
    /// Within an object of a cache for inodes, or of one of the module's own caches.
    Inode,
    /// The same, or within a block device.
    Mapping,
    /// A byte that the module may read now, or write.
    Byte,
    Stored,
    /// A word that it may read.
    Readable,
    /// What the module may write.
    Writable,
    /// So many bytes that it may write, or that lie in an object of one of its own caches: what a constructor is called with is
    /// granted to nobody yet.
    Constructed(u64),
    /// A function of the module.
    Code,
    /// A variable of its own.
    Own,
    /// A lock that the module may write, or a variable of the kernel that its policy names.
    Lock,
    /// A packet of the module's.
    Packet,
    /// A network device of the module's.
    Device,
    /// A disk of the module's, and its queue.
    Disk,
    Queue,
}

impl Type {
    fn of(structure: &str) -> Type {
        if let Some(bytes) = structure.strip_prefix("constructed.") {
            // Without a number nothing fits.
            return Type::Constructed(bytes.parse().unwrap_or(u64::MAX));
        }
        match structure {
            // An inode is a part of its file system's object.
            "inode" => Type::Inode,
            "address_space" => Type::Mapping,
            "super_block" => Type::Object("kmalloc_2k"),
            "dentry" => Type::Object("dentry"),
            "buffer_head" => Type::Object("buffer_head"),
            "file" => Type::Object("filp"),
            "page" | "folio" => Type::Object("frame"),
            "block_device" => Type::Within("bdev_cache"),
            "file_system_type" | "rtnl_link_ops" => Type::Own,
            "mutex" | "rw_semaphore" => Type::Lock,
            "rb_node" | "rb_root" | "out" => Type::Writable,
            "text" | "memory" => Type::Byte,
            "stored" => Type::Stored,
            "code" => Type::Code,
            "sk_buff" => Type::Packet,
            "net_device" => Type::Device,
            "gendisk" => Type::Disk,
            "request_queue" => Type::Queue,
            "kiocb"
            | "iov_iter"
            | "writeback_control"
            | "readahead_control"
            | "kstat"
            | "iattr"
            | "fileattr"
            | "msdos_dir_entry"
            | "percpu_rw_semaphore"
            | "skb_shared_hwtstamps"
            | "rcuwait" => Type::Readable,
            _ => Type::Any,
        }
    }

    fn fits(self, domain: &Domain, pointer: u64) -> bool {
        match self {
            Type::Any => true,
            Type::Byte => rights::may_byte(domain, pointer, false),
            Type::Stored => rights::may_byte(domain, pointer, true),
            Type::Readable => rights::may(domain, pointer, false),
            Type::Code => domain.has_function(pointer as usize),
            Type::Writable => rights::may(domain, pointer, true),
            Type::Own => domain.has_data(pointer as usize, 8),
            Type::Constructed(bytes) => rights::may_construct(domain, pointer, bytes),
            Type::Lock => {
                let object = || WALL.get().and_then(|wall| wall.kernel.object(pointer));
                let is_named = |object: Object| {
                    let is_variable = object.kind.starts_with("variable.");
                    is_variable && object.start == pointer && rights::names(domain, &object.kind)
                };
                rights::may(domain, pointer, true) || object().is_some_and(is_named)
            }
            Type::Packet => packets::is_its(domain, pointer),
            Type::Device => is_device(domain, pointer),
            Type::Disk => journal::holds(domain, Thing::Disk, pointer),
            Type::Queue => disks::is_queue(domain, pointer),
            Type::Inode => has(domain, (pointer, "inode"), |_, kind| {
                has_inodes(kind) || rights::is_own_kind(domain, kind)
            }),
            Type::Mapping => has(domain, (pointer, "mapping"), |_, kind| {
                has_inodes(kind) || kind == "bdev_cache" || rights::is_own_kind(domain, kind)
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

/// Whether a cache has inodes, by how its name ends: that of one file system does not begin with the module's name. Parts that journals have of
/// an inode are none, and names with a point are no cache's.
fn has_inodes(kind: &str) -> bool {
    let is_short = || kind.ends_with("_inode") && !kind.contains('.') && kind != "jbd2_inode";
    kind.ends_with("inode_cache") || is_short()
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

/// The rule of a function, if there is anything to look at. What has no type, a policy's effects say better.
fn rule(name: &str, has_effects: bool, counts: bool) -> Option<Rule> {
    let mut lines = TYPES.lines();
    let list = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    let (hands, lends) = (hands::of(name), lends::of(name));
    let is_between = hands.is_some() || lends.is_some();
    // What has no line may be called by an address that the kernel gives: that must stay what it is.
    if list.is_none() && !is_between {
        return None;
    }
    let list = list.unwrap_or("-");
    let argument = |word: &str| match word.trim_end_matches('?') {
        "text" | "memory" | "stored" | "out" if has_effects => (Type::Any, true),
        name if has_effects && name.starts_with("constructed.") => (Type::Any, true),
        name => (Type::of(name), word.ends_with('?')),
    };
    // A function is called with no file by the kernel itself.
    let arguments = list.split(' ').map(|word| match word {
        "file" => (Type::of(word), true),
        word => argument(word),
    });
    let arguments: Vec<(Type, bool)> = arguments.take(6).collect();
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

extern "C" fn mediator<const N: usize>(
    a: u64,
    b: u64,
    c: u64,
    d: u64,
    e: u64,
    f: u64,
    g: u64,
    h: u64,
) -> u64 {
    CALLS.fetch_add(1, Ordering::Relaxed);
    let place = &PLACES[N];
    let arguments = [a, b, c, d, e, f];
    if let Some(rule) = place.rule.get().filter(|rule| rule.counts) {
        costs::calls(&rule.name);
    }
    if let (Some(rule), Some(domain)) = (place.rule.get(), caller()) {
        let wrong = |(at, (is, may_be_null)): (usize, &(Type, bool))| {
            let pointer = arguments[at];
            let fits = match journal::is_nothing(pointer) {
                true => *may_be_null || matches!(is, Type::Any),
                false => is.fits(&domain, pointer),
            };
            !fits
        };
        if let Some(at) = rule.arguments.iter().enumerate().position(wrong) {
            let (name, pointer) = (&rule.name, arguments[at]);
            refuse(format!(
                "{name}: argument {at}, {pointer:#x}, is not such an object of the module's"
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
    let result = real(a, b, c, d, e, f, g, h);
    let hands = place.rule.get().and_then(|rule| rule.hands.as_ref());
    if let (Some(hands), Some(domain)) = (hands, caller()) {
        hands.behind(&domain, &arguments, result);
    }
    result
}

type Function = extern "C" fn(u64, u64, u64, u64, u64, u64, u64, u64) -> u64;

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
    let mut used = USED
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
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
