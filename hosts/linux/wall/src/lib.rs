//! The library that User-Mode Linux opens: its modules, each in a domain of its own (hosts/linux/README.md).
//!
//! ```text
//!   mullion=LIBRARY,FOLDER    FOLDER/lz4_compress.so and lz4_compress.toml: the module, and its policy
//!
//!   kernel ──► mullion_linux_load ──► a domain;  what the module imports is an exported symbol of the kernel
//!   kernel ──► mullion_linux_function ──► a gate, which the kernel calls as any other function
//! ```
//!
//! The kernel is one thread of its host process, and its tasks are fibres of that. They switch only in the kernel's own
//! code: so one task at a time is in here, and goes out again before another one runs. Handlers of interrupts do not come here.

mod allocators;
mod costs;
mod disks;
mod formats;
mod hands;
mod journal;
mod kernel;
mod later;
mod lends;
mod links;
mod live;
mod load;
mod packets;
mod registrations;
mod returns;
mod rights;
mod signals;
mod slots;
mod trees;
mod types;

use crate::kernel::{Functions, Kernel};
use mullion_word::runtime::{Domain, Host, Kept};
use std::ffi::{CStr, OsStr, c_char, c_int, c_ulong, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, OnceLock, PoisonError};

/// What there is once in the kernel.
struct Wall {
    host: Host,
    folder: PathBuf,
    kernel: Kernel,
    /// A domain's number is its place here, from 1.
    domains: Mutex<Vec<Domain>>,
}

static WALL: OnceLock<Wall> = OnceLock::new();

impl Wall {
    fn domain(&self, number: c_ulong) -> Option<Domain> {
        let domains = self.domains.lock().unwrap_or_else(PoisonError::into_inner);
        let at = usize::try_from(number).ok()?.checked_sub(1)?;
        domains.get(at).copied()
    }

    /// 0: it has none yet.
    fn number(&self, domain: &Domain) -> c_ulong {
        let domains = self.domains.lock().unwrap_or_else(PoisonError::into_inner);
        let at = domains.iter().rposition(|one| one.id() == domain.id());
        at.map_or(0, |at| at as c_ulong + 1)
    }
}

/// Begins. Modules and policies are in `folder`; `functions` are the kernel's.
///
/// # Safety
/// `folder` ends with a zero. `functions` stays as long as the process, and so do the functions that it names. Tasks have
/// stacks of `stack` bytes, and are switched as [`Host::fibres`] wants it. `here` may be written.
// SAFETY: the kernel looks for this name in the library that it opens, and nothing else has it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mullion_linux_start(
    folder: *const c_char,
    functions: *const Functions,
    stack: c_ulong,
    here: *mut *mut Kept,
) -> c_int {
    // SAFETY: the caller's `folder` ends with a zero, and its functions stay.
    let (folder, kernel) = unsafe { (CStr::from_ptr(folder), Kernel::new(&*functions)) };
    let folder = Path::new(OsStr::from_bytes(folder.to_bytes())).to_path_buf();
    let begin = || -> Result<Host, Box<dyn std::error::Error>> {
        let host = signals::blocked(Host::new)?;
        // SAFETY: the kernel's tasks have such stacks, and it copies what is here at each switch.
        unsafe { here.write(host.fibres(stack)) };
        // The task that runs gets its stacks now, and the thread its signals.
        host.prepare_thread()?;
        Ok(host)
    };
    match signals::keeping_stack(begin) {
        Ok(Ok(host)) => {
            host.on_fault(move |report| {
                kernel.say(&report.to_string());
                ended(kernel);
            });
            live::begin(host, &folder);
            costs::begin(&folder);
            let domains = Mutex::default();
            let wall = Wall {
                host,
                folder,
                kernel,
                domains,
            };
            if WALL.set(wall).is_err() {
                return -libc::EBUSY;
            }
            match signals::settle() {
                Ok(()) => 0,
                Err(error) => refuse(kernel, &error, libc::EIO),
            }
        }
        Ok(Err(error)) => refuse(kernel, &*error, libc::ENODEV),
        Err(error) => refuse(kernel, &error, libc::EIO),
    }
}

/// Modules that were ended meanwhile: others must not wait for them.
fn ended(kernel: Kernel) {
    let Some(wall) = WALL.get() else {
        return;
    };
    let domains = wall.domains.lock().unwrap_or_else(PoisonError::into_inner);
    let fresh = |domain: &Domain| domain.is_ended() && domain.tag() != TOLD;
    let all: Vec<(usize, Domain)> = domains.iter().copied().enumerate().collect();
    drop(domains);
    for (at, domain) in all.into_iter().filter(|(_, domain)| fresh(domain)) {
        domain.set_tag(TOLD);
        disks::kill(at as c_ulong + 1);
        links::kill(at as c_ulong + 1);
        match packets::kill(at as c_ulong + 1, &domain) {
            0 => {}
            count => kernel.say(&format!("{count} packets and requests were taken back")),
        }
        journal::at_once(&domain, || kernel.interrupts_on());
        kernel.ended(at as c_ulong + 1, give_back);
        // That comes back here.
        hands::end_others(&domain);
    }
}

