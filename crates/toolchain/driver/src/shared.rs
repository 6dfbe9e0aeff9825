//! `-shared`: what build systems take for a shared library is an object that becomes a part of each image at link time.
//!
//! ```text
//! mullion cc -shared a.o b.o -lz -o liba.so     ld -r, hidden names made local; -lz is written into .mullion.needed
//! mullion cc main.o -L. -la -o program          liba.so and what it needs are linked into the image, once each
//! ```
//!
//! As with libraries that are loaded, what is given first has a name that two of them define.

use crate::{DriverError, tools};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Environment variable that hands `-shared` from the driver to the linker.
pub(crate) const SHARED: &str = "MULLION_SHARED";
/// Its value for a library in C++, which needs that language's own.
pub(crate) const CXX: &str = "c++";

/// Where a library says what it needs: paths, and `-lNAME` of the sysroot, each with a zero byte behind it.
const NEEDED: &str = ".mullion.needed";

/// The linker's options that are kept for a library, without their dashes; those whose value is the next argument.
const KEPT: &[&str] = &[
    "whole-archive",
    "no-whole-archive",
    "start-group",
    "end-group",
    "(",
    ")",
    "r",
];
const KEPT_WITH_VALUE: &[&str] = &["m", "L", "u", "undefined", "defsym"];
/// Those that are left out with the next argument.
const LEFT_OUT_WITH_VALUE: &[&str] = &[
    "soname",
    "h",
    "version-script",
    "rpath",
    "rpath-link",
    "R",
    "z",
    "f",
    "F",
    "e",
    "entry",
    "I",
    "dynamic-linker",
    "dynamic-list",
    "plugin",
    "retain-symbols-file",
    "exclude-libs",
    "dependency-file",
    "T",
    "Map",
    "init",
    "fini",
    "a",
    "Y",
];

/// Whether a library is to be made.
pub(crate) fn is_asked_for() -> bool {
    std::env::var_os(SHARED).is_some_and(|value| !value.is_empty())
}

/// What a name behind `-l` was found to be.
pub(crate) enum Found {
    /// A library of ours.
    Library(PathBuf),
    /// An archive that was made here.
    Archive(PathBuf),
    /// Part of the sysroot, or nothing.
    Elsewhere,
}

/// The directories that are searched.
pub(crate) fn directories(arguments: &[OsString]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_bytes().strip_prefix(b"-L") {
            Some(b"") => found.extend(arguments.next().map(PathBuf::from)),
            Some(path) => found.push(PathBuf::from(OsStr::from_bytes(path))),
            None => {}
        }
    }
    found
}

pub(crate) fn find(name: &OsStr, directories: &[PathBuf]) -> Found {
    let file = |suffix: &str| match name.as_bytes().strip_prefix(b":") {
        Some(whole) => OsStr::from_bytes(whole).to_owned(),
        None => {
            let mut file = OsString::from("lib");
            file.push(name);
            file.push(suffix);
            file
        }
    };
    for directory in directories {
        let library = directory.join(file(".so"));
        if is_object(&library) {
            return Found::Library(library);
        }
        let archive = directory.join(file(".a"));
        if archive.exists() {
            // The sysroot's own are for the image alone.
            return match directory.join("program.o").exists() {
                true => Found::Elsewhere,
                false => Found::Archive(archive),
            };
        }
    }
    Found::Elsewhere
}

/// Whether the file is a relocatable object.
pub(crate) fn is_object(file: &Path) -> bool {
    let mut head = [0; 18];
    let read =
        fs::File::open(file).and_then(|mut file| std::io::Read::read_exact(&mut file, &mut head));
    read.is_ok() && head.starts_with(b"\x7fELF") && head[16..] == [1, 0]
}

/// Whether an input is a library of ours, by its name and by what it is.
pub(crate) fn is_library(input: &OsStr) -> bool {
    let name = Path::new(input).file_name().unwrap_or_default().as_bytes();
    let named = name.ends_with(b".so") || name.windows(4).any(|part| part == b".so.");
    named && is_object(Path::new(input))
}

/// The linker's arguments for a library, and what it needs besides.
pub(crate) fn for_library(arguments: Vec<OsString>) -> (Vec<OsString>, Vec<OsString>) {
    let directories = directories(&arguments);
    let (mut kept, mut needed) = (Vec::new(), Vec::new());
    if std::env::var_os(SHARED).is_some_and(|value| value == CXX) {
        needed.push("-lstdc++".into());
    }
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        if let Some(name) = argument.as_bytes().strip_prefix(b"-l") {
            match find(OsStr::from_bytes(name), &directories) {
                Found::Library(path) => needed.push(absolute(&path)),
                Found::Archive(path) => kept.push(path.into()),
                Found::Elsewhere => needed.push(argument),
            }
            continue;
        }
        if !argument.as_bytes().starts_with(b"-") {
            match is_library(&argument) {
                true => needed.push(absolute(Path::new(&argument))),
                false => kept.push(argument),
            }
            continue;
        }
        let text = argument.to_string_lossy().into_owned();
        let name = text.trim_start_matches('-');
        if KEPT_WITH_VALUE.contains(&name) {
            kept.push(argument);
            kept.extend(arguments.next());
        } else if LEFT_OUT_WITH_VALUE.contains(&name) {
            arguments.next();
        } else if KEPT.contains(&name) || text.starts_with("-L") || text.starts_with("--defsym=") {
            kept.push(argument);
        }
    }
    kept.push("--force-group-allocation".into());
    (kept, needed)
}

