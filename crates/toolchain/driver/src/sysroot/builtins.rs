//! The compiler's helper library: what gcc calls for operations that the
//! machine has no instruction for, from compiler-rt's C sources.

use super::unit::{Unit, entries};
use crate::DriverError;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Files that are of no use in a domain: other systems, other compilers, a
/// processor query by `cpuid`, executable stacks, unwinding tables; and those
/// on `_Float16`, whose calling convention with gcc they do not know.
const LEFT_OUT: &[&str] = &[
    "apple_versioning",
    "atomic_flag_clear",
    "atomic_flag_clear_explicit",
    "atomic_flag_test_and_set",
    "atomic_flag_test_and_set_explicit",
    "atomic_signal_fence",
    "atomic_thread_fence",
    "cpu_model",
    "crtbegin",
    "crtend",
    "emutls",
    "enable_execute_stack",
    "eprintf",
    "gcc_personality_v0",
    "os_version_check",
    "trampoline_setup",
    "extendhfsf2",
    "extendhftf2",
    "truncdfbf2",
    "truncdfhf2",
    "truncsfbf2",
    "truncsfhf2",
    "trunctfhf2",
];

/// Everything that `libgcc.a` consists of.
pub(super) fn units(helpers: &Path, overlay: &Path) -> Result<Vec<Unit>, DriverError> {
    let source = helpers.join("builtins");
    let mut units = Vec::new();
    let own = entries(&overlay.join("builtins"))?;
    let theirs = entries(&source)?;
    // A file of ours stands in the place of theirs by the same name.
    let replaced = |path: &PathBuf| own.iter().any(|ours| ours.file_name() == path.file_name());
    for path in theirs.iter().filter(|path| !replaced(path)).chain(&own) {
        let stem = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let wanted =
            path.extension().is_some_and(|name| name == "c") && !LEFT_OUT.contains(&stem.as_str());
        if wanted {
            units.push(Unit {
                product: "libgcc.a",
                name: stem.clone(),
                options: options(&stem, &source),
                source: path.clone(),
            });
        }
    }
    Ok(units)
}

fn options(stem: &str, source: &Path) -> Vec<OsString> {
    let flags = [
        "-std=gnu11",
        "-fno-builtin",
        "-fomit-frame-pointer",
        "-ffunction-sections",
        "-g1",
    ];
    let mut options: Vec<OsString> = flags.iter().map(OsString::from).collect();
    options.push(
        format!(
            "-ffile-prefix-map={}=/sysroot/compiler-rt",
            source.display()
        )
        .into(),
    );
    options.push("-I".into());
    options.push(source.into());
    if is_quad(stem) {
        // The sources take `long double` for the 128-bit format; with this
        // option it is. The calling convention is that of `__float128`.
        options.push("-mlong-double-128".into());
    }
    options
}

/// Whether a file works on the 128-bit floating-point format (`tf` in its name).
fn is_quad(stem: &str) -> bool {
    stem.contains("tf") && !stem.contains("xf") || ["multc3", "divtc3"].contains(&stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quad_files_are_told_from_the_rest() {
        for quad in [
            "addtf3",
            "extenddftf2",
            "fixtfti",
            "multc3",
            "comparetf2",
            "powitf2",
        ] {
            assert!(is_quad(quad), "{quad}");
        }
        for other in ["mulxc3", "adddf3", "fixunsxfti", "floattixf"] {
            assert!(!is_quad(other), "{other}");
        }
    }
}
