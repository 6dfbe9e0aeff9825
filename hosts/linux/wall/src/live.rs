//! What the running kernel tells of its walled modules: who may touch which memory now, and all that was granted and taken.
//!
//! ```text
//!   echo map > /proc/mullion    ──► FOLDER/map.json     mullion map map.json
//!   echo costs > /proc/mullion  ──► the kernel's log                            (costs.rs)
//!   echo trace > /proc/mullion  ──► FOLDER/trace.mmt    mullion model run trace.mmt     (if FOLDER/traced was there)
//! ```
//!
//! `mullion_live.c` is the other side of this.

use crate::kernel::{Kernel, Object};
use crate::{WALL, Wall, costs, signals};
use mullion_mmp::log::write_trace;
use mullion_picture::SupervisorState;
use mullion_word::runtime::{Domain, Host};
use std::ffi::{CStr, c_char, c_int};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// So many decisions are kept. A longer run has no trace, and says so.
const DECISIONS: usize = 1 << 24;

/// `struct mullion_live` of the module for questions.
#[repr(C)]
struct Live {
    tell: Option<extern "C" fn(*const c_char) -> c_int>,
}

/// The modules' names, as their domains came.
static NAMES: Mutex<Vec<(Domain, String)>> = Mutex::new(Vec::new());

/// Before the first module is loaded.
pub(crate) fn begin(host: Host, folder: &Path) {
    if folder.join("traced").is_file() {
        host.start_audit(DECISIONS);
    }
}

/// A module was loaded.
pub(crate) fn named(kernel: Kernel, domain: Domain, name: &str) {
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    let is_first = names.is_empty();
    let find = || kernel.symbol("mullion_live", std::ptr::null_mut());
    if let Some(found) = is_first.then(find).flatten() {
        // SAFETY: it is the kernel's own structure of this form, which stays, and one task at a time is in here.
        unsafe { (*(found as *mut Live)).tell = Some(tell) };
    }
    names.push((domain, name.to_owned()));
}

/// The module of this name that runs, if one does.
pub(crate) fn domain(name: &str) -> Option<Domain> {
    let names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    let latest = names.iter().rfind(|(_, of)| of == name);
    latest
        .map(|(domain, _)| *domain)
        .filter(|one| !one.is_ended())
}

/// Whether the module with this number runs.
pub(crate) fn runs(id: u32) -> bool {
    let names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    let found = names.iter().rfind(|(domain, _)| domain.id().get() == id);
    found.is_some_and(|(domain, _)| !domain.is_ended())
}

/// The name of the module with this number.
pub(crate) fn name(id: u32) -> Option<String> {
    let names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    let found = names.iter().rfind(|(domain, _)| domain.id().get() == id);
    found.map(|(_, name)| name.clone())
}

/// What lies at an address in the data of a module that runs: its kind is `data.` and the module's name.
pub(crate) fn data(address: u64) -> Option<Object> {
    let names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    let has = |domain: &Domain, start, bytes| domain.has_data(start as usize, bytes as usize);
    let is_it = |(domain, _): &&(Domain, String)| !domain.is_ended() && has(domain, address, 1);
    let (domain, name) = names.iter().rfind(is_it)?;
    let pieces = [64, 8].map(|bytes| (address & !(bytes - 1), bytes));
    let mut pieces = pieces.into_iter();
    let (start, bytes) = pieces.find(|(start, bytes)| has(domain, *start, *bytes))?;
    Some(Object {
        start,
        bytes,
        kind: format!("data.{name}"),
    })
}

extern "C" fn tell(word: *const c_char) -> c_int {
    // SAFETY: the kernel's module has ended it with a zero.
    let word = unsafe { CStr::from_ptr(word) }.to_bytes();
    let Some(wall) = WALL.get() else {
        return -libc::ENODEV;
    };
    let done = match word {
        b"map" => signals::aside(|| map(wall)),
        b"trace" => signals::aside(|| trace(wall)),
        b"costs" => {
            return match signals::aside(|| costs::lines(wall)) {
                Ok(Ok(lines)) => {
                    wall.kernel.say(&lines.join("\n"));
                    0
                }
                _ => -libc::EIO,
            };
        }
        _ => return -libc::EINVAL,
    };
    match done.unwrap_or_else(|error| Err(error.to_string())) {
        Ok(()) => 0,
        Err(why) => {
            wall.kernel.say(&why);
            -libc::EIO
        }
    }
}

fn map(wall: &Wall) -> Result<(), String> {
    let title = "Linux, and its modules behind the word wall";
    let mut state = SupervisorState::from(&wall.host.snapshot()).title(title);
    for (domain, name) in &*NAMES.lock().unwrap_or_else(PoisonError::into_inner) {
        state = state.name(domain.id(), name);
        if domain.is_ended() {
            state = state.ended(domain.id());
        }
    }
    let file = wall.folder.join("map.json");
    fs::write(&file, state.to_json()).map_err(|error| format!("{}: {error}", file.display()))
}

fn trace(wall: &Wall) -> Result<(), String> {
    let log = wall.host.take_audit();
    let log = log.ok_or("there is no trace: a file `traced` beside the modules asks for it")?;
    let place = wall.folder.join("trace.mmt");
    let said = |error: &dyn std::fmt::Display| format!("{}: {error}", place.display());
    let file = File::create(&place).map_err(|error| said(&error))?;
    let note = "User-Mode Linux, and its modules behind the word wall";
    let file = write_trace(&log, note, BufWriter::new(file));
    let mut file = file.map_err(|error| said(&error))?;
    file.flush().map_err(|error| said(&error))
}
