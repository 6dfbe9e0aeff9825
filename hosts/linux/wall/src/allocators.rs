//! Functions of the kernel that are looked at when walled modules call them. Allocators: what they give is the module's until
//! it is freed, and a module frees only what it may write. References, locks and registrations are noted
//! ([`journal`](crate::journal)), and a module gives back only what it has.
//!
//! ```text
//!   module ──► gate ──► mediator ──► __kmalloc ──► the object is granted to the caller
//!   module ──► gate ──► mediator: has the caller allocated it? ──► kfree ──► the kernel tells (`rights::freed`)
//! ```

mod inodes;
mod memory;
mod parcels;
mod room;

use crate::journal::{self, SILENT, Thing};
use crate::later::{self, Later};
use crate::links::{self, Link};
use crate::registrations::{self, Register};
use crate::trees::{self, Tree};
use crate::{WALL, costs, disks, packets, returns, rights};
use inodes::{ends_hash, ends_new, forgets_new, makes_inode, makes_root, takes_inode};
use memory::{Source, copies, frees, frees_of, frees_page, gives, gives_of, makes_cache};
use mullion_word::runtime::{caller, refuse};
use mullion_word_table::Access;
use parcels::{changes_packet, forwards_packet, gives_packet, takes_packet};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Some of the kernel's functions have arguments on the stack.
type Arguments = [u64; 8];
type Function = extern "C" fn(u64, u64, u64, u64, u64, u64, u64, u64) -> u64;

/// A function of the kernel, and its mediator.
pub(crate) struct Mediated {
    pub(crate) name: &'static str,
    pub(crate) mediator: Function,
    how: How,
    real: &'static AtomicUsize,
}

impl Mediated {
    /// Tells the mediator where the kernel has the function.
    pub(crate) fn settle(&self, address: usize) {
        self.real.store(address, Ordering::Relaxed);
    }

    /// Whether a policy has to name it as an allocator. Others take the place of the kernel's function.
    pub(crate) fn is_allocator(&self) -> bool {
        matches!(
            self.how,
            How::Gives
                | How::GivesOf
                | How::Copies(_)
                | How::Frees(_)
                | How::FreesOf
                | How::FreesPage
        )
    }

    /// Whether it looks at the arguments itself, and more closely than by their types.
    pub(crate) fn looks(&self) -> bool {
        matches!(
            self.how,
            How::GivesPacket(_)
                | How::Later(_)
                | How::Tree(_)
                | How::Link(_)
                | How::Register(_)
                | How::FreesPages
        )
    }
}

/// The mediator that takes the place of a function of the kernel.
pub(crate) fn instead(name: &str) -> Option<&'static Mediated> {
    ALL.iter()
        .find(|one| one.name == name && !one.is_allocator())
}

fn call(real: &AtomicUsize, arguments: Arguments) -> u64 {
    let address = real.load(Ordering::Relaxed);
    // SAFETY: a mediator is offered only behind `settle`, with the address of the kernel's function, which takes its
    // arguments from these registers and these words of the stack.
    let real: Function = unsafe { std::mem::transmute(address) };
    let [a, b, c, d, e, f, g, h] = arguments;
    real(a, b, c, d, e, f, g, h)
}

/// The caller has it from then on, if the function says so.
fn takes(real: &AtomicUsize, thing: Thing, by: By, arguments: Arguments) -> u64 {
    let result = call(real, arguments);
    let (has, what) = match by {
        By::Result => (!journal::is_nothing(result), result),
        By::IfZero => (result as u32 == 0, arguments[0]),
        By::Always => (true, arguments[0]),
    };
    if let Some(domain) = caller().filter(|_| has) {
        journal::takes(&domain, thing, [what, arguments[1]]);
        if let (Some(wall), Thing::Inode) = (WALL.get(), thing) {
            // Of its own file system: `types` has looked at the super block. One of a cache of its own is its own already.
            rights::has(wall.host, wall.kernel, &domain, what);
        }
    }
    result
}

/// A lock that the same task has closed already would never open.
fn closes(name: &str, real: &AtomicUsize, thing: Thing, arguments: Arguments) -> u64 {
    let lock = arguments[0];
    if caller().is_some_and(|domain| journal::has(&domain, thing, lock)) {
        refuse(format!("{name}: the module has closed {lock:#x} itself"));
        return 0;
    }
    takes(real, thing, By::Always, arguments)
}

