//! `--mullion-dlopen`: libraries that a program opens by `dlopen` become parts of its image at link time, each under
//! names of its own. The C library finds them in a table (`sysroot/musl/src/ldso/libraries.h`).
//!
//! ```text
//! mullion cc -shared plug.c -o plug.so
//! mullion cc main.c --mullion-dlopen=plug.so -o program      plug.so's `init` becomes `__mullion_opened0_init`
//! ```
//!
//! Nothing is loaded when the program runs: all of it is in the image that is verified. An image takes libraries in
//! only if something that is linked calls `dlopen`, so one environment variable does for a whole build.

use crate::shared::{self, Found};
use crate::{DriverError, tools};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Environment variable that names libraries, and folders of them, with colons between them.
pub(crate) const OPENED: &str = "MULLION_DLOPEN";

/// What the linker is given for the libraries.
pub(crate) struct Opened {
    /// In front of everything else: the table, and the libraries.
    pub(crate) first: Vec<OsString>,
    /// At the end: names of one library that another one uses.
    pub(crate) last: Vec<OsString>,
    /// Holds the files until the link is done.
    _scratch: Option<tempfile::TempDir>,
}

/// One library of the table.
struct Library {
    path: PathBuf,
    /// Whether the link takes it in anyway, under its own names and with its constructors run at the start.
    linked: bool,
    symbols: Vec<Symbol>,
    undefined: BTreeSet<String>,
    /// Sections of constructors and destructors, in the order in which they run.
    constructors: Vec<String>,
    destructors: Vec<String>,
}

struct Symbol {
    name: String,
    weak: bool,
    /// Whether its address is the same in all threads.
    common: bool,
}

/// How the linker is told that the program's own names are for libraries that it opens. An image has no dynamic symbols.
const EXPORTS: &[&str] = &["--export-dynamic", "-export-dynamic", "-E"];

/// What an image with these arguments needs for the libraries that the environment names.
pub(crate) fn prepare(arguments: &mut Vec<OsString>) -> Result<Opened, DriverError> {
    let before = arguments.len();
    arguments.retain(|argument| !EXPORTS.iter().any(|name| argument == name));
    let exports = arguments.len() < before;
    let named = std::env::var_os(OPENED).unwrap_or_default();
    let nothing = Opened {
        first: Vec::new(),
        last: Vec::new(),
        _scratch: None,
    };
    let inputs = inputs(arguments);
    if named.is_empty() || !opens(&inputs)? {
        return Ok(nothing);
    }
    let mut libraries = Vec::new();
    for path in libraries_of(&named)? {
        let linked = inputs
            .iter()
            .any(|input| fs::canonicalize(input).is_ok_and(|it| it == path));
        libraries.push(read(path, linked)?);
    }
    let program = match exports {
        true => program(&inputs)?,
        false => BTreeSet::new(),
    };
    let scratch = tempfile::tempdir();
    let scratch = scratch.map_err(|cause| DriverError::io(&std::env::temp_dir(), cause))?;
    let mut first = vec![table(&program, &libraries, scratch.path())?];
    let mut needed = Vec::new();
    for (number, library) in libraries.iter().enumerate() {
        if !library.linked {
            first.push(renamed(number, library, scratch.path())?);
            needed.extend(shared::needed_by(&library.path));
        }
    }
    let needed = needed.into_iter();
    first.extend(needed.filter(|each| !arguments.contains(each)));
    let last = between(&libraries, scratch.path())?;
    Ok(Opened {
        first: shared::for_image(first),
        last: last.into_iter().collect(),
        _scratch: Some(scratch),
    })
}

/// The files that are linked, but for those of the sysroot.
pub(crate) fn inputs(arguments: &[OsString]) -> Vec<PathBuf> {
    let directories = shared::directories(arguments);
    let mut inputs = Vec::new();
    let mut value = false;
    for argument in arguments {
        let text = argument.as_bytes();
        if std::mem::take(&mut value) {
            continue;
        }
        value = matches!(text, b"-T" | b"-m" | b"-z" | b"-e" | b"-u" | b"-L" | b"-l");
        match text.strip_prefix(b"-l") {
            Some(name) if !name.is_empty() => {
                let name = std::ffi::OsStr::from_bytes(name);
                if let Found::Archive(path) = shared::find(name, &directories) {
                    inputs.push(path);
                }
            }
            _ if !text.starts_with(b"-") && Path::new(argument).is_file() => {
                inputs.push(PathBuf::from(argument));
            }
            _ => {}
        }
    }
    inputs
}

/// Whether something that is linked calls `dlopen`.
fn opens(inputs: &[PathBuf]) -> Result<bool, DriverError> {
    if inputs.is_empty() {
        return Ok(false);
    }
    // Scripts of the linker's are no objects, and nm says so.
    let output = tools::output(Command::new("nm").args(["-u", "-P"]).args(inputs))?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text
        .lines()
        .any(|line| line.split_whitespace().next() == Some("dlopen")))
}

