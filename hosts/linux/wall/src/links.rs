//! Kinds of network devices, and devices that a message makes: what the kernel follows is the kernel's own meanwhile.
//!
//! ```text
//!   kernel ──► newlink of ours: the device is the module's, the message may be read ──► newlink of the module
//!   module ──► gate ──► mediator ──► ours: is it this message's attribute, this name space? ──► rtnl_create_link
//! ```
//!
//! `mullion_link.c` is the other side of this.

use crate::journal::{self, Thing};
use crate::kernel::Kernel;
use crate::{WALL, packets, slots};
use mullion_word::runtime::{Domain, Granted, caller, refuse};
use mullion_word_table::Access;
use std::ffi::{c_int, c_ulong, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, PoisonError};

/// What a function of the kernel does: the numbers of `mullion_link.c`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Link {
    Add,
    AddLocked,
    Remove,
    RemoveLocked,
    /// `rtnl_nla_parse_ifinfomsg`.
    Parse,
    /// `rtnl_link_get_net`.
    FindNet,
    /// `rtnl_create_link`.
    Create,
    /// `rtnl_configure_link`.
    Configure,
    /// `nla_strscpy`.
    CopyText,
    /// `unregister_netdevice_queue`.
    Unregister,
}

/// `struct mullion_links` of the module for kinds.
#[repr(C)]
struct Links {
    call: extern "C" fn(c_ulong, c_int, *const c_ulong, *mut c_ulong) -> c_int,
    fits: extern "C" fn(c_ulong, c_ulong) -> c_int,
    kill: extern "C" fn(c_ulong),
    owner: Option<extern "C" fn(c_ulong, c_ulong) -> c_ulong>,
    may_call: Option<extern "C" fn(c_ulong, c_ulong, *const slots::Argument) -> c_int>,
    may_register: Option<extern "C" fn(c_ulong, c_ulong) -> c_int>,
    has: Option<extern "C" fn(c_ulong, c_ulong)>,
    had: Option<extern "C" fn(c_ulong, c_ulong)>,
    shows: Option<extern "C" fn(c_ulong, c_ulong, c_ulong)>,
    hides: Option<extern "C" fn(c_ulong)>,
}

/// Bytes of a table of attributes, and of a device's name.
const TABLE: u64 = 496;
const NAME: u64 = 16;

static LINKS: AtomicPtr<Links> = AtomicPtr::new(std::ptr::null_mut());

/// Messages that may be read: by which module. Calls nest.
static SHOWN: Mutex<Vec<(c_ulong, Option<Granted>)>> = Mutex::new(Vec::new());

/// Finds the module for kinds, and tells it of the library. Without it there are none.
pub(crate) fn settle(kernel: Kernel) {
    if !LINKS.load(Ordering::Relaxed).is_null() {
        return;
    }
    let Some(found) = kernel.symbol("mullion_links", std::ptr::null_mut::<c_void>()) else {
        return;
    };
    let links = found as *mut Links;
    // SAFETY: it is the kernel's own structure of this form, which stays, and one task at a time is in here.
    unsafe {
        (*links).owner = Some(packets::owner);
        (*links).may_call = Some(slots::fits);
        (*links).may_register = Some(may_register);
        (*links).has = Some(has);
        (*links).had = Some(had);
        (*links).shows = Some(shows);
        (*links).hides = Some(hides);
    }
    LINKS.store(links, Ordering::Relaxed);
}

fn links() -> Option<&'static Links> {
    // SAFETY: `settle` has it from the kernel, where it stays, and nothing changes it any more.
    unsafe { LINKS.load(Ordering::Relaxed).as_ref() }
}

fn domain(number: c_ulong) -> Option<Domain> {
    WALL.get()?.domain(number)
}

extern "C" fn may_register(number: c_ulong, device: c_ulong) -> c_int {
    packets::fits(number, device) as c_int
}

/// A device that a message makes is the module's, as one that it has allocated.
extern "C" fn has(number: c_ulong, device: c_ulong) {
    if let Some(domain) = domain(number) {
        let rights = packets::rights_to_device(&domain, device);
        journal::takes_with(&domain, Thing::Device, [device, 0], rights);
    }
}

/// Who has asked for it frees it, unless it is registered.
extern "C" fn had(number: c_ulong, device: c_ulong) {
    if let Some(domain) = domain(number) {
        journal::gives(&domain, Thing::Device, device);
    }
}

extern "C" fn shows(number: c_ulong, start: c_ulong, bytes: c_ulong) {
    let right = || {
        let (wall, domain) = (WALL.get()?, domain(number)?);
        let (start, bytes) = (start as usize, bytes as usize);
        // SAFETY: the kernel keeps the message during this call, and the module only reads it.
        unsafe { wall.host.grant_for(&domain, start, bytes, false).ok() }
    };
    let right = (bytes != 0).then(right).flatten();
    let mut shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner);
    shown.push((number, right));
}

extern "C" fn hides(number: c_ulong) {
    let mut shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let at = shown.iter().rposition(|(of, _)| *of == number);
    let gone = at.map(|at| shown.remove(at));
    drop(shown);
    // Its right to memory ends here.
    drop(gone);
}

/// Whether the kind that a device names is the module's own. Then the device names ours.
pub(crate) fn fits(number: c_ulong, device: u64) -> bool {
    links().is_some_and(|links| (links.fits)(number, device) != 0)
}

/// The module was ended: devices of its kinds are not made any more.
pub(crate) fn kill(number: c_ulong) {
    if let Some(links) = links() {
        (links.kill)(number);
    }
}

/// A call of one of these functions.
pub(crate) fn mediate(name: &str, what: Link, arguments: [u64; 8]) -> u64 {
    let (Some(wall), Some(domain), Some(links)) = (WALL.get(), caller(), links()) else {
        return -i64::from(libc::ENODEV) as u64;
    };
    let number = wall.number(&domain);
    let first = arguments[0];
    let may = |start, bytes, access| domain.view().allows(start, bytes, access);
    let is_its = match what {
        Link::Remove | Link::RemoveLocked => journal::gives(&domain, Thing::Link, first),
        Link::Configure | Link::Unregister => packets::is_device(number, first),
        Link::Create => {
            journal::holds(&domain, Thing::Net, first) && may(arguments[1], NAME, Access::READ)
        }
        Link::Parse => may(first, TABLE, Access::WRITE),
        Link::CopyText => may(first, arguments[2], Access::WRITE),
        Link::Add | Link::AddLocked | Link::FindNet => true,
    };
    let mut result = 0;
    let to = &raw mut result;
    let is_done = is_its && (links.call)(number, what as c_int, arguments.as_ptr(), to) == 0;
    if !is_done {
        refuse(format!(
            "{name}: an argument is not the module's, or not of the message"
        ));
        return 0;
    }
    match what {
        Link::Add | Link::AddLocked if result as u32 == 0 => {
            journal::takes(&domain, Thing::Link, [first, number]);
        }
        Link::FindNet if !journal::is_nothing(result) => {
            journal::takes(&domain, Thing::Net, [result, 0]);
        }
        Link::Create if !journal::is_nothing(result) => has(number, result),
        _ => {}
    }
    result
}