fn gives_back(
    name: &str,
    real: &AtomicUsize,
    thing: Thing,
    at: usize,
    arguments: Arguments,
) -> u64 {
    let what = arguments[at];
    let has = caller().is_some_and(|domain| journal::gives(&domain, thing, what));
    // A number is no pointer.
    let is_nothing = journal::is_nothing(what) && thing != Thing::Major;
    if !is_nothing && !has {
        refuse(format!(
            "{name}: {what:#x} is not the module's to give back"
        ));
        return 0;
    }
    call(real, arguments)
}

/// Once more what the module has already.
fn again(name: &str, real: &AtomicUsize, thing: Thing, arguments: Arguments) -> u64 {
    let what = arguments[0];
    if !caller().is_some_and(|domain| journal::holds(&domain, thing, what)) {
        refuse(format!("{name}: {what:#x} is not the module's"));
        return 0;
    }
    takes(real, thing, By::Always, arguments)
}

/// Something is done to a buffer, a page or the like that the module has.
fn of_own(name: &str, real: &AtomicUsize, thing: Thing, arguments: Arguments) -> u64 {
    let what = arguments[0];
    if !caller().is_some_and(|domain| journal::holds(&domain, thing, what)) {
        refuse(format!("{name}: {what:#x} is not the module's"));
        return 0;
    }
    call(real, arguments)
}

/// The lock of a buffer or a page that the module has.
fn locks(name: &str, real: &AtomicUsize, (of, thing): (Thing, Thing), arguments: Arguments) -> u64 {
    let what = arguments[0];
    if !caller().is_some_and(|domain| journal::holds(&domain, of, what)) {
        refuse(format!("{name}: {what:#x} is not the module's"));
        return 0;
    }
    closes(name, real, thing, arguments)
}

/// The function opens the lock of this argument, whoever has closed it: the kernel calls for a page that it has locked itself.
fn opens(real: &AtomicUsize, thing: Thing, at: usize, arguments: Arguments) -> u64 {
    if let Some(domain) = caller() {
        journal::gives(&domain, thing, arguments[at]);
    }
    call(real, arguments)
}

/// The page of a file is the module's until it is given back. It may come locked: the flags say so.
fn gives_page(real: &AtomicUsize, flags: Option<usize>, arguments: Arguments) -> u64 {
    /// `FGP_LOCK`.
    const LOCKED: u64 = 2;
    let page = call(real, arguments);
    if let Some(domain) = caller().filter(|_| !journal::is_nothing(page)) {
        journal::takes(&domain, Thing::Page, [page, 0]);
        if flags.is_some_and(|at| arguments[at] & LOCKED != 0) {
            journal::takes(&domain, Thing::PageLock, [page, 0]);
        }
    }
    page
}

/// The kernel writes to a page of a file, opens its lock and gives it back: its own, or one of the module's.
fn ends_write(real: &AtomicUsize, at: usize, arguments: Arguments) -> u64 {
    if let Some(domain) = caller() {
        journal::gives(&domain, Thing::Page, arguments[at]);
    }
    opens(real, Thing::PageLock, at, arguments)
}

/// The function waits for pages of a file, so a page that this task has locked itself would let it wait for ever.
fn waits_for_pages(name: &str) -> bool {
    let waits = caller().is_some_and(|domain| journal::has_any(&domain, Thing::PageLock));
    if waits {
        refuse(format!("{name}: the module has left a page locked"));
    }
    waits
}

/// Interrupts go off for 0, and on. Those that were off before are not the module's to switch on when it is ended.
fn switches(real: &AtomicUsize, arguments: Arguments) -> u64 {
    let domain = caller().map_or(0, |domain| u64::from(domain.id().get()));
    if arguments[0] as u32 != 0 {
        SILENT.store(0, Ordering::Relaxed);
    }
    let before = call(real, arguments);
    if arguments[0] as u32 == 0 && before as u32 != 0 {
        SILENT.store(domain, Ordering::Relaxed);
        returns::watch(journal::task());
    }
    before
}

/// Something of the running task goes off, once more.
fn turns_off(real: &AtomicUsize, thing: Thing, arguments: Arguments) -> u64 {
    let result = call(real, arguments);
    if let Some(domain) = caller() {
        journal::takes(&domain, thing, [journal::task(), 0]);
    }
    result
}

/// It goes on, if the module has turned it off in this task.
fn turns_on(name: &str, real: &AtomicUsize, thing: Thing, arguments: Arguments) -> u64 {
    let task = journal::task();
    if !caller().is_some_and(|domain| journal::gives(&domain, thing, task)) {
        refuse(format!("{name}: the module has not turned it off"));
        return 0;
    }
    call(real, arguments)
}