fn absolute(path: &Path) -> OsString {
    let whole = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    whole.into()
}

/// Makes hidden names local, as they are in a library that is loaded, and writes down what is needed.
pub(crate) fn finish(library: &Path, needed: &[OsString]) -> Result<(), DriverError> {
    let scratch = tempfile::NamedTempFile::new();
    let scratch = scratch.map_err(|cause| DriverError::io(&std::env::temp_dir(), cause))?;
    let mut text = Vec::new();
    for each in needed {
        text.extend(each.as_bytes());
        text.push(0);
    }
    fs::write(&scratch, text).map_err(|cause| DriverError::io(scratch.path(), cause))?;
    let mut added = OsString::from(format!("{NEEDED}="));
    added.push(scratch.path());
    let mut command = Command::new("objcopy");
    command.arg("--localize-hidden");
    if !needed.is_empty() {
        command.arg("--add-section").arg(added);
        command.args(["--set-section-flags", ".mullion.needed=exclude,readonly"]);
    }
    tools::step(command.arg(library)).map(drop)
}

/// What a library says that it needs.
pub(crate) fn needed_by(library: &Path) -> Vec<OsString> {
    let Ok(scratch) = tempfile::NamedTempFile::new() else {
        return Vec::new();
    };
    let mut section = OsString::from(format!("{NEEDED}="));
    section.push(scratch.path());
    let dumped = Command::new("objcopy")
        .arg("--dump-section")
        .arg(section)
        .arg(library)
        .arg("/dev/null")
        .stderr(std::process::Stdio::null())
        .status();
    if !dumped.is_ok_and(|status| status.success()) {
        return Vec::new();
    }
    let text = fs::read(scratch.path()).unwrap_or_default();
    let parts = text
        .split(|byte| *byte == 0)
        .filter(|part| !part.is_empty());
    parts
        .map(|part| OsString::from_vec(part.to_vec()))
        .collect()
}

/// The linker's arguments for an image: names of libraries become the libraries and all that they need.
pub(crate) fn for_image(arguments: Vec<OsString>) -> Vec<OsString> {
    let directories = directories(&arguments);
    let (mut linked, mut seen) = (Vec::new(), BTreeSet::new());
    let mut parts = false;
    let mut value = false;
    for argument in arguments {
        if std::mem::take(&mut value) {
            linked.push(argument);
            continue;
        }
        value = ["-o", "-T", "-m", "-z", "-e", "-u", "-L"]
            .iter()
            .any(|option| argument == *option);
        let library = match argument.as_bytes().strip_prefix(b"-l") {
            Some(name) => match find(OsStr::from_bytes(name), &directories) {
                Found::Library(path) => Some(path),
                _ => None,
            },
            None => is_library(&argument).then(|| PathBuf::from(&argument)),
        };
        match library {
            Some(library) => {
                parts = true;
                include(&library, &mut linked, &mut seen);
            }
            None => linked.push(argument),
        }
    }
    if parts {
        linked.extend(["-z", "muldefs"].map(OsString::from));
    }
    linked
}

/// A library and what it needs, each once. What is not there any more may be given in another way.
fn include(library: &Path, linked: &mut Vec<OsString>, seen: &mut BTreeSet<OsString>) {
    let path = absolute(library);
    if !seen.insert(path.clone()) || !is_object(Path::new(&path)) {
        return;
    }
    let needed = needed_by(Path::new(&path));
    linked.push(path);
    for each in needed {
        if !each.as_bytes().starts_with(b"-l") {
            include(Path::new(&each), linked, seen);
        } else if !linked.contains(&each) {
            linked.push(each);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn a_library_is_an_object_that_knows_what_it_needs() {
        let line = "-m elf_x86_64 -r -soname liba.so.1 --version-script=a.map -z now --gc-sections a.o b.o -lm -s";
        let (kept, needed) = for_library(words(line));
        let expected = "-m elf_x86_64 -r a.o b.o --force-group-allocation";
        assert_eq!(kept, words(expected));
        assert_eq!(needed, ["-lm"]);
    }

    #[test]
    fn an_image_has_each_library_once_and_all_that_it_needs() {
        let work = tempfile::tempdir().unwrap();
        let at = |name: &str| work.path().join(name);
        let line = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        for (name, needed) in [
            ("libb.so", line(&["-lm"])),
            ("liba.so", vec![at("libb.so").into(), "-lm".into()]),
        ] {
            crate::assembler::run(
                &[],
                None,
                "\t.hidden inner\n\t.globl inner\ninner:\n\tnop\n",
                &at(name),
            )
            .unwrap();
            finish(&at(name), &needed).unwrap();
        }
        let directory = work.path().display().to_string();
        let asked = line(&[
            "-o", "x.so", "main.o", "-L", &directory, "-la", "-lb", "-lc",
        ]);
        let path = |name: &str| absolute(&at(name)).into_string().unwrap();
        let (a, b) = (path("liba.so"), path("libb.so"));
        let expected = [
            "-o", "x.so", "main.o", "-L", &directory, &a, &b, "-lm", "-lc", "-z", "muldefs",
        ];
        assert_eq!(for_image(asked), line(&expected));
        assert_eq!(for_image(line(&["a.o", "-lc"])), line(&["a.o", "-lc"]));
    }
}
