//! The rest of the C++ library, from gcc's own sources: streams, locales, regular expressions, files, random numbers,
//! what threads have in common. It is built when a program is first linked that needs it.
//!
//! ```text
//! cxx/KEY/assembler/libstdc++-whole.a/   assembler text; KEY covers the compilers, and this tree's part of the library
//! sysroot/KEY/PROTECTION-cxx/            the archive of one protection and base
//! ```
//! `sysroot/cxx/src` stays: exceptions, types, memory, containers. So files of gcc's that define the same are left out.

use super::build;
use super::unit::{Unit, entries};
use super::{Sysroot, cxx, embedded, gcc, key_of, lock, place_of};
use crate::{DriverError, tools};
use mullion_fetch::Lock;
use mullion_rewriter::Options;
use std::ffi::OsString;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

/// The archive.
const PRODUCT: &str = "libstdc++-whole.a";
/// Its name in messages.
const WHAT: &str = "the whole C++ library";

/// What of gcc's archive is unpacked.
const PARTS: &[&str] = &[
    "*/libstdc++-v3/src/*",
    "*/libstdc++-v3/libsupc++/*.h",
    "*/libstdc++-v3/config/locale/generic/*",
    "*/libstdc++-v3/config/io/*",
    "*/libiberty/cp-demangle.*",
    "*/include/*.h",
];

/// One directory of sources.
struct Part {
    directory: &'static str,
    /// In front of the names of its texts.
    prefix: &'static str,
    flags: &'static [&'static str],
    /// Beginnings of names.
    left_out: &'static [&'static str],
    /// Files with other flags, which come behind.
    special: &'static [(&'static str, &'static [&'static str])],
}

/// Of the string before C++11.
const BEFORE: &[&str] = &["-std=gnu++11", "-D_GLIBCXX_USE_CXX11_ABI=0"];

/// gcc's own makefiles say how each is compiled. Left out is what `sysroot/cxx` has, what only old programs call, and
/// what was for compilers before C++11.
const SOURCES: &[Part] = &[
    Part {
        directory: "libstdc++-v3/src/c++98",
        prefix: "98",
        flags: &["-std=gnu++98", "-fno-implicit-templates"],
        left_out: &[
            "allocator-inst",
            "compatibility-",
            "hash-",
            "list",
            "math_stubs",
            "parallel",
            "stdexcept",
            "tree",
        ],
        special: &[
            ("locale_init", &["-std=gnu++11", "-fchar8_t"]),
            ("localename", &["-std=gnu++11", "-fchar8_t"]),
            (
                "concept-inst",
                &["-D_GLIBCXX_CONCEPT_CHECKS", "-fimplicit-templates"],
            ),
        ],
    },
    Part {
        directory: "libstdc++-v3/config/locale/generic",
        prefix: "locale",
        flags: &["-std=gnu++11", "-fno-implicit-templates"],
        left_out: &["messages_members"],
        special: &[],
    },
    // For code of the string before C++11, as gcc's libraries are: the rest of its streams is the same.
    Part {
        directory: "libstdc++-v3/config/locale/generic",
        prefix: "locale-before",
        flags: BEFORE,
        left_out: &["c_locale", "codecvt", "ctype", "messages", "time"],
        special: &[],
    },
    Part {
        directory: "libstdc++-v3/config/io",
        prefix: "io",
        flags: &["-std=gnu++98", "-fno-implicit-templates"],
        left_out: &[],
        special: &[],
    },
    Part {
        directory: "libstdc++-v3/src/c++11",
        prefix: "11",
        flags: &["-std=gnu++11", "-fno-implicit-templates"],
        left_out: &[
            "chrono",
            "compatibility",
            "cow-stdexcept",
            "cxx11-ios_failure",
            "cxx11-stdexcept",
            "functexcept",
            "functional",
            "hash",
            "snprintf_lite",
        ],
        special: &[("codecvt", &["-fchar8_t"]), ("limits", &["-fchar8_t"])],
    },
    Part {
        directory: "libstdc++-v3/src/c++17",
        prefix: "17",
        flags: &["-std=gnu++17"],
        left_out: &["cow-fs"],
        special: &[],
    },
    // What gcc has in an archive of its own: std::experimental::filesystem.
    Part {
        directory: "libstdc++-v3/src/filesystem",
        prefix: "filesystem",
        flags: &["-std=gnu++17"],
        left_out: &["cow-"],
        special: &[],
    },
    Part {
        directory: "libstdc++-v3/src/c++20",
        prefix: "20",
        flags: &["-std=gnu++20"],
        left_out: &[],
        special: &[],
    },
];

/// The archive for these options, built if the cache does not have it.
///
/// # Errors
/// Another release of g++, no sources, a step that failed, a full disk.
pub(crate) fn prepare(options: &Options) -> Result<PathBuf, DriverError> {
    gcc::archive(options, "cxx", WHAT, text).map(|place| place.join(PRODUCT))
}