/// A mount is watched.
fn mounts(real: &AtomicUsize, arguments: Arguments) -> u64 {
    let root = call(real, arguments);
    if let Some(wall) = WALL.get().filter(|_| !journal::is_nothing(root)) {
        wall.kernel.mounted(root, false);
    }
    root
}

/// The same, for types that get a tree: 0 says that the context has its root.
fn gets_tree(real: &AtomicUsize, arguments: Arguments) -> u64 {
    let result = call(real, arguments);
    if let Some(wall) = WALL.get().filter(|_| result as u32 == 0) {
        wall.kernel.mounted(arguments[0], true);
    }
    result
}

/// Memory for each processor: there is one, and it is at the result.
fn gives_per_cpu(real: &AtomicUsize, arguments: Arguments) -> u64 {
    if !room::has(arguments[0]) {
        return 0;
    }
    let result = call(real, arguments);
    if let (Some(wall), Some(domain), true) = (WALL.get(), caller(), result != 0) {
        let (start, bytes) = (result as usize, arguments[0] as usize);
        // SAFETY: the kernel has given it to this module, and nobody else has it until it goes back.
        let right = unsafe { wall.host.grant_for(&domain, start, bytes, true) };
        journal::takes_with(
            &domain,
            Thing::PerCpu,
            [result, 0],
            right.into_iter().collect(),
        );
    }
    result
}

/// It is the kernel's from then on, if the function has done it.
fn hands_over(name: &str, real: &AtomicUsize, thing: Thing, arguments: Arguments) -> u64 {
    let what = arguments[0];
    let Some(domain) = caller().filter(|domain| journal::holds(domain, thing, what)) else {
        refuse(format!(
            "{name}: {what:#x} is not the module's to hand over"
        ));
        return 0;
    };
    let number = WALL.get().map_or(0, |wall| wall.number(&domain));
    if thing == Thing::Device && !packets::fits(number, what) {
        refuse(format!(
            "{name}: the device's functions are not the module's"
        ));
        return 0;
    }
    let result = call(real, arguments);
    if result as u32 == 0 {
        journal::gives(&domain, thing, what);
    }
    result
}

/// Pages: the result is the structure of the first one.
fn gives_pages(real: &AtomicUsize, arguments: Arguments) -> u64 {
    if !room::has(4096 << (arguments[1] as u32).min(20)) {
        return 0;
    }
    let (page, order) = (call(real, arguments), u64::from(arguments[1] as u32));
    if let Some(domain) = caller().filter(|_| page != 0) {
        let rights = disks::rights_to_pages(&domain, page, order);
        journal::takes_with(&domain, Thing::Pages, [page, order], rights);
    }
    page
}

fn frees_pages(name: &str, real: &AtomicUsize, arguments: Arguments) -> u64 {
    let [page, order, ..] = arguments;
    let domain = caller().filter(|domain| {
        journal::other(domain, Thing::Pages, page) == Some(u64::from(order as u32))
    });
    if !domain.is_some_and(|domain| journal::gives(&domain, Thing::Pages, page)) {
        refuse(format!("{name}: {page:#x} is not the module's to free"));
        return 0;
    }
    call(real, arguments)
}

/// A disk or a network device: its structure is the module's until it goes.
fn makes(real: &AtomicUsize, thing: Thing, arguments: Arguments) -> u64 {
    if !room::has(room::DEVICE) {
        return 0;
    }
    let made = call(real, arguments);
    if let Some(domain) = caller().filter(|_| !journal::is_nothing(made)) {
        let rights = match thing {
            Thing::Disk => disks::rights_to_disk(&domain, made, false),
            _ => packets::rights_to_device(&domain, made),
        };
        journal::takes_with(&domain, thing, [made, 0], rights);
        if thing == Thing::Disk {
            disks::made(&domain, made);
        }
    }
    made
}

fn puts_disk(name: &str, real: &AtomicUsize, arguments: Arguments) -> u64 {
    let disk = arguments[0];
    let is_its = caller().is_some_and(|domain| journal::holds(&domain, Thing::Disk, disk));
    if is_its && !disks::goes(disk) {
        refuse(format!("{name}: {disk:#x} is added, and not taken away"));
        return 0;
    }
    gives_back(name, real, Thing::Disk, 0, arguments)
}

