//! gcc's libgcov, from its own sources: what `--coverage` and `-fprofile-generate` have in a program. It is built when a
//! program is first linked that asks for it.
//!
//! The counts are written when the program ends, below the names of its objects. So a program needs a directory that
//! is granted under its own name.

use super::unit::Unit;
use super::{Sysroot, gcc};
use crate::DriverError;
use mullion_rewriter::Options;
use std::path::{Path, PathBuf};

/// The library.
const LIBRARY: gcc::Library = gcc::Library {
    name: "gcov",
    product: PRODUCT,
    what: "the library of coverage and profiles is",
    parts: PARTS,
    recipe: include_str!("gcov.rs"),
    units,
};

/// The archive.
const PRODUCT: &str = "libgcov.a";

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
    LIBRARY.prepare(options)
}

fn units(sysroot: &Sysroot, scratch: &Path) -> Result<Vec<Unit>, DriverError> {
    let directories = ["gcc", "libgcc", "include"];
    let mut shared = gcc::options(sysroot, scratch, "gcov", &directories);
    shared.push("-fbuilding-libgcc".into());
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
    Ok(units)
}
