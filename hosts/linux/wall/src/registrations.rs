//! What modules register: the kernel has a structure of its own for each, which no module may write.
//!
//! ```text
//!   module ──► gate ──► mediator ──► ours: are its functions the module's? a copy ──► register_filesystem(copy)
//! ```
//!
//! `mullion_register.c` is the other side of this.

use crate::journal::{self, Thing};
use crate::kernel::Kernel;
use crate::{WALL, packets, rights, slots, types};
use mullion_word::runtime::{Domain, caller, refuse};
use std::ffi::{c_int, c_ulong, c_void};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// What is registered: the numbers of `mullion_register.c`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    FileSystem,
    /// A table of characters.
    Characters,
    Algorithm,
    Shash,
    Scomp,
    Notifier,
}

impl Type {
    /// The kernel's function that takes one of them back.
    fn removal(self) -> &'static str {
        match self {
            Type::FileSystem => "unregister_filesystem",
            Type::Characters => "unregister_nls",
            Type::Algorithm => "crypto_unregister_alg",
            Type::Shash => "crypto_unregister_shash",
            Type::Scomp => "crypto_unregister_scomp",
            Type::Notifier => "crypto_unregister_notifier",
        }
    }

    /// What the journal has of it.
    fn thing(self) -> Thing {
        match self {
            // The mounts of a type end with it.
            Type::FileSystem => Thing::FileSystem,
            _ => Thing::Registration,
        }
    }
}

/// What a function of the kernel does.
#[derive(Clone, Copy)]
pub(crate) enum Register {
    Add(Type),
    Remove(Type),
    /// As many as the second argument says.
    AddAll(Type),
    RemoveAll(Type),
}

/// `struct mullion_registrations` of the module for this.
#[repr(C)]
struct Registrations {
    copy: extern "C" fn(c_ulong, c_int, c_ulong) -> c_ulong,
    is_in: extern "C" fn(c_ulong, c_int),
    find: extern "C" fn(c_ulong, c_int, c_ulong) -> c_ulong,
    bytes: extern "C" fn(c_int) -> c_ulong,
    is_of_super: extern "C" fn(c_ulong, c_ulong) -> c_int,
    mapping: extern "C" fn(c_ulong, c_ulong) -> c_ulong,
    owner: Option<extern "C" fn(c_ulong, c_ulong) -> c_ulong>,
    fits: Option<extern "C" fn(c_ulong, c_ulong, *const slots::Argument) -> c_int>,
    lend: Option<extern "C" fn(c_ulong, c_ulong, c_ulong, c_ulong) -> *mut c_void>,
    end: Option<extern "C" fn(*mut c_void)>,
    real: Option<extern "C" fn(c_ulong) -> c_ulong>,
    module: Option<extern "C" fn(c_ulong) -> c_ulong>,
}

static OTHER: AtomicPtr<Registrations> = AtomicPtr::new(std::ptr::null_mut());

/// Finds the other side, and tells it of the library. Without it nothing is registered.
pub(crate) fn settle(kernel: Kernel) {
    if !OTHER.load(Ordering::Relaxed).is_null() {
        return;
    }
    let Some(found) = kernel.symbol("mullion_registrations", std::ptr::null_mut::<c_void>()) else {
        return;
    };
    let other = found as *mut Registrations;
    // SAFETY: it is the kernel's own structure of this form, which stays, and one task at a time is in here.
    unsafe {
        (*other).owner = Some(packets::owner);
        (*other).fits = Some(slots::fits);
        (*other).lend = Some(slots::lend);
        (*other).end = Some(slots::end);
        (*other).real = Some(real);
        (*other).module = Some(module);
    }
    OTHER.store(other, Ordering::Relaxed);
}

fn other() -> Option<&'static Registrations> {
    // SAFETY: `settle` has it from the kernel, where it stays, and nothing changes it any more.
    unsafe { OTHER.load(Ordering::Relaxed).as_ref() }
}

extern "C" fn real(address: c_ulong) -> c_ulong {
    types::real(address)
}

extern "C" fn module(number: c_ulong) -> c_ulong {
    let domain = WALL.get().and_then(|wall| wall.domain(number));
    domain.map_or(0, |domain| types::module(&domain))
}

