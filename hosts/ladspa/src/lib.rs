//! A library of LADSPA plug-ins that loads other libraries of them, each behind the word wall (hosts/ladspa/README.md).
//!
//! ```text
//!   LADSPA_PATH=/usr/lib/ladspa-walled      libmullion_ladspa.so there, and walled/amp.so, walled/amp.toml, ...
//! ```
//!
//! Hosts know nothing of it: it is one library with all plug-ins of all those. `instance.rs` has the picture of ports.

mod abi;
mod instance;
mod plugin;

use abi::Descriptor;
use mullion_bridge::Request;
use plugin::{Library, Plugin};
use std::ffi::{CString, OsStr, c_ulong};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// What plug-ins may call, as policies speak of it.
const INTERFACE: &str = include_str!("../ladspa.toml");

/// Folders of walled libraries, separated by colons; if it is not set, `walled` beside this library.
const FOLDERS: &str = "MULLION_LADSPA_PATH";

fn plugins() -> &'static [&'static Plugin] {
    static ALL: OnceLock<Vec<&'static Plugin>> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut all = Vec::new();
        for file in files() {
            match load(&file) {
                Ok(found) => all.extend(found),
                // One library that cannot be loaded is no reason to do without the others.
                Err(why) => eprintln!("mullion: {why}"),
            }
        }
        all
    })
}

/// Files of modules, in the order of their names: numbers of plug-ins stay the same.
fn files() -> Vec<PathBuf> {
    let folders: Vec<PathBuf> = match std::env::var_os(FOLDERS) {
        Some(listed) => std::env::split_paths(&listed).collect(),
        None => own_folder()
            .map(|own| own.join("walled"))
            .into_iter()
            .collect(),
    };
    let mut files = Vec::new();
    for folder in folders {
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        found.retain(|file| file.extension().is_some_and(|extension| extension == "so"));
        found.sort();
        files.extend(found);
    }
    files
}

/// The folder that this library is in. It is pinned there: gates and handlers of signals are in it, and hosts close
/// libraries whose plug-ins they have looked at.
fn own_folder() -> Option<PathBuf> {
    // SAFETY: zeros are such a structure.
    let mut found = unsafe { std::mem::zeroed::<libc::Dl_info>() };
    // SAFETY: it fills the structure in, and the name that it finds stays.
    let name = unsafe {
        if libc::dladdr(own_folder as *const _, &raw mut found) == 0 {
            return None;
        }
        std::ffi::CStr::from_ptr(found.dli_fname)
    };
    Some(
        Path::new(OsStr::from_bytes(name.to_bytes()))
            .parent()?
            .to_path_buf(),
    )
}

fn stay() {
    // SAFETY: zeros are such a structure.
    let mut found = unsafe { std::mem::zeroed::<libc::Dl_info>() };
    // SAFETY: `found` has room for the answer, and the name in it stays while this library is loaded, which it is.
    unsafe {
        if libc::dladdr(stay as *const _, &raw mut found) != 0 {
            libc::dlopen(found.dli_fname, libc::RTLD_NOW | libc::RTLD_NODELETE);
        }
    }
}

fn resolve(name: &str) -> Option<usize> {
    if let Some(ours) = mullion_bridge::c_library(name) {
        return Some(ours);
    }
    let name = CString::new(name).ok()?;
    // SAFETY: the name ends with a zero.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found as usize)
}

fn load(file: &Path) -> Result<Vec<&'static Plugin>, String> {
    let loaded = mullion_bridge::load(Request {
        path: file,
        policy: None,
        interface: INTERFACE,
        resolve: &mut resolve,
        name_of: |_| None,
        always: &[],
        time: None,
    });
    let (module, _) = loaded.map_err(|error| error.to_string())?;
    Library::new(module).plugins()
}

/// The plug-in of a descriptor.
fn find(descriptor: *const Descriptor) -> Option<&'static Plugin> {
    let mut all = plugins().iter();
    let same = all.find(|plugin| std::ptr::eq(&raw const plugin.ours, descriptor));
    same.copied()
}

/// What hosts ask for the plug-ins of a library.
// SAFETY: hosts look for this name in each library of plug-ins, and nothing else has it.
#[unsafe(no_mangle)]
pub extern "C" fn ladspa_descriptor(number: c_ulong) -> *const std::ffi::c_void {
    if number == 0 {
        stay();
    }
    let plugin = usize::try_from(number)
        .ok()
        .and_then(|number| plugins().get(number));
    plugin.map_or(std::ptr::null(), |plugin| (&raw const plugin.ours).cast())
}