/// The tag of a domain whose end the kernel knows.
const TOLD: u64 = 1;

/// All that the module had, and the rights to memory. The library of the kernel's thread for recovery calls it.
extern "C" fn give_back(domain: c_ulong) {
    let Some((wall, found)) = WALL
        .get()
        .and_then(|wall| Some((wall, wall.domain(domain)?)))
    else {
        return;
    };
    // Devices first, whose functions nobody calls then.
    packets::undo(domain);
    disks::undo(domain);
    let armed = later::undo(domain);
    trees::undo(domain);
    let count = journal::give_back(&found);
    let freed = rights::free_all(wall.kernel, &found);
    wall.kernel.say(&format!(
        "{count} things were given back, {armed} timers and works, and {freed} pieces of memory"
    ));
    let _in_use = mullion_linux_unload(domain);
}

fn refuse(kernel: Kernel, error: &dyn std::fmt::Display, number: c_int) -> c_int {
    kernel.say(&error.to_string());
    -number
}

/// Makes a domain of the module with this name. `of` is the kernel's own structure of it.
///
/// # Safety
/// `name` ends with a zero, and `domain` may be written.
// SAFETY: the kernel looks for this name in the library that it opens, and nothing else has it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mullion_linux_load(
    name: *const c_char,
    of: *mut c_void,
    domain: *mut c_ulong,
) -> c_int {
    let Some(wall) = WALL.get() else {
        return -libc::ENODEV;
    };
    // SAFETY: the caller's name ends with a zero.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    let loaded = signals::keeping_stack(|| load::load(wall, &name, of));
    let loaded = match loaded {
        Ok(Ok(loaded)) => loaded,
        Ok(Err(error)) => return refuse(wall.kernel, &format!("{name}: {error}"), libc::ENOEXEC),
        Err(error) => return refuse(wall.kernel, &error, libc::EIO),
    };
    live::named(wall.kernel, loaded, &name);
    hands::link(wall);
    let mut domains = wall.domains.lock().unwrap_or_else(PoisonError::into_inner);
    domains.push(loaded);
    // SAFETY: the caller lets it be written.
    unsafe { domain.write(domains.len() as c_ulong) };
    0
}

/// The gate of an exported function; null if there is none, or if the module was ended.
///
/// # Safety
/// `name` ends with a zero.
// SAFETY: the kernel looks for this name in the library that it opens, and nothing else has it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mullion_linux_function(domain: c_ulong, name: *const c_char) -> usize {
    // SAFETY: the caller's name ends with a zero.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    let domain = WALL.get().and_then(|wall| wall.domain(domain));
    let domain = domain.filter(|domain| !domain.is_ended());
    let gate = |domain: Domain| lends::through(&name, domain, domain.function(&name)? as usize);
    domain.and_then(gate).unwrap_or_default()
}

/// Ends a domain. Calls of its gates return error values from then on.
// SAFETY: the kernel looks for this name in the library that it opens, and nothing else has it.
#[unsafe(no_mangle)]
pub extern "C" fn mullion_linux_unload(domain: c_ulong) -> c_int {
    let Some((wall, found)) = WALL
        .get()
        .and_then(|wall| Some((wall, wall.domain(domain)?)))
    else {
        return -libc::EINVAL;
    };
    // Its beginning has failed or was ended, or it does not tidy up. The kernel's structure of it goes next, and nobody may find a
    // device or an algorithm of its by then.
    let given_back = match found.is_ended() {
        true => {
            packets::undo(domain);
            disks::undo(domain);
            journal::give_back(&found)
        }
        false => journal::give_back_registered(&found),
    };
    match given_back {
        0 => {}
        count => wall
            .kernel
            .say(&format!("{count} things that it has left were given back")),
    }
    // It does not come back, and what calls it later would fail.
    later::undo(domain);
    trees::undo(domain);
    rights::ended(&found);
    wall.kernel.say(&format!(
        "until now {} checked calls, {} rights to objects given, {} taken back; {} packets and requests lent, {} of them gone on",
        types::CALLS.load(Ordering::Relaxed),
        rights::GIVEN.load(Ordering::Relaxed),
        rights::TAKEN.load(Ordering::Relaxed),
        packets::LENT.load(Ordering::Relaxed),
        packets::GONE.load(Ordering::Relaxed)
    ));
    match found.unload() {
        Ok(()) => 0,
        Err(error) => refuse(wall.kernel, &error, libc::EBUSY),
    }
}

/// Takes memory that the kernel frees from all modules.
// SAFETY: the kernel looks for this name in the library that it opens, and nothing else has it.
#[unsafe(no_mangle)]
pub extern "C" fn mullion_linux_freed(start: c_ulong, bytes: c_ulong) {
    rights::freed(start, bytes);
}

/// A task is no more.
///
/// # Safety
/// `kept` is what the kernel has kept of it, and it is not put back.
// SAFETY: the kernel looks for this name in the library that it opens, and nothing else has it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mullion_linux_end(kept: *mut Kept) {
    if let Some(wall) = WALL.get() {
        // SAFETY: as the caller says.
        unsafe { wall.host.end_fibre(&mut *kept) };
    }
}