/// The libraries, each once: a folder stands for those in it.
fn libraries_of(named: &std::ffi::OsStr) -> Result<Vec<PathBuf>, DriverError> {
    let mut found = Vec::new();
    for path in std::env::split_paths(named).filter(|path| !path.as_os_str().is_empty()) {
        let whole = fs::canonicalize(&path).map_err(|cause| DriverError::io(&path, cause))?;
        let candidates = match whole.is_dir() {
            true => crate::sysroot::entries(&whole)?
                .into_iter()
                .filter(|file| shared::is_library(file.as_os_str()))
                .filter_map(|file| fs::canonicalize(file).ok())
                .collect(),
            false if shared::is_object(&whole) => vec![whole],
            false => return Err(DriverError::NoLibrary(path)),
        };
        for library in candidates {
            if !found.contains(&library) {
                found.push(library);
            }
        }
    }
    Ok(found)
}

/// What is of interest in a library.
fn read(path: PathBuf, linked: bool) -> Result<Library, DriverError> {
    let (symbols, undefined) = symbols(&path)?;
    let said = readelf("-SW", &path)?;
    let mut sections: Vec<&str> = said
        .lines()
        .filter_map(|line| line.split(']').nth(1)?.split_whitespace().next())
        .collect();
    // `.init_array.00101` before `.init_array.65535`, and both before `.init_array`.
    sections.sort_by_key(|name| (name.matches('.').count() < 2, *name));
    sections.dedup();
    let those = |begin: &str| {
        let named = sections.iter().filter(|name| {
            name.strip_prefix(begin)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        });
        named.map(|name| (*name).to_owned()).collect::<Vec<_>>()
    };
    Ok(Library {
        constructors: those(".init_array"),
        destructors: those(".fini_array").into_iter().rev().collect(),
        path,
        linked,
        symbols,
        undefined,
    })
}

fn readelf(what: &str, file: &Path) -> Result<String, DriverError> {
    let mut command = Command::new("readelf");
    command.env("LC_ALL", "C").arg(what).arg(file);
    let said = tools::step(&mut command)?;
    Ok(String::from_utf8_lossy(&said).into_owned())
}

/// The names of an object that others see, and those that it misses.
fn symbols(file: &Path) -> Result<(Vec<Symbol>, BTreeSet<String>), DriverError> {
    let (mut defined, mut undefined) = (Vec::new(), BTreeSet::new());
    // `Num: Value Size Type Bind Vis Ndx Name`
    for line in readelf("-sW", file)?.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, _, _, kind, binding, sight, place, name, ..] = words[..] else {
            continue;
        };
        if !["GLOBAL", "WEAK", "UNIQUE"].contains(&binding) {
            continue;
        }
        if place == "UND" {
            undefined.insert(name.to_owned());
        } else if sight == "DEFAULT" || sight == "PROTECTED" {
            defined.push(Symbol {
                name: name.to_owned(),
                weak: binding != "GLOBAL",
                common: kind != "TLS",
            });
        }
    }
    Ok((defined, undefined))
}

/// The names of the program itself, which it exports (`-rdynamic`).
fn program(inputs: &[PathBuf]) -> Result<BTreeSet<String>, DriverError> {
    let mut names = BTreeSet::new();
    for input in inputs.iter().filter(|input| shared::is_object(input)) {
        let (symbols, _) = symbols(input)?;
        let wanted = symbols.into_iter().filter(|symbol| symbol.common);
        names.extend(wanted.map(|symbol| symbol.name));
    }
    Ok(names)
}

/// How a name of a library is called in the image. A name that may be there more than once stays as it is.
fn name_of(number: usize, library: &Library, symbol: &Symbol) -> String {
    match library.linked || symbol.weak {
        true => symbol.name.clone(),
        false => format!("__mullion_opened{number}_{}", symbol.name),
    }
}

/// How a section of a library is called in the image: so that the linker says where it begins and ends.
fn section_of(number: usize, kind: &str, index: usize) -> String {
    format!("__mullion_opened{number}_{kind}{index}")
}

/// A copy of a library under its own names.
fn renamed(number: usize, library: &Library, scratch: &Path) -> Result<OsString, DriverError> {
    let mut names = String::new();
    for symbol in library.symbols.iter().filter(|symbol| !symbol.weak) {
        let _ = writeln!(
            names,
            "{} {}",
            symbol.name,
            name_of(number, library, symbol)
        );
    }
    let list = scratch.join(format!("{number}.names"));
    fs::write(&list, names).map_err(|cause| DriverError::io(&list, cause))?;
    let mut command = Command::new("objcopy");
    command.arg("--redefine-syms").arg(&list);
    for (kind, sections) in [
        ("init", &library.constructors),
        ("fini", &library.destructors),
    ] {
        for (index, section) in sections.iter().enumerate() {
            let name = section_of(number, kind, index);
            command.args(["--rename-section", &format!("{section}={name}")]);
        }
    }
    let copy = scratch.join(format!("{number}.o"));
    tools::step(command.arg(&library.path).arg(&copy))?;
    Ok(copy.into())
}