/// Whether it keeps a mounted file system of the module's from being frozen.
pub(crate) fn is_of_super(domain: &Domain, semaphore: u64) -> bool {
    let number = WALL.get().map_or(0, |wall| wall.number(domain));
    other().is_some_and(|other| (other.is_of_super)(number, semaphore) != 0)
}

/// Where the mapping of an inode lies.
pub(crate) fn mapping_of(inode: u64) -> Option<u64> {
    other().map(|other| (other.mapping)(inode, 0))
}

/// The same of a block device.
pub(crate) fn mapping_of_device(device: u64) -> Option<u64> {
    other().map(|other| (other.mapping)(0, device))
}

fn call(function: u64, [one, other]: [u64; 2]) -> u64 {
    // SAFETY: the address is that of the kernel's function that registers, or of the one that takes it back. They take a structure of
    // their type, which ours is, and a number or a module.
    let function: extern "C" fn(u64, u64) -> u64 =
        unsafe { std::mem::transmute(function as usize) };
    function(one, other)
}

/// A call of one of these functions.
pub(crate) fn mediate(name: &str, what: Register, real: &AtomicUsize, arguments: [u64; 8]) -> u64 {
    let (Some(wall), Some(domain), Some(other)) = (WALL.get(), caller(), other()) else {
        return -i64::from(libc::ENODEV) as u64;
    };
    let real = real.load(Ordering::Relaxed) as u64;
    let (first, number) = (arguments[0], wall.number(&domain));
    let count = u64::from(arguments[1] as u32);
    let (of, count, adds) = match what {
        Register::Add(of) => (of, 1, true),
        Register::Remove(of) => (of, 1, false),
        Register::AddAll(of) => (of, count, true),
        Register::RemoveAll(of) => (of, count, false),
    };
    let bytes = (other.bytes)(of as c_int);
    // An address that no structure has is refused below.
    let own = |at: u64| first.wrapping_add(at.wrapping_mul(bytes));
    if !adds {
        for at in (0..count).rev() {
            let copy = (other.find)(number, of as c_int, own(at));
            if copy == 0 || !journal::gives(&domain, of.thing(), copy) {
                refuse(format!("{name}: {:#x} is not registered", own(at)));
                return 0;
            }
            call(real, [copy, 1]);
            (other.is_in)(copy, 0);
        }
        return 0;
    }
    // The second argument is a number, or nothing, but for this one.
    let second = match of {
        Type::Characters => types::module(&domain),
        _ => 1,
    };
    let mut done = Vec::new();
    for at in 0..count {
        let copy = (other.copy)(number, of as c_int, own(at));
        if copy == 0 {
            refuse(format!(
                "{name}: {:#x} has words that the kernel may not have",
                own(at)
            ));
            break;
        }
        rights::shows(wall.host, wall.kernel, &domain, copy);
        let result = call(real, [copy, second]);
        if result as u32 != 0 {
            done.reverse();
            for copy in done {
                take_back(wall.kernel, &domain, of, copy);
            }
            return result;
        }
        (other.is_in)(copy, 1);
        journal::takes(&domain, of.thing(), [copy, of as u64]);
        done.push(copy);
    }
    0
}

fn take_back(kernel: Kernel, domain: &Domain, of: Type, copy: u64) {
    if journal::gives(domain, of.thing(), copy) {
        undo(kernel, of, copy);
    }
}

fn undo(kernel: Kernel, of: Type, copy: u64) {
    let found = kernel.symbol(of.removal(), std::ptr::null_mut());
    if let (Some(found), Some(other)) = (found, other()) {
        call(found as u64, [copy, 1]);
        (other.is_in)(copy, 0);
    }
}

/// The journal gives one back that a module has left: where it is, and its type.
pub(crate) fn give_back(copy: u64, of: u64) {
    const ALL: [Type; 6] = [
        Type::FileSystem,
        Type::Characters,
        Type::Algorithm,
        Type::Shash,
        Type::Scomp,
        Type::Notifier,
    ];
    let of = ALL.into_iter().find(|one| *one as u64 == of);
    if let (Some(wall), Some(of)) = (WALL.get(), of) {
        undo(wall.kernel, of, copy);
    }
}
