//! The compiled part of the C++ library. The headers are the compiler's own,
//! behind a few of this tree's that know musl; what they expect to find in an
//! archive is in `sysroot/cxx/src`.

use super::unit::{Unit, entries};
use crate::{DriverError, tools};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The file, in the common part of a sysroot, that lists the compiler's
/// directories of C++ headers.
pub(super) const DIRECTORIES: &str = "cxx-headers";

/// Everything that `libstdc++.a` consists of; nothing where there is no C++ compiler.
pub(super) fn units(gcc: &OsStr, overlay: &Path, work: &Path) -> Result<Vec<Unit>, DriverError> {
    let directories = compilers_headers(gcc)?;
    let file = work.join(DIRECTORIES);
    fs::write(&file, directories.join("\n")).map_err(|cause| DriverError::io(&file, cause))?;
    if directories.is_empty() {
        return Ok(Vec::new());
    }
    let own = overlay.join("cxx/include");
    let headers: Vec<PathBuf> = std::iter::once(own)
        .chain(directories.iter().map(PathBuf::from))
        .collect();
    let mut options = options(overlay, &headers);
    options.push("-std=gnu++17".into());
    let stem = |source: &Path| {
        let stem = source.file_stem().unwrap_or_default();
        stem.to_string_lossy().into_owned()
    };
    let mut units = Vec::new();
    for source in entries(&overlay.join("cxx/src"))? {
        if source.extension().is_none_or(|name| name != "cc") {
            continue;
        }
        let name = stem(&source);
        if WORD.contains(&name.as_str()) {
            units.push(word(&name, source.clone(), &options));
        }
        units.push(Unit {
            product: "libstdc++.a",
            name,
            source,
            options: options.clone(),
        });
    }
    units.push(word("support", overlay.join("word/cxx.cc"), &options));
    Ok(units)
}

/// Options that all of the library is compiled with.
pub(super) fn options(overlay: &Path, headers: &[PathBuf]) -> Vec<OsString> {
    let flags = [
        "-nostdinc++",
        "-ffunction-sections",
        "-fdata-sections",
        "-g1",
    ];
    let mut options: Vec<OsString> = flags.iter().map(OsString::from).collect();
    options.push(format!("-ffile-prefix-map={}=/sysroot/mullion", overlay.display()).into());
    for directory in headers {
        options.push("-isystem".into());
        options.push(directory.into());
    }
    options
}

/// What modules of checked code have, too, with `sysroot/word/cxx.cc` in the place of the rest.
const WORD: &[&str] = &[
    "chrono",
    "errors",
    "exception",
    "failure",
    "hash",
    "landing",
    "list",
    "memory",
    "string",
    "tree",
    "types",
    "unwind",
];

fn word(name: &str, source: PathBuf, options: &[OsString]) -> Unit {
    let mut options = options.to_vec();
    options.push("-D__mullion_word__=1".into());
    Unit {
        product: super::pure::PRODUCT,
        name: format!("cxx-{name}"),
        source,
        options,
    }
}

/// The directories of C++ headers that the compiler searches by itself.
fn compilers_headers(gcc: &OsStr) -> Result<Vec<String>, DriverError> {
    let mut command = Command::new(gcc);
    command
        .args(["-E", "-v", "-x", "c++", "/dev/null"])
        .env("LC_ALL", "C");
    let said = tools::output(&mut command)?;
    if !said.status.success() {
        return Ok(Vec::new());
    }
    Ok(search_list(&String::from_utf8_lossy(&said.stderr)))
}

fn search_list(said: &str) -> Vec<String> {
    let behind = said
        .lines()
        .skip_while(|line| !line.starts_with("#include <...>"))
        .skip(1);
    let listed = behind
        .take_while(|line| line.starts_with(' '))
        .map(str::trim);
    listed
        .filter(|directory| directory.contains("/c++/"))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_search_list_is_read() {
        let said = "ignoring x\n#include \"...\" search starts here:\n#include <...> search starts here:\n \
                    /usr/include/c++/12\n /usr/include/x/c++/12\n /usr/include\nEnd of search list.\n /c++/no\n";
        assert_eq!(
            search_list(said),
            ["/usr/include/c++/12", "/usr/include/x/c++/12"]
        );
    }
}