fn adds_disk(name: &str, real: &AtomicUsize, arguments: Arguments) -> u64 {
    let disk = arguments[1];
    let Some(domain) = caller().filter(|domain| journal::holds(domain, Thing::Disk, disk)) else {
        refuse(format!("{name}: {disk:#x} is no disk of the module's"));
        return 0;
    };
    if let Err(what) = disks::adds(&domain, disk) {
        refuse(format!("{name}: {disk:#x} {what}"));
        return 0;
    }
    let result = call(real, arguments);
    if result as i32 != 0 {
        disks::not_added(&domain, disk);
    }
    result
}

/// A lock of which there is one.
fn enters(name: &str, real: &AtomicUsize, thing: Thing, arguments: Arguments) -> u64 {
    let Some(domain) = caller().filter(|domain| !journal::has(domain, thing, ONLY)) else {
        refuse(format!("{name}: the module has closed it itself"));
        return 0;
    };
    let result = call(real, arguments);
    journal::takes(&domain, thing, [ONLY, 0]);
    result
}

fn leaves(name: &str, real: &AtomicUsize, thing: Thing, arguments: Arguments) -> u64 {
    if !caller().is_some_and(|domain| journal::gives(&domain, thing, ONLY)) {
        refuse(format!("{name}: the module has not closed it"));
        return 0;
    }
    call(real, arguments)
}

/// What the journal has of a thing of which there is one.
const ONLY: u64 = 1;

/// Bytes of a device's address, which has 32: from where, and how many.
fn sets_address(name: &str, real: &AtomicUsize, arguments: Arguments) -> u64 {
    let [_, offset, _, bytes, ..] = arguments;
    let end = u64::from(offset as u32).checked_add(bytes);
    if end.is_none_or(|end| end > 32) {
        refuse(format!("{name}: no address has so many bytes"));
        return 0;
    }
    call(real, arguments)
}

/// A text of 32 bytes where the first argument's pointer leads, which the module may write. It gets as much further.
fn writes_text(name: &str, real: &AtomicUsize, arguments: Arguments) -> u64 {
    let may =
        |to, bytes| caller().is_some_and(|domain| domain.view().allows(to, bytes, Access::WRITE));
    let to = may(arguments[0], 8).then(|| {
        // SAFETY: the module may write this word, so memory is there.
        unsafe { (arguments[0] as *const u64).read_volatile() }
    });
    if !to.is_some_and(|to| may(to, 32)) {
        refuse(format!("{name}: {to:#x?} is not the module's to write"));
        return 0;
    }
    call(real, arguments)
}

/// How a function says that something is had.
#[derive(Clone, Copy)]
enum By {
    /// It is the result.
    Result,
    /// It is the first argument, if the result is 0.
    IfZero,
    /// It is the first argument.
    Always,
}

/// What is looked at.
#[derive(Clone, Copy)]
enum How {
    Gives,
    /// The same, of a function whose arguments are looked at by their types. The third one says how many bytes.
    GivesMemory,
    /// The first argument is the cache.
    GivesOf,
    Copies(Source),
    Frees(usize),
    /// The first argument is the cache, and the second one its object.
    FreesOf,
    FreesPage,
    Takes(Thing, By),
    Closes(Thing),
    GivesBack(Thing, usize),
    Again(Thing),
    OfOwn(Thing),
    EndsPages,
    EndsInode(usize),
    Locks(Thing, Thing),
    Opens(Thing, usize),
    GivesPage(Option<usize>),
    EndsWrite(usize),
    MakesRoot,
    /// Whether the name is the gate's copy.
    MakesCache(bool),
    MakesInode,
    TakesInode(By),
    EndsNew,
    EndsHash,
    Nothing,
    Switches,
    TurnsOff(Thing),
    TurnsOn(Thing),
    Mounts,
    GetsTree,
    GivesUp,
    GivesPerCpu,
    HandsOver(Thing),
    Enters(Thing),
    Leaves(Thing),
    TakesPacket,
    GivesPacket(usize),
    ForwardsPacket,
    ChangesPacket,
    SetsAddress,
    WritesText,
    Link(Link),
    Register(Register),
    Later(Later),
    Tree(Tree),
    GivesPages,
    FreesPages,
    Makes(Thing),
    PutsDisk,
    AddsDisk,
}

