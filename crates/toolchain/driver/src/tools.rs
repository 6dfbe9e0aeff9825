//! The programs that are run, and the directory in which gcc finds ours.

use crate::DriverError;
use std::ffi::OsString;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The C or C++ compiler that does the work: what `variable` names; or `usual` in the version whose assembler
/// text is known best, where that is installed beside another; or `usual`.
pub(crate) fn compiler(variable: &str, usual: &str) -> OsString {
    let named = std::env::var_os(variable).filter(|name| !name.is_empty());
    named.unwrap_or_else(|| {
        let known = format!("{usual}-12");
        let installed = |folder: PathBuf| folder.join(&known).is_file();
        let path = std::env::var_os("PATH").unwrap_or_default();
        if std::env::split_paths(&path).any(installed) {
            known.into()
        } else {
            usual.into()
        }
    })
}

/// Runs a program and hands back what it wrote.
pub(crate) fn output(command: &mut Command) -> Result<Output, DriverError> {
    command
        .output()
        .map_err(|cause| cannot_start(command, cause))
}

/// Runs a step of a build: what it wrote to standard output, or an error with
/// the command line and what it said.
pub(crate) fn step(command: &mut Command) -> Result<Vec<u8>, DriverError> {
    let output = output(command)?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let words: Vec<_> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .collect();
    let line: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    Err(DriverError::Step {
        command: line.join(" "),
        said: String::from_utf8_lossy(&output.stderr)
            .trim_end()
            .to_owned(),
    })
}

pub(crate) fn cannot_start(command: &Command, cause: std::io::Error) -> DriverError {
    let program = command.get_program().to_string_lossy().into_owned();
    let package = match program.rsplit('/').next() {
        Some("as" | "ar" | "ld") => "binutils",
        Some("g++" | "g++-12") => "g++",
        Some("clang") => "clang",
        Some("cargo" | "rustc") => "rustup, then a toolchain",
        _ => "gcc",
    };
    DriverError::Start {
        program,
        package,
        cause,
    }
}

/// The names under which this program is found by what it runs: each is a subcommand, or this program.
const NAMES: &[&str] = &[
    "as",
    "ld",
    "mullion",
    "mullion-cc",
    "mullion-c++",
    "mullion-rustc",
    "mullion-rustc-ld",
];

/// The directory given to gcc with `-B`, one for each place where this program
/// is installed: `as`, `ld` and `mullion` lead back to it, `interpreter` is what a
/// program started directly is handed to, `interpreter.o` names that.
pub(crate) struct Tools {
    pub(crate) directory: PathBuf,
}

impl Tools {
    /// The directory, made if it is not there.
    pub(crate) fn prepare(overlay: &Path) -> Result<Self, DriverError> {
        let program = std::env::current_exe()
            .map_err(|cause| DriverError::io(Path::new("/proc/self/exe"), cause))?;
        let mut hash = DefaultHasher::new();
        program.as_os_str().as_bytes().hash(&mut hash);
        env!("MULLION_SYSROOT_KEY").hash(&mut hash);
        let cache = mullion_fetch::cache_directory()?.join("bin");
        let directory = cache.join(format!("{:016x}", hash.finish()));
        if !directory.is_dir() {
            fs::create_dir_all(&cache).map_err(|cause| DriverError::io(&cache, cause))?;
            let work =
                tempfile::tempdir_in(&cache).map_err(|cause| DriverError::io(&cache, cause))?;
            fill(work.path(), &directory, &program, overlay)?;
            publish(work, &directory)?;
        }
        Ok(Self { directory })
    }
}

fn fill(work: &Path, directory: &Path, program: &Path, overlay: &Path) -> Result<(), DriverError> {
    for name in NAMES {
        let link = work.join(name);
        std::os::unix::fs::symlink(program, &link)
            .map_err(|cause| DriverError::io(&link, cause))?;
    }
    let quoted = |path: &Path| {
        path.to_string_lossy()
            .replace('\\', "\\\\")
            .replace('"', "\\\"")
    };
    let gcc = compiler("MULLION_CC", "gcc");
    step(
        Command::new(&gcc)
            .args([
                "-O2",
                "-fPIE",
                "-static-pie",
                "-nostdlib",
                "-ffreestanding",
                "-fno-stack-protector",
                "-o",
            ])
            .arg(work.join("interpreter"))
            .arg(format!(
                "-DMULLION=\"{}\"",
                quoted(&directory.join("mullion"))
            ))
            .arg(overlay.join("crt/interpreter.c")),
    )?;
    let section = work.join("interpreter.s");
    let text = format!(
        "\t.section .interp,\"a\",@progbits\n\t.asciz \"{}\"\n\t.section .note.GNU-stack,\"\",@progbits\n",
        quoted(&directory.join("interpreter"))
    );
    fs::write(&section, text).map_err(|cause| DriverError::io(&section, cause))?;
    step(
        Command::new(&gcc)
            .arg("-c")
            .arg(&section)
            .arg("-o")
            .arg(work.join("interpreter.o")),
    )
    .map(drop)
}

/// Gives a finished directory its name. Somebody else may have been faster:
/// what has the same name has the same content.
pub(crate) fn publish(work: tempfile::TempDir, place: &Path) -> Result<(), DriverError> {
    match fs::rename(work.path(), place) {
        Ok(()) => {
            let _renamed = work.keep();
            Ok(())
        }
        Err(_) if place.is_dir() => Ok(()),
        Err(cause) => Err(DriverError::io(place, cause)),
    }
}
