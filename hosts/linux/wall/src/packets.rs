//! Packets (`sk_buff`s) and network devices: whose they are.
//!
//! ```text
//!   kernel ──► ndo_start_xmit ──► the packet is lent: its structure and its bytes ──► the module
//!   module ──► gate ──► mediator: is it the module's? ──► it is taken away ──► consume_skb, netif_rx
//!   the module is ended ──► its devices drop packets at once, and go later; packets that it has are freed
//! ```
//!
//! `mullion_net.c` is the other side of this.

use crate::journal::{self, Thing};
use crate::kernel::{Kernel, Object};
use crate::{WALL, disks, links, returns, rights, slots};
use mullion_word::runtime::{Domain, Granted};
use std::collections::BTreeMap;
use std::ffi::{c_int, c_ulong, c_void};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// `struct mullion_packet` of the module for networks.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Parts {
    skb: c_ulong,
    skb_bytes: c_ulong,
    head: c_ulong,
    head_bytes: c_ulong,
    end: c_ulong,
    is_shared: c_ulong,
}

/// `struct mullion_fields` of the module for networks.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Fields {
    first: c_ulong,
    end: c_ulong,
    private: c_ulong,
    counts: c_ulong,
    count_bytes: c_ulong,
}

/// `struct mullion_net` of the module for networks.
#[repr(C)]
struct Net {
    look: extern "C" fn(c_ulong, *mut Parts),
    kill: extern "C" fn(c_ulong),
    undo: extern "C" fn(c_ulong),
    is_device: extern "C" fn(c_ulong, c_ulong) -> c_int,
    free: extern "C" fn(c_ulong),
    fits: extern "C" fn(c_ulong, c_ulong) -> c_int,
    fields: extern "C" fn(c_ulong, *mut Fields),
    owner: Option<extern "C" fn(c_ulong, c_ulong) -> c_ulong>,
    lend: Option<extern "C" fn(c_ulong, *const Parts)>,
    back: Option<extern "C" fn(c_ulong, c_ulong) -> c_int>,
    device: Option<extern "C" fn(c_ulong, c_ulong)>,
    gone: Option<extern "C" fn(c_ulong, c_ulong)>,
    marks: Option<extern "C" fn(c_ulong) -> c_ulong>,
    leaves: Option<extern "C" fn(c_ulong, c_ulong)>,
    may_call: Option<extern "C" fn(c_ulong, c_ulong, *const slots::Argument) -> c_int>,
}

static NET: AtomicPtr<Net> = AtomicPtr::new(std::ptr::null_mut());

/// What can be lent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lent {
    /// A packet of a network.
    Packet,
    /// A request to a disk ([`disks`](crate::disks)).
    Request,
}

/// What a module has of a packet or request.
struct Loan {
    domain: u32,
    lent: Lent,
    /// Of a packet: where its bytes begin.
    head: u64,
    _rights: Vec<Granted>,
}

static PACKETS: Mutex<BTreeMap<u64, Loan>> = Mutex::new(BTreeMap::new());

/// Packets that were lent, and that modules have freed or handed on.
pub(crate) static LENT: AtomicUsize = AtomicUsize::new(0);
pub(crate) static GONE: AtomicUsize = AtomicUsize::new(0);

fn packets() -> MutexGuard<'static, BTreeMap<u64, Loan>> {
    PACKETS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Finds the module for networks, and tells it of the library. Without it there are no packets.
pub(crate) fn settle(kernel: Kernel) {
    if !NET.load(Ordering::Relaxed).is_null() {
        return;
    }
    let Some(found) = kernel.symbol("mullion_net", std::ptr::null_mut::<c_void>()) else {
        return;
    };
    let net = found as *mut Net;
    // SAFETY: it is the kernel's own structure of this form, which stays, and one task at a time is in here.
    unsafe {
        (*net).owner = Some(owner);
        (*net).lend = Some(lend);
        (*net).back = Some(back);
        (*net).device = Some(device);
        (*net).gone = Some(gone);
        (*net).marks = Some(returns::marks);
        (*net).leaves = Some(returns::leaves);
        (*net).may_call = Some(slots::fits);
    }
    NET.store(net, Ordering::Relaxed);
}