fn mediate(how: How, name: &'static str, real: &AtomicUsize, arguments: Arguments) -> u64 {
    costs::calls(name);
    match how {
        How::Gives => gives(real, (None, arguments[0]), arguments),
        How::GivesMemory => gives(real, (None, arguments[2]), arguments),
        How::GivesOf => gives_of(name, real, arguments),
        How::Copies(source) => copies(name, real, source, arguments),
        How::FreesOf => frees_of(name, real, arguments),
        How::Frees(at) => frees(name, real, at, arguments),
        How::FreesPage => frees_page(name, real, arguments),
        How::Takes(thing, by) => takes(real, thing, by, arguments),
        How::Closes(thing) => closes(name, real, thing, arguments),
        How::GivesBack(thing, at) => {
            forgets_new(name, arguments);
            gives_back(name, real, thing, at, arguments)
        }
        How::MakesRoot => makes_root(name, real, arguments),
        How::MakesCache(is_copy) => makes_cache(name, real, is_copy, arguments),
        How::MakesInode => makes_inode(name, real, arguments),
        How::TakesInode(by) => takes_inode(real, by, arguments),
        How::EndsNew => ends_new(name, real, arguments),
        How::EndsHash => ends_hash(name, real, arguments),
        How::Again(thing) => again(name, real, thing, arguments),
        // The last reference to an inode ends its pages.
        How::EndsInode(_) | How::EndsPages if waits_for_pages(name) => 0,
        How::EndsInode(at) => {
            forgets_new(name, arguments);
            gives_back(name, real, Thing::Inode, at, arguments)
        }
        How::EndsPages => call(real, arguments),
        How::OfOwn(thing) => of_own(name, real, thing, arguments),
        How::Locks(of, thing) => locks(name, real, (of, thing), arguments),
        How::Opens(thing, at) => opens(real, thing, at, arguments),
        How::GivesPage(flags) => gives_page(real, flags, arguments),
        How::EndsWrite(at) => ends_write(real, at, arguments),
        // It makes requests wait for others, and has the task point to the module's stack meanwhile. They do not wait.
        How::Nothing => 0,
        How::Switches => switches(real, arguments),
        How::TurnsOff(thing) => turns_off(real, thing, arguments),
        How::TurnsOn(thing) => turns_on(name, real, thing, arguments),
        How::Mounts => mounts(real, arguments),
        How::GetsTree => gets_tree(real, arguments),
        How::GivesPerCpu => gives_per_cpu(real, arguments),
        How::HandsOver(thing) => hands_over(name, real, thing, arguments),
        How::Enters(thing) => enters(name, real, thing, arguments),
        How::Leaves(thing) => leaves(name, real, thing, arguments),
        How::TakesPacket => takes_packet(real, arguments),
        How::GivesPacket(at) => gives_packet(name, real, at, arguments),
        How::ForwardsPacket => forwards_packet(name, real, arguments),
        How::ChangesPacket => changes_packet(name, real, arguments),
        How::SetsAddress => sets_address(name, real, arguments),
        How::WritesText => writes_text(name, real, arguments),
        How::Link(what) => links::mediate(name, what, arguments),
        How::Register(what) => registrations::mediate(name, what, real, arguments),
        How::Later(what) => later::mediate(name, what, arguments),
        How::Tree(what) => trees::mediate(name, what, arguments),
        How::GivesPages => gives_pages(real, arguments),
        How::FreesPages => frees_pages(name, real, arguments),
        How::Makes(thing) => makes(real, thing, arguments),
        How::PutsDisk => puts_disk(name, real, arguments),
        How::AddsDisk => adds_disk(name, real, arguments),
        // A module that finds its own bug is ended, and not the machine.
        How::GivesUp => {
            refuse(format!("{name}: the module gives up"));
            0
        }
    }
}

macro_rules! mediated {
    ($($name:literal $ident:ident $how:expr),* $(,)?) => {
        $(mod $ident {
            #[allow(unused_imports)]
            use super::{By::*, How::{self, *}, Source as S};
            #[allow(unused_imports)]
            use crate::journal::Thing::*;
            #[allow(unused_imports)]
            use crate::later::Later as L;
            #[allow(unused_imports)]
            use crate::links::Link as K;
            #[allow(unused_imports)]
            use crate::registrations::{Register::{Add, AddAll, Remove, RemoveAll}, Type as R};
            #[allow(unused_imports)]
            use crate::trees::Tree as T;
            use std::sync::atomic::AtomicUsize;
            pub(super) static REAL: AtomicUsize = AtomicUsize::new(0);
            pub(super) const HOW: How = $how;
            #[allow(clippy::too_many_arguments)]
            pub(super) extern "C" fn mediator(a: u64, b: u64, c: u64, d: u64, e: u64, f: u64, g: u64, h: u64) -> u64 {
                super::mediate(HOW, $name, &REAL, [a, b, c, d, e, f, g, h])
            }
        })*
        /// All of them.
        pub(crate) static ALL: &[Mediated] = &[
            $(Mediated { name: $name, mediator: $ident::mediator, how: $ident::HOW, real: &$ident::REAL }),*
        ];
    };
}

