//! What `mullion compile` needs for elastic Rust: a rustc with a judge in it, and a library without `std`.
//!
//! ```text
//! CACHE/rust/KEY/elastic-read-write-call/     core, alloc and what they are made of
//! CACHE/rust/KEY/elastic-alone/               the same, with nothing rewritten
//! CACHE/rust/judge-KEY/judge                  the judge, made of the compiler's own libraries (rustc-dev)
//! ```
//!
//! The judge is rustc for the crate that it judges: what it looks at is what it makes code of. Its sources are those
//! of the crate `mullion-judge`; here they are only compiled.

use super::arguments::Arguments;
pub use super::arguments::Elastic;
pub use super::depth::FLOOR;
use super::toolchain::Toolchain;
use super::{RELEASE, library, object, wrapper};
use crate::sysroot::{entries, lock};
use crate::{DriverError, tools};
use std::ffi::OsString;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles a crate of an elastic language; the compiler's exit status.
///
/// # Errors
/// As of [`super::rustc`].
pub fn rustc(elastic: Elastic, arguments: &[OsString]) -> Result<u8, DriverError> {
    let mut arguments = Arguments::parse(arguments)?;
    arguments.elastic = Some(elastic);
    wrapper::compile(&Toolchain::find()?, &arguments)
}

/// The assembler text of the library without `std`, as rustc has written it.
///
/// # Errors
/// As of [`super::rustc`].
pub fn texts() -> Result<Vec<PathBuf>, DriverError> {
    let mut found = entries(&library::as_made(&Toolchain::find()?)?)?;
    found.retain(|file| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let parts = ["core-", "alloc-", "compiler_builtins-"];
        name.ends_with(".s") && parts.iter().any(|part| name.starts_with(part))
    });
    Ok(found)
}

/// Links crates behind no wall but their language, and the library without `std`, into a library that a host opens.
/// It exports these functions, and asks the C library alone for what it does not define.
///
/// # Errors
/// As of [`super::rustc`]; the linker's, if anything else is asked for.
pub fn link(crates: &[PathBuf], exports: &[String], output: &Path) -> Result<(), DriverError> {
    let library = library::alone(&Toolchain::find()?)?;
    let scratch =
        tempfile::tempdir().map_err(|cause| DriverError::io(&std::env::temp_dir(), cause))?;
    let script = scratch.path().join("exports");
    let list: String = exports.iter().map(|name| format!("{name}; ")).collect();
    fs::write(&script, format!("{{ global: {list}local: *; }};\n"))
        .map_err(|cause| DriverError::io(&script, cause))?;
    let mut command = Command::new(tools::compiler("MULLION_CC", "gcc"));
    command.args(["-shared", "-nostdlib", "-Wl,--gc-sections", "-Wl,-S"]);
    command.args(["-Wl,-z,defs", "-Wl,-z,now", "-Wl,-z,relro"]);
    command.args(["-Wl,-z,noexecstack", "-Wl,--as-needed"]);
    let mut listed = OsString::from("-Wl,--version-script=");
    listed.push(&script);
    command.arg(listed);
    command.args(exports.iter().map(|name| format!("-Wl,-u,{name}")));
    // The environment calls what is in front of it.
    command.arg("-Wl,--start-group").args(crates);
    command.args(object::rlibs(&library.join(library::inner()))?);
    command.args(["-Wl,--end-group", "-lc", "-o"]).arg(output);
    tools::step(&mut command).map(drop)
}

/// A rustc with a judge in it, made of these files (names and texts) when first asked for.
///
/// # Errors
/// The toolchain has no `rustc-dev`; the message says how to get it.
pub fn judge(sources: &[(&str, &str)]) -> Result<PathBuf, DriverError> {
    let toolchain = Toolchain::find()?;
    let mut hash = DefaultHasher::new();
    sources.hash(&mut hash);
    toolchain.version()?.hash(&mut hash);
    toolchain.rustc().hash(&mut hash);
    let cache = mullion_fetch::cache_directory()?.join("rust");
    fs::create_dir_all(&cache).map_err(|cause| DriverError::io(&cache, cause))?;
    let place = cache.join(format!("judge-{:016x}", hash.finish()));
    let judge = place.join("judge");
    if !toolchain.has_its_own_libraries() {
        return Err(DriverError::NoRustDev { release: RELEASE });
    }
    if judge.is_file() {
        return Ok(judge);
    }
    let _guard = lock(&cache)?;
    if judge.is_file() {
        return Ok(judge);
    }
    let work = tempfile::tempdir_in(&cache).map_err(|cause| DriverError::io(&cache, cause))?;
    for (name, text) in sources {
        let file = work.path().join(name);
        fs::write(&file, text).map_err(|cause| DriverError::io(&file, cause))?;
    }
    let libraries = toolchain.libraries();
    let (mut native, mut found) = (
        OsString::from("-Lnative="),
        OsString::from("-Clink-arg=-Wl,-rpath,"),
    );
    native.push(&libraries);
    found.push(&libraries);
    let mut command = Command::new(toolchain.rustc());
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO") || text.starts_with("RUST") {
            command.env_remove(&name);
        }
    }
    command
        .current_dir(work.path())
        .env("RUSTC_BOOTSTRAP", "1")
        .args([
            "--edition=2024",
            "--crate-name=judge",
            "-Copt-level=1",
            "main.rs",
            "-o",
            "judge",
        ])
        .args([native, found]);
    tools::step(&mut command)?;
    tools::publish(work, &place)?;
    Ok(judge)
}