/// The directory with the assembler text.
fn text(sysroot: &Sysroot) -> Result<PathBuf, DriverError> {
    let known = Lock::parse(embedded::text("sources.toml").unwrap_or_default())?;
    let source = known.source("libstdc++")?;
    let cxx = tools::compiler("MULLION_CXX", "g++");
    if let Some(found) = gcc::other_release(&cxx)? {
        return Err(DriverError::OtherCxx { found });
    }

    let mut hash = DefaultHasher::new();
    key_of(&tools::compiler("MULLION_CC", "gcc"), &mut hash);
    for text in [
        include_str!("whole.rs"),
        include_str!("cxx.rs"),
        include_str!("gcc.rs"),
        include_str!("../compiler.rs"),
    ] {
        text.hash(&mut hash);
    }
    embedded::below(&[
        "cxx/",
        "headers/",
        "include/",
        "musl/include/",
        "sources.toml",
    ])
    .hash(&mut hash);
    let place = place_of("cxx", hash.finish())?;
    let done = place.join("text");
    if !done.is_dir() {
        let _guard = lock(&place)?;
        if !done.is_dir() {
            let tree = mullion_fetch::fetch(source)?;
            compile(sysroot, &tree, &place, &done)?;
        }
    }
    Ok(done)
}

/// Compiles everything.
fn compile(sysroot: &Sysroot, tree: &Path, place: &Path, done: &Path) -> Result<(), DriverError> {
    let scratch = tempfile::tempdir_in(place).map_err(|cause| DriverError::io(place, cause))?;
    gcc::unpack(tree, scratch.path(), PARTS)?;
    // What gcc's configure script would write: files are 64 bits long anyway.
    let generated = scratch.path().join("generated/bits");
    fs::create_dir_all(&generated).map_err(|cause| DriverError::io(&generated, cause))?;
    let file = generated.join("largefile-config.h");
    fs::write(&file, "").map_err(|cause| DriverError::io(&file, cause))?;
    let units = units(sysroot, scratch.path())?;
    let mut system = vec![OsString::from("-nostdinc")];
    for directory in sysroot.headers() {
        system.push("-isystem".into());
        system.push(directory.into());
    }
    let work = tempfile::tempdir_in(place).map_err(|cause| DriverError::io(place, cause))?;
    let gcc = tools::compiler("MULLION_CC", "gcc");
    build::compile(&gcc, WHAT, &units, &system, work.path())?;
    tools::publish(work, done)
}

fn units(sysroot: &Sysroot, scratch: &Path) -> Result<Vec<Unit>, DriverError> {
    let mut shared = cxx::options(&sysroot.overlay(), &sysroot.cxx_headers());
    shared.push(format!("-ffile-prefix-map={}=/sysroot/gcc", scratch.display()).into());
    for directory in [
        "generated",
        "libstdc++-v3/libsupc++",
        "libstdc++-v3/src",
        "libstdc++-v3/src/c++98",
        "libstdc++-v3/src/c++11",
    ] {
        shared.push("-I".into());
        shared.push(scratch.join(directory).into());
    }
    let mut units = Vec::new();
    for part in SOURCES {
        for source in sources(&scratch.join(part.directory), part.left_out)? {
            let stem = stem(&source);
            let mut options = shared.clone();
            options.extend(part.flags.iter().map(OsString::from));
            let special = part.special.iter().find(|(name, _)| *name == stem);
            options.extend(
                special
                    .into_iter()
                    .flat_map(|(_, more)| *more)
                    .map(OsString::from),
            );
            units.push(Unit {
                product: PRODUCT,
                name: format!("{}-{stem}", part.prefix),
                source,
                options,
            });
        }
    }
    for source in sources(&sysroot.overlay().join("cxx/whole"), &[])? {
        let stem = stem(&source);
        let own: &[&str] = &["-std=gnu++17", "-fno-implicit-templates"];
        let before = (stem == "messages").then_some(("own-before", BEFORE));
        for (prefix, flags) in std::iter::once(("own", own)).chain(before) {
            let mut options = shared.clone();
            options.extend(flags.iter().map(OsString::from));
            units.push(Unit {
                product: PRODUCT,
                name: format!("{prefix}-{stem}"),
                source: source.clone(),
                options,
            });
        }
    }
    let flags = ["-DIN_GLIBCPP_V3", "-DHAVE_STDLIB_H", "-DHAVE_STRING_H"];
    let mut options: Vec<OsString> = flags.iter().map(OsString::from).collect();
    for directory in ["generated", "include"] {
        options.push("-I".into());
        options.push(scratch.join(directory).into());
    }
    options.extend(["-ffunction-sections", "-g1"].map(OsString::from));
    units.push(Unit {
        product: PRODUCT,
        name: "demangle".to_owned(),
        source: scratch.join("libiberty/cp-demangle.c"),
        options,
    });
    Ok(units)
}

/// The files of a directory, but for those whose names begin so.
fn sources(directory: &Path, left_out: &[&str]) -> Result<Vec<PathBuf>, DriverError> {
    let mut files = entries(directory)?;
    files.retain(|file| {
        let stem = stem(file);
        file.extension().is_some_and(|name| name == "cc")
            && !left_out.iter().any(|name| stem.starts_with(name))
    });
    Ok(files)
}

fn stem(source: &Path) -> String {
    let stem = source.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}