fn net() -> Option<&'static Net> {
    // SAFETY: `settle` has it from the kernel, where it stays, and nothing changes it any more.
    unsafe { NET.load(Ordering::Relaxed).as_ref() }
}

/// The module in whose data so many bytes lie. 0: in none, or it was ended.
pub(crate) extern "C" fn owner(address: c_ulong, bytes: c_ulong) -> c_ulong {
    let Some(wall) = WALL.get() else {
        return 0;
    };
    let domains = wall.domains.lock().unwrap_or_else(PoisonError::into_inner);
    let is_it =
        |domain: &Domain| !domain.is_ended() && domain.has_data(address as usize, bytes as usize);
    let at = domains.iter().rposition(is_it);
    at.map_or(0, |at| at as c_ulong + 1)
}

fn domain(number: c_ulong) -> Option<Domain> {
    WALL.get()?.domain(number)
}

/// The module has it, with these pieces of memory: where, how many bytes, and whether to write.
pub(crate) fn lend_pieces(
    domain: &Domain,
    lent: Lent,
    (what, head): (u64, u64),
    pieces: impl Iterator<Item = (u64, u64, bool)>,
) {
    let Some(wall) = WALL.get() else {
        return;
    };
    let right = |(start, bytes, write): (u64, u64, bool)| {
        let (start, bytes) = (start as usize, bytes as usize);
        // SAFETY: the kernel hands it over, and what the module writes there is the kernel's risk.
        unsafe { wall.host.grant_for(domain, start, bytes, write).ok() }
    };
    let loan = Loan {
        domain: domain.id().get(),
        lent,
        head,
        _rights: pieces.filter_map(right).collect(),
    };
    LENT.fetch_add(1, Ordering::Relaxed);
    let old = packets().insert(what, loan);
    // Behind the lock: it takes others.
    drop(old);
}

fn has(domain: &Domain, parts: &Parts) {
    // Others read the same bytes: a driver may not change them. The kernel follows the structure, and what lies behind the bytes.
    let is_own = parts.is_shared == 0;
    let bytes = parts.end.saturating_sub(parts.head);
    let pieces = [
        (parts.skb, parts.skb_bytes, false),
        (parts.head, bytes, is_own),
        (parts.end, parts.head_bytes.saturating_sub(bytes), false),
    ];
    let pieces = pieces.into_iter().filter(|(_, bytes, _)| *bytes != 0);
    lend_pieces(domain, Lent::Packet, (parts.skb, parts.head), pieces);
}

extern "C" fn lend(number: c_ulong, parts: *const Parts) {
    if let Some(domain) = domain(number) {
        // SAFETY: the kernel's module has filled it in.
        has(&domain, unsafe { &*parts });
    }
}

extern "C" fn back(number: c_ulong, packet: c_ulong) -> c_int {
    domain(number).is_some_and(|domain| gives(&domain, packet)) as c_int
}

/// A registered device is the module's to read until its memory is freed. The kernel follows most of it: the module writes numbers,
/// and its private memory.
extern "C" fn device(number: c_ulong, start: c_ulong) {
    let (Some(wall), Some(domain), Some(net)) = (WALL.get(), domain(number), net()) else {
        return;
    };
    let Some(object) = wall.kernel.object(start) else {
        return;
    };
    let mut fields = Fields::default();
    (net.fields)(start, &raw mut fields);
    let end = object.start + object.bytes;
    let pieces = [
        (start, fields.first, false),
        (fields.first, fields.end, true),
        (fields.end, fields.private, false),
        (fields.private, end, true),
    ];
    rights::has_pieces(wall.host, wall.kernel, &domain, &object, &pieces);
    if fields.count_bytes != 0 {
        let (counts, bytes) = (fields.counts as usize, fields.count_bytes as usize);
        // SAFETY: the kernel has made them for this device, and tells before it frees the device.
        let right = unsafe { wall.host.grant_for(&domain, counts, bytes, true) };
        let rights = right.into_iter().collect();
        journal::takes_with(&domain, Thing::Counts, [start, 0], rights);
    }
}