mediated! {
    "__kmalloc" kmalloc Gives,
    "__kmalloc_node" kmalloc_node Gives,
    "kmalloc_trace" kmalloc_trace GivesOf,
    "kmalloc_node_trace" kmalloc_node_trace GivesOf,
    "kmalloc_large" kmalloc_large Gives,
    "kmem_cache_alloc" cache_alloc GivesOf,
    "kmem_cache_alloc_lru" cache_alloc_lru GivesOf,
    "kmem_cache_alloc_node" cache_alloc_node GivesOf,
    "kvmalloc_node" kvmalloc_node Gives,
    "kmemdup" kmemdup Copies(S::Bytes),
    "kstrdup" kstrdup Copies(S::Text),
    "kstrndup" kstrndup Copies(S::Text),
    "__get_free_pages" get_free_pages Gives,
    "get_zeroed_page" get_zeroed_page Gives,
    "vmalloc" vmalloc Gives,
    "vzalloc" vzalloc Gives,
    "match_strdup" match_strdup Copies(S::Between),
    "gf128mul_init_4k_lle" gf128mul_init Copies(S::Whole(16)),
    "kfree" kfree Frees(0),
    "kvfree" kvfree Frees(0),
    "kfree_sensitive" kfree_sensitive Frees(0),
    "vfree" vfree Frees(0),
    "kmem_cache_free" cache_free FreesOf,
    "free_pages" free_pages_at FreesPage,
    "__bread_gfp" bread Takes(Buffer, Result),
    "__getblk_gfp" getblk Takes(Buffer, Result),
    "__brelse" brelse GivesBack(Buffer, 0),
    "__bforget" bforget GivesBack(Buffer, 0),
    "__find_get_block" find_block Takes(Buffer, Result),
    "mullion_get_buffer" get_buffer Again(Buffer),
    "mullion_lock_buffer" lock_buffer Locks(Buffer, BufferLock),
    "unlock_buffer" unlock_buffer Opens(BufferLock, 0),
    "__bh_read" bh_read Opens(BufferLock, 0),
    "mullion_buffer_uptodate" buffer_uptodate OfOwn(Buffer),
    "mullion_buffer_not_uptodate" buffer_not_uptodate OfOwn(Buffer),
    "mullion_buffer_no_error" buffer_no_error OfOwn(Buffer),
    "read_cache_page" read_cache_page GivesPage(None),
    "read_cache_folio" read_cache_folio GivesPage(None),
    "pagecache_get_page" pagecache_get_page GivesPage(Some(2)),
    "grab_cache_page_write_begin" write_begin_page GivesPage(None),
    "mullion_get_page" get_page Again(Page),
    "mullion_put_page" put_page GivesBack(Page, 0),
    "mullion_lock_page" lock_page Locks(Page, PageLock),
    "unlock_page" unlock_page Opens(PageLock, 0),
    "folio_write_one" folio_write_one Opens(PageLock, 0),
    "block_write_full_page" write_full_page Opens(PageLock, 0),
    "generic_write_end" generic_write_end EndsWrite(5),
    "igrab" igrab Takes(Inode, Result),
    "ilookup" ilookup Takes(Inode, Result),
    "d_find_alias" find_alias Takes(Dentry, Result),
    "dput" dput GivesBack(Dentry, 0),
    "blk_start_plug" start_plug Nothing,
    "blk_finish_plug" finish_plug Nothing,
    "inode_init_once" inode_init_once MakesInode,
    "iget_locked" iget_locked TakesInode(Result),
    "iget5_locked" iget5_locked TakesInode(Result),
    "insert_inode_locked" insert_inode_locked TakesInode(IfZero),
    "unlock_new_inode" unlock_new_inode EndsNew,
    "mullion_super_begins" super_begins Takes(Unfrozen, Always),
    "mullion_super_ends" super_ends GivesBack(Unfrozen, 0),
    "crypto_alloc_shash" alloc_shash Takes(Hash, Result),
    "crypto_destroy_tfm" destroy_tfm EndsHash,
    "load_nls" load_nls Takes(Characters, Result),
    "load_nls_default" load_nls_default Takes(Characters, Result),
    "unload_nls" unload_nls GivesBack(Characters, 0),
    "new_inode" new_inode Takes(Inode, Result),
    "ihold" ihold Takes(Inode, Always),
    "iput" iput EndsInode(0),
    "iget_failed" iget_failed EndsInode(0),
    "discard_new_inode" discard_new_inode EndsInode(0),
    "truncate_inode_pages" truncate_pages EndsPages,
    "truncate_inode_pages_final" truncate_all_pages EndsPages,
    "truncate_pagecache" truncate_cache EndsPages,
    "truncate_setsize" truncate_size EndsPages,
    "d_make_root" d_make_root MakesRoot,
    "d_obtain_alias" d_obtain_alias GivesBack(Inode, 0),
    "d_splice_alias" d_splice_alias GivesBack(Inode, 0),
    "d_instantiate" d_instantiate GivesBack(Inode, 1),
    "d_instantiate_new" d_instantiate_new GivesBack(Inode, 1),
    "d_tmpfile" d_tmpfile GivesBack(Inode, 1),
    "kmem_cache_create" cache_create MakesCache(false),
    "kmem_cache_create_usercopy" cache_create_usercopy MakesCache(true),
    "kmem_cache_destroy" cache_destroy GivesBack(Cache, 0),
    "register_filesystem" register_filesystem Register(Add(R::FileSystem)),
    "unregister_filesystem" unregister_filesystem Register(Remove(R::FileSystem)),
    "__register_nls" register_characters Register(Add(R::Characters)),
    "unregister_nls" unregister_characters Register(Remove(R::Characters)),
    "crypto_register_notifier" register_notifier Register(Add(R::Notifier)),
    "crypto_unregister_notifier" unregister_notifier Register(Remove(R::Notifier)),
    "crypto_register_scomp" register_scomp Register(Add(R::Scomp)),
    "crypto_unregister_scomp" unregister_scomp Register(Remove(R::Scomp)),
    "crypto_register_scomps" register_scomps Register(AddAll(R::Scomp)),
    "crypto_unregister_scomps" unregister_scomps Register(RemoveAll(R::Scomp)),
    "mutex_lock" mutex_lock Closes(Mutex),
    "mutex_unlock" mutex_unlock GivesBack(Mutex, 0),
    "down_write" down_write Closes(Semaphore),
    "up_write" up_write GivesBack(Semaphore, 0),
    "down_read" down_read Takes(Readers, Always),
    "up_read" up_read GivesBack(Readers, 0),
    "mnt_want_write_file" want_write Takes(Mount, IfZero),
    "mnt_drop_write_file" drop_write GivesBack(Mount, 0),
    "crypto_register_shash" register_shash Register(Add(R::Shash)),
    "crypto_unregister_shash" unregister_shash Register(Remove(R::Shash)),
    "crypto_register_shashes" register_shashes Register(AddAll(R::Shash)),
    "crypto_unregister_shashes" unregister_shashes Register(RemoveAll(R::Shash)),
    "crypto_register_alg" register_alg Register(Add(R::Algorithm)),
    "crypto_unregister_alg" unregister_alg Register(Remove(R::Algorithm)),
    "crypto_register_algs" register_algs Register(AddAll(R::Algorithm)),
    "crypto_unregister_algs" unregister_algs Register(RemoveAll(R::Algorithm)),
    "um_set_signals" set_signals Switches,
    "mullion_pagefaults_off" pagefaults_off TurnsOff(PageFaults),
    "mullion_pagefaults_on" pagefaults_on TurnsOn(PageFaults),
    "mullion_bottom_halves_off" bottom_halves_off TurnsOff(BottomHalves),
    "mullion_bottom_halves_on" bottom_halves_on TurnsOn(BottomHalves),
    "mount_bdev" mount_bdev Mounts,
    "get_tree_bdev" get_tree GetsTree,
    "panic" panic GivesUp,
    "__alloc_percpu" alloc_percpu GivesPerCpu,
    "__alloc_percpu_gfp" alloc_percpu_gfp GivesPerCpu,
    "free_percpu" free_percpu GivesBack(PerCpu, 0),
    "alloc_workqueue" alloc_workqueue Takes(Queue, Result),
    "destroy_workqueue" destroy_workqueue GivesBack(Queue, 0),
    "mod_timer" mod_timer Later(L::Timer(0)),
    "timer_reduce" timer_reduce Later(L::Timer(1)),
    "mod_timer_pending" mod_timer_pending Later(L::Timer(2)),
    "add_timer" add_timer Later(L::AddTimer),
    "timer_delete" timer_delete Later(L::EndTimer(0)),
    "try_to_del_timer_sync" try_timer_delete Later(L::EndTimer(1)),
    "timer_delete_sync" timer_delete_sync Later(L::EndTimer(1)),
    "queue_work_on" queue_work Later(L::Work),
    "queue_delayed_work_on" queue_delayed_work Later(L::DelayedWork(0)),
    "mod_delayed_work_on" mod_delayed_work Later(L::DelayedWork(1)),
    "cancel_work" cancel_work Later(L::EndWork(0, 0)),
    "cancel_work_sync" cancel_work_sync Later(L::EndWork(1, 0)),
    "cancel_delayed_work" cancel_delayed_work Later(L::EndWork(0, 0)),
    "cancel_delayed_work_sync" cancel_delayed_work_sync Later(L::EndWork(1, 0)),
    "flush_work" flush_work Later(L::EndWork(1, 1)),
    "flush_delayed_work" flush_delayed_work Later(L::EndWork(1, 1)),
    "call_rcu" call_rcu Later(L::Callback),
    "radix_tree_lookup" tree_lookup Tree(T::Lookup),
    "radix_tree_insert" tree_insert Tree(T::Insert),
    "radix_tree_delete" tree_delete Tree(T::Delete),
    "radix_tree_delete_item" tree_delete_item Tree(T::DeleteItem),
    "radix_tree_gang_lookup" tree_gang_lookup Tree(T::Several),
    "alloc_netdev_mqs" alloc_netdev Makes(Device),
    "free_netdev" free_netdev GivesBack(Device, 0),
    "register_netdevice" register_netdevice HandsOver(Device),
    "register_netdev" register_netdev HandsOver(Device),
    "rtnl_link_register" link_register How::Link(K::Add),
    "__rtnl_link_register" link_register_locked How::Link(K::AddLocked),
    "rtnl_link_unregister" link_unregister How::Link(K::Remove),
    "__rtnl_link_unregister" link_unregister_locked How::Link(K::RemoveLocked),
    "rtnl_nla_parse_ifinfomsg" link_parse How::Link(K::Parse),
    "rtnl_link_get_net" link_net How::Link(K::FindNet),
    "rtnl_create_link" link_create How::Link(K::Create),
    "rtnl_configure_link" link_configure How::Link(K::Configure),
    "nla_strscpy" attribute_text How::Link(K::CopyText),
    "unregister_netdevice_queue" unregister_netdevice How::Link(K::Unregister),
    "mullion_put_net" put_net GivesBack(Net, 0),
    "dev_addr_mod" dev_addr_mod SetsAddress,
    "ethtool_sprintf" ethtool_text WritesText,
    "__dev_forward_skb" dev_forward ForwardsPacket,
    "__pskb_pull_tail" pull_tail ChangesPacket,
    "pskb_expand_head" expand_head ChangesPacket,
    "rtnl_lock" rtnl_lock Enters(Networks),
    "rtnl_unlock" rtnl_unlock Leaves(Networks),
    "__alloc_skb" alloc_skb TakesPacket,
    "__netdev_alloc_skb" netdev_alloc_skb TakesPacket,
    "skb_clone" skb_clone TakesPacket,
    "skb_copy" skb_copy TakesPacket,
    "skb_copy_expand" skb_copy_expand TakesPacket,
    "skb_realloc_headroom" skb_realloc_headroom TakesPacket,
    "consume_skb" consume_skb GivesPacket(0),
    "kfree_skb_reason" kfree_skb GivesPacket(0),
    "__dev_kfree_skb_any" kfree_skb_any GivesPacket(0),
    "__dev_kfree_skb_irq" kfree_skb_irq GivesPacket(0),
    "netif_rx" netif_rx GivesPacket(0),
    "__netif_rx" netif_rx_bh GivesPacket(0),
    "netif_receive_skb" netif_receive GivesPacket(0),
    "__dev_queue_xmit" queue_xmit GivesPacket(0),
    "__alloc_pages" alloc_pages GivesPages,
    "__free_pages" free_pages FreesPages,
    "__blk_alloc_disk" alloc_disk Makes(Disk),
    "device_add_disk" add_disk AddsDisk,
    "put_disk" put_disk PutsDisk,
    "bio_endio" bio_endio GivesPacket(0),
    "mullion_bio_ends" bio_ends GivesPacket(0),
    "__register_blkdev" register_blkdev Takes(Major, IfZero),
    "unregister_blkdev" unregister_blkdev GivesBack(Major, 0),
    "mullion_read_sectors" read_sectors GivesMemory,
}
