//! Code that becomes part of a module. A library follows what its structures say, and those are the module's memory. Functions that only
//! read take no gate, and end the module's call alone if an address leads nowhere.

use crate::tree::Module;
use mullion_fetch::{FetchError, Lock, fetch};
use std::path::{Path, PathBuf};

/// A module, the source of its library, and files of that which are programs of their own.
const INSIDE: [(&str, &str, [&str; 2]); 1] = [("lua", "lua-5.3", ["lua.c", "luac.c"])];

/// Modules that follow trees of XML by APR's functions.
const XML: [&str; 2] = ["dav", "dav_fs"];

fn own(file: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("inside");
    folder.join(file)
}

/// Where functions are that only read what they are given.
#[must_use]
pub fn reads() -> PathBuf {
    own("reads.c")
}

/// Adds functions that only read to all modules, and those for trees of XML to the modules that need them.
pub fn add_own(modules: &mut [Module]) {
    for module in modules {
        module.files.push(reads());
        if XML.contains(&module.name.as_str()) {
            module.files.push(own("xml.c"));
        }
    }
}

/// The same, with the files of libraries for the modules that need them.
///
/// # Errors
/// A source cannot be had.
pub fn complete(modules: &mut [Module], lock: &Lock) -> Result<(), FetchError> {
    add_own(modules);
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
