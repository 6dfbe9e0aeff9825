//! Code that becomes part of a module. A library follows what its structures say, and those are the module's memory. Functions that only
//! read take no gate, and end the module's call alone if an address leads nowhere.

use crate::tree::Module;
use mullion_fetch::{FetchError, Lock, fetch};
use std::path::{Path, PathBuf};

/// A module, the source of its library, and files of that which are programs of their own.
const INSIDE: [(&str, &str, [&str; 2]); 1] = [("lua", "lua-5.3", ["lua.c", "luac.c"])];

/// Where functions are that only read what they are given.
#[must_use]
pub fn reads() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("inside");
    folder.join("reads.c")
}

/// Adds the files of libraries to the modules that need them, and functions that only read to all.
///
/// # Errors
/// A source cannot be had.
pub fn complete(modules: &mut [Module], lock: &Lock) -> Result<(), FetchError> {
    modules
        .iter_mut()
        .for_each(|module| module.files.push(reads()));
    for (name, source, programs) in INSIDE {
        let Some(module) = modules.iter_mut().find(|module| module.name == name) else {
            continue;
        };
        let folder = fetch(lock.source(source)?)?.join("src");
        let entries = std::fs::read_dir(&folder).map_err(|cause| FetchError::Io {
            path: folder.clone(),
            cause,
        })?;
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<String> = names
            .filter(|file| file.ends_with(".c") && !programs.contains(&file.as_str()))
            .collect();
        names.sort();
        module
            .files
            .extend(names.iter().map(|file| folder.join(file)));
    }
    Ok(())
}
