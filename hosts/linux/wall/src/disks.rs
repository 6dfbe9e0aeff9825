//! Disks of modules, and requests (`bio`s): whose they are.
//!
//! ```text
//!   kernel ──► submit_bio ──► the request and its memory are lent ──► the module
//!   module ──► gate ──► mediator: is it lent to the module? ──► it is taken away ──► bio_endio
//!   the module is ended ──► its disks give errors at once, and go later; requests that it has fail
//! ```
//!
//! `mullion_block.c` is the other side of this.

use crate::journal::{self, Thing};
use crate::kernel::Kernel;
use crate::packets::{self, Lent};
use crate::{WALL, returns, slots, types};
use mullion_word::runtime::{Domain, Granted};
use std::ffi::{c_int, c_ulong};
use std::sync::atomic::{AtomicPtr, Ordering};

/// `struct mullion_piece` of the module for disks.
#[repr(C)]
#[derive(Clone, Copy)]
struct Piece {
    start: c_ulong,
    bytes: c_ulong,
    write: c_ulong,
}

/// `struct mullion_block` of the module for disks.
#[repr(C)]
struct Block {
    kill: extern "C" fn(c_ulong),
    undo: extern "C" fn(c_ulong),
    made: extern "C" fn(c_ulong, c_ulong),
    gone: extern "C" fn(c_ulong) -> c_int,
    adds: extern "C" fn(c_ulong) -> c_int,
    not_added: extern "C" fn(c_ulong),
    is_queue: extern "C" fn(c_ulong, c_ulong) -> c_int,
    fail: extern "C" fn(c_ulong),
    memory: extern "C" fn(c_ulong) -> c_ulong,
    fields: extern "C" fn(c_ulong, c_int, *mut Piece) -> c_int,
    owner: Option<extern "C" fn(c_ulong, c_ulong) -> c_ulong>,
    lend: Option<extern "C" fn(c_ulong, c_ulong, *const Piece, c_ulong)>,
    marks: Option<extern "C" fn(c_ulong) -> c_ulong>,
    leaves: Option<extern "C" fn(c_ulong, c_ulong)>,
    may_call: Option<extern "C" fn(c_ulong, c_ulong, *const slots::Argument) -> c_int>,
    is_module: Option<extern "C" fn(c_ulong, c_ulong) -> c_int>,
}

static BLOCK: AtomicPtr<Block> = AtomicPtr::new(std::ptr::null_mut());

/// Finds the module for disks, and tells it of the library. Without it there are no disks.
pub(crate) fn settle(kernel: Kernel) {
    if !BLOCK.load(Ordering::Relaxed).is_null() {
        return;
    }
    let Some(found) = kernel.symbol("mullion_block", std::ptr::null_mut()) else {
        return;
    };
    let block = found as *mut Block;
    // SAFETY: it is the kernel's own structure of this form, which stays, and one task at a time is in here.
    unsafe {
        (*block).lend = Some(lend);
        (*block).owner = Some(packets::owner);
        (*block).marks = Some(returns::marks);
        (*block).leaves = Some(returns::leaves);
        (*block).may_call = Some(slots::fits);
        (*block).is_module = Some(is_module);
    }
    BLOCK.store(block, Ordering::Relaxed);
}

fn block() -> Option<&'static Block> {
    // SAFETY: `settle` has it from the kernel, where it stays, and nothing changes it any more.
    unsafe { BLOCK.load(Ordering::Relaxed).as_ref() }
}

extern "C" fn lend(number: c_ulong, request: c_ulong, pieces: *const Piece, count: c_ulong) {
    let domain = WALL.get().and_then(|wall| wall.domain(number));
    if let Some(domain) = domain {
        // SAFETY: the kernel's module has filled in so many, and waits.
        let pieces = unsafe { std::slice::from_raw_parts(pieces, count as usize) };
        let pieces = pieces
            .iter()
            .map(|one| (one.start, one.bytes, one.write != 0));
        packets::lend_pieces(&domain, Lent::Request, (request, 0), pieces);
    }
}

/// Whether the kernel has this structure of the module.
extern "C" fn is_module(number: c_ulong, address: c_ulong) -> c_int {
    let domain = WALL.get().and_then(|wall| wall.domain(number));
    domain.is_some_and(|domain| types::is_module(&domain, address)) as c_int
}

