//! gcc's libgcov, from its own sources: what `--coverage` and `-fprofile-generate` have in a program. It is built when a
//! program is first linked that asks for it.
//!
//! ```text
//! gcov/KEY/text/assembler/libgcov.a/     assembler text; KEY covers the compiler, and this tree's part
//! sysroot/KEY/PROTECTION-gcov/           the archive of one protection and base
//! ```
//! The counts are written when the program ends, below the names of its objects. So a program needs a directory that
//! is granted under its own name.

use super::build;
use super::unit::Unit;
use super::{Sysroot, embedded, gcc, key_of, lock, place_of};
use crate::{DriverError, tools};
use mullion_fetch::Lock;
use mullion_rewriter::Options;
use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

/// The archive.
const PRODUCT: &str = "libgcov.a";
/// Its name in messages.
const WHAT: &str = "the library of coverage and profiles";

/// What of gcc's archive is unpacked.
const PARTS: &[&str] = &[
    "*/libgcc/libgcov*",
    "*/libgcc/gcov.h",
    "*/libgcc/gthr*.h",
    "*/gcc/gcov-io.*",
    "*/gcc/gcov-counter.def",
    "*/gcc/tsystem.h",
    "*/include/*.h",
];

/// Sources, and the macros that choose one function of each, as libgcc's makefile has them.
const SOURCES: &[(&str, &[&str])] = &[
    ("merge", &["add", "topn", "ior", "time_profile"]),
    (
        "profiler",
        &[
            "interval_profiler",
            "interval_profiler_atomic",
            "pow2_profiler",
            "pow2_profiler_atomic",
            "topn_values_profiler",
            "topn_values_profiler_atomic",
            "average_profiler",
            "average_profiler_atomic",
            "ior_profiler",
            "ior_profiler_atomic",
            "indirect_call_profiler_v4",
            "time_profiler",
        ],
    ),
    (
        "interface",
        &[
            "dump",
            "fork",
            "execl",
            "execlp",
            "execle",
            "execv",
            "execvp",
            "execve",
            "reset",
            "lock_unlock",
        ],
    ),
    ("driver", &["", "info_to_gcda"]),
];

/// The archive for these options, built if the cache does not have it.
///
/// # Errors
/// Another release of gcc, no sources, a step that failed, a full disk.
pub(crate) fn prepare(options: &Options) -> Result<PathBuf, DriverError> {
    gcc::archive(options, "gcov", WHAT, text).map(|place| place.join(PRODUCT))
}

/// The directory with the assembler text.
fn text(sysroot: &Sysroot) -> Result<PathBuf, DriverError> {
    let known = Lock::parse(embedded::text("sources.toml").unwrap_or_default())?;
    let source = known.source("libstdc++")?;
    let compiler = tools::compiler("MULLION_CC", "gcc");
    if let Some(found) = gcc::other_release(&compiler)? {
        return Err(DriverError::OtherGcc { found });
    }
    let mut hash = DefaultHasher::new();
    key_of(&compiler, &mut hash);
    for text in [
        include_str!("gcov.rs"),
        include_str!("gcc.rs"),
        include_str!("../compiler.rs"),
    ] {
        text.hash(&mut hash);
    }
    embedded::below(&[
        "gcov/",
        "headers/",
        "include/",
        "musl/include/",
        "sources.toml",
    ])
    .hash(&mut hash);
    let place = place_of("gcov", hash.finish())?;
    let done = place.join("text");
    if !done.is_dir() {
        let _guard = lock(&place)?;
        if !done.is_dir() {
            let tree = mullion_fetch::fetch(source)?;
            let scratch =
                tempfile::tempdir_in(&place).map_err(|cause| DriverError::io(&place, cause))?;
            gcc::unpack(&tree, scratch.path(), PARTS)?;
            let units = units(sysroot, scratch.path());
            let work =
                tempfile::tempdir_in(&place).map_err(|cause| DriverError::io(&place, cause))?;
            build::compile(&compiler, WHAT, &units, &[], work.path())?;
            tools::publish(work, &done)?;
        }
    }
    Ok(done)
}

fn units(sysroot: &Sysroot, scratch: &Path) -> Vec<Unit> {
    let mut shared: Vec<OsString> = vec![
        "-fbuilding-libgcc".into(),
        "-g1".into(),
        format!("-ffile-prefix-map={}=/sysroot/gcc", scratch.display()).into(),
        "-nostdinc".into(),
        "-I".into(),
        sysroot.overlay().join("gcov").into(),
    ];
    for directory in ["gcc", "libgcc", "include"] {
        shared.push("-I".into());
        shared.push(scratch.join(directory).into());
    }
    for directory in sysroot.headers() {
        shared.push("-isystem".into());
        shared.push(directory.into());
    }
    let mut units = Vec::new();
    for (file, functions) in SOURCES {
        for function in *functions {
            let merge = if *file == "merge" { "_merge" } else { "" };
            let name = format!("{merge}_{function}");
            let mut options = shared.clone();
            options.push(format!("-DL_gcov{}", name.trim_end_matches('_')).into());
            units.push(Unit {
                product: PRODUCT,
                name: format!("{file}{name}"),
                source: scratch.join(format!("libgcc/libgcov-{file}.c")),
                options,
            });
        }
    }
    units
}