/// The object with the table.
fn table(
    program: &BTreeSet<String>,
    libraries: &[Library],
    scratch: &Path,
) -> Result<OsString, DriverError> {
    let mut text = String::from(
        "\t.section .data.rel.ro,\"aw\",@progbits\n\t.balign 8\n\t.globl __mullion_libraries\n__mullion_libraries:\n",
    );
    for number in 0..=libraries.len() {
        let count = match number.checked_sub(1) {
            None => program.len(),
            Some(at) => listed(&libraries[at]).count(),
        };
        let _ = writeln!(
            text,
            "\t.quad .Lpath{number}, .Lsymbols{number}, {count}, .Linit{number}, .Lfini{number}, .Lstate{number}"
        );
    }
    text.push_str("\t.quad 0, 0, 0, 0, 0, 0\n");
    let mut strings = String::new();
    for number in 0..=libraries.len() {
        let mut symbols = BTreeMap::new();
        let mut path = String::new();
        for list in ["init", "fini"] {
            let _ = writeln!(text, ".L{list}{number}:");
            if let Some(at) = number.checked_sub(1) {
                let library = &libraries[at];
                let sections = match list {
                    "init" => &library.constructors,
                    _ => &library.destructors,
                };
                let own = sections.iter().enumerate().filter(|_| !library.linked);
                for (index, _) in own {
                    let name = section_of(at, list, index);
                    let _ = writeln!(text, "\t.quad __start_{name}, __stop_{name}");
                }
            }
            text.push_str("\t.quad 0, 0\n");
        }
        match number.checked_sub(1) {
            None => symbols.extend(program.iter().map(|name| (name.clone(), name.clone()))),
            Some(at) => {
                let library = &libraries[at];
                let named = |symbol: &Symbol| (symbol.name.clone(), name_of(at, library, symbol));
                symbols.extend(listed(library).map(named));
                path = quoted(&library.path);
            }
        }
        let _ = writeln!(strings, ".Lpath{number}:\n\t.asciz \"{path}\"");
        let _ = writeln!(text, ".Lsymbols{number}:");
        for (index, (name, value)) in symbols.iter().enumerate() {
            let _ = writeln!(text, "\t.quad .Lname{number}_{index}, \"{value}\"");
            let _ = writeln!(strings, ".Lname{number}_{index}:\n\t.asciz \"{name}\"");
        }
    }
    text.push_str("\t.section .rodata,\"a\",@progbits\n");
    text.push_str(&strings);
    text.push_str("\t.bss\n\t.balign 8\n");
    for number in 0..=libraries.len() {
        let _ = writeln!(text, ".Lstate{number}:\n\t.skip 16");
    }
    text.push_str("\t.section .note.GNU-stack,\"\",@progbits\n");
    let (source, object) = (scratch.join("table.s"), scratch.join("table.o"));
    fs::write(&source, text).map_err(|cause| DriverError::io(&source, cause))?;
    tools::step(Command::new("as").arg(&source).arg("-o").arg(&object))?;
    Ok(object.into())
}

/// The symbols of a library that `dlsym` finds.
fn listed(library: &Library) -> impl Iterator<Item = &Symbol> {
    library.symbols.iter().filter(|symbol| symbol.common)
}

fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

/// A script of the linker's for names of a library that another one misses: they count where nobody else has them.
fn between(libraries: &[Library], scratch: &Path) -> Result<Option<OsString>, DriverError> {
    let missed: BTreeSet<&String> = libraries.iter().flat_map(|it| &it.undefined).collect();
    let mut provided = BTreeMap::new();
    for (number, library) in libraries.iter().enumerate() {
        for symbol in library.symbols.iter().filter(|symbol| !symbol.weak) {
            if missed.contains(&symbol.name) {
                let own = name_of(number, library, symbol);
                provided.entry(&symbol.name).or_insert(own);
            }
        }
    }
    provided.retain(|name, own| *name != own);
    if provided.is_empty() {
        return Ok(None);
    }
    let mut text = String::new();
    for (name, own) in provided {
        let _ = writeln!(text, "PROVIDE(\"{name}\" = \"{own}\");");
    }
    let script = scratch.join("between.ld");
    fs::write(&script, text).map_err(|cause| DriverError::io(&script, cause))?;
    Ok(Some(script.into()))
}