fn number(domain: &Domain) -> c_ulong {
    WALL.get().map_or(0, |wall| wall.number(domain))
}

/// The module has made a disk.
pub(crate) fn made(domain: &Domain, disk: u64) {
    if let Some(block) = block() {
        (block.made)(number(domain), disk);
    }
}

/// A disk goes. Whether it can: the kernel makes requests for one that is added, until it is taken away.
pub(crate) fn goes(disk: u64) -> bool {
    block().is_none_or(|block| (block.gone)(disk) == 0)
}

/// A disk is added: from then on the kernel makes requests, and the module changes nothing of it. Else what is wrong with it.
pub(crate) fn adds(domain: &Domain, disk: u64) -> Result<(), &'static str> {
    match block().map_or(0, |block| (block.adds)(disk)) {
        0 => Err("is added already"),
        1 => {
            journal::has_rights(
                domain,
                Thing::Disk,
                disk,
                rights_to_disk(domain, disk, true),
            );
            Ok(())
        }
        _ => Err("has functions that are not the module's"),
    }
}

/// Rights to a disk's structure: the kernel follows most of it.
pub(crate) fn rights_to_disk(domain: &Domain, disk: u64, is_added: bool) -> Vec<Granted> {
    let (Some(wall), Some(block)) = (WALL.get(), block()) else {
        return Vec::new();
    };
    let mut pieces = [Piece {
        start: 0,
        bytes: 0,
        write: 0,
    }; 8];
    let count = (block.fields)(disk, c_int::from(is_added), pieces.as_mut_ptr());
    let right = |one: &Piece| {
        let (start, bytes) = (one.start as usize, one.bytes as usize);
        // SAFETY: the module has made the disk, and has these until it goes; what it writes there is the kernel's risk.
        unsafe { wall.host.grant_for(domain, start, bytes, one.write != 0) }.ok()
    };
    pieces
        .iter()
        .take(count as usize)
        .filter_map(right)
        .collect()
}

/// The kernel could not add it.
pub(crate) fn not_added(domain: &Domain, disk: u64) {
    if let Some(block) = block() {
        (block.not_added)(disk);
        journal::has_rights(
            domain,
            Thing::Disk,
            disk,
            rights_to_disk(domain, disk, false),
        );
    }
}

/// Whether it is the queue of a disk of the module's.
pub(crate) fn is_queue(domain: &Domain, queue: u64) -> bool {
    block().is_some_and(|block| (block.is_queue)(number(domain), queue) != 0)
}

/// A request fails.
pub(crate) fn fail(request: u64) {
    if let Some(block) = block() {
        (block.fail)(request);
    }
}

/// Where a page's structure has a number that is for its owner. `mullion_block.c` holds it against the kernel's.
const INDEX: u64 = 32;

/// Rights to pages, and to read their structures.
pub(crate) fn rights_to_pages(domain: &Domain, page: u64, order: u64) -> Vec<Granted> {
    let (Some(wall), Some(block)) = (WALL.get(), block()) else {
        return Vec::new();
    };
    let Some(structure) = wall.kernel.object(page) else {
        return Vec::new();
    };
    let count = 1_u64 << order.min(20);
    let memory = (block.memory)(page);
    // Of a page's structure the module has one number: the kernel believes the rest when the page goes back.
    let all = [
        (memory, count * 4096, true),
        (page, count * structure.bytes, false),
    ];
    let numbers = (0..count).map(|at| (page + at * structure.bytes + INDEX, 8, true));
    let right = |(start, bytes, write): (u64, u64, bool)| {
        // SAFETY: the kernel has given these pages to this module, and nobody else has them until they go back.
        unsafe {
            wall.host
                .grant_for(domain, start as usize, bytes as usize, write)
        }
        .ok()
    };
    all.into_iter().chain(numbers).filter_map(right).collect()
}

/// The module's disks give errors from now on.
pub(crate) fn kill(number: c_ulong) {
    if let Some(block) = block() {
        (block.kill)(number);
    }
}

/// The disks of an ended module go.
pub(crate) fn undo(number: c_ulong) {
    if let Some(block) = block() {
        (block.undo)(number);
    }
}