/// The counts of a device are freed, and it goes next.
extern "C" fn gone(number: c_ulong, start: c_ulong) {
    if let Some(domain) = domain(number) {
        journal::gives(&domain, Thing::Counts, start);
    }
}

/// A device that the module has made is the module's to write until it is registered.
pub(crate) fn rights_to_device(domain: &Domain, device: u64) -> Vec<Granted> {
    let Some(wall) = WALL.get() else {
        return Vec::new();
    };
    let object = wall.kernel.object(device);
    let right = |object: Object| {
        let bytes = object.start + object.bytes - device;
        // SAFETY: the kernel has made it for this module; what the module writes there is the kernel's risk.
        unsafe {
            wall.host
                .grant_for(domain, device as usize, bytes as usize, true)
        }
        .ok()
    };
    object.and_then(right).into_iter().collect()
}

/// The module has this packet from now on: it has allocated it, or copied.
pub(crate) fn takes(domain: &Domain, packet: u64) {
    if let Some(net) = net() {
        let mut parts = Parts::default();
        (net.look)(packet, &raw mut parts);
        has(domain, &parts);
    }
}

/// The kernel may have moved the bytes of a packet that the module has.
pub(crate) fn renews(domain: &Domain, packet: u64) {
    let Some(net) = net() else {
        return;
    };
    let mut parts = Parts::default();
    (net.look)(packet, &raw mut parts);
    let is_there = |loan: &Loan| loan.domain == domain.id().get() && loan.head == parts.head;
    if !packets().get(&packet).is_some_and(is_there) {
        has(domain, &parts);
    }
}

/// Whether the packet was the module's. It is that no longer.
pub(crate) fn gives(domain: &Domain, packet: u64) -> bool {
    let mut packets = packets();
    let is_its = packets
        .get(&packet)
        .is_some_and(|one| one.domain == domain.id().get());
    let gone = is_its.then(|| packets.remove(&packet));
    drop(packets);
    GONE.fetch_add(usize::from(is_its), Ordering::Relaxed);
    drop(gone);
    is_its
}

/// Whether the module has the packet.
pub(crate) fn is_its(domain: &Domain, packet: u64) -> bool {
    let packets = packets();
    packets
        .get(&packet)
        .is_some_and(|one| one.domain == domain.id().get())
}

/// Whether a device names functions of the module alone. The kernel calls them when it is registered.
pub(crate) fn fits(number: c_ulong, device: u64) -> bool {
    net().is_some_and(|net| (net.fits)(number, device) != 0) && links::fits(number, device)
}

/// Whether it is a registered device of the module.
pub(crate) fn is_device(number: c_ulong, device: u64) -> bool {
    net().is_some_and(|net| (net.is_device)(number, device) != 0)
}

/// In the task whose call was ended: the module's devices drop packets from now on, its packets are freed, its requests fail. Who
/// waits for a request may be that very task. How many of both those were.
pub(crate) fn kill(number: c_ulong, domain: &Domain) -> usize {
    if let Some(net) = net() {
        (net.kill)(number);
    }
    let id = domain.id().get();
    let all = packets();
    let own = all.iter().filter(|(_, loan)| loan.domain == id);
    let own: Vec<(u64, Lent)> = own.map(|(what, loan)| (*what, loan.lent)).collect();
    drop(all);
    for (what, lent) in &own {
        gives(domain, *what);
        match (lent, net()) {
            (Lent::Request, _) => disks::fail(*what),
            (Lent::Packet, Some(net)) => (net.free)(*what),
            (Lent::Packet, None) => {}
        }
    }
    own.len()
}

/// The devices of an ended module go.
pub(crate) fn undo(number: c_ulong) {
    if let Some(net) = net() {
        (net.undo)(number);
    }
}
