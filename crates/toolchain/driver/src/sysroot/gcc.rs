//! What the libraries have in common that are built from gcc's own sources when a program first needs them.

use super::unit::{entries, file_name};
use super::{Sysroot, build, lock};
use crate::{DriverError, tools};
use mullion_rewriter::Options;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The release that the sources are of, and fit.
const RELEASE: &str = "12";

/// The directory with a library for these options, `sysroot/KEY/PROTECTION-SUFFIX/`, made from its assembler text if it
/// is not there.
///
/// # Errors
/// No sources, a step that failed, a full disk.
pub(super) fn archive(
    options: &Options,
    suffix: &str,
    what: &str,
    text: impl Fn(&Sysroot) -> Result<PathBuf, DriverError>,
) -> Result<PathBuf, DriverError> {
    let sysroot = Sysroot::prepare(options)?;
    let mut place = sysroot.library().into_os_string();
    place.push("-");
    place.push(suffix);
    let place = PathBuf::from(place);
    if !place.is_dir() {
        let parent = place.parent().unwrap_or(Path::new("."));
        let text = text(&sysroot)?;
        let _guard = lock(parent)?;
        if !place.is_dir() {
            let work =
                tempfile::tempdir_in(parent).map_err(|cause| DriverError::io(parent, cause))?;
            let texts = build::texts_of(&text)?;
            build::assemble(what, &texts, options, work.path())?;
            tools::publish(work, &place)?;
        }
    }
    Ok(place)
}

/// The release of a compiler, if it is another than the sources'.
pub(super) fn other_release(compiler: &OsStr) -> Result<Option<String>, DriverError> {
    let found = tools::step(Command::new(compiler).arg("-dumpversion"))?;
    let found = String::from_utf8_lossy(&found).trim().to_owned();
    Ok((found.split('.').next() != Some(RELEASE)).then_some(found))
}

/// Unpacks parts of gcc's archive, which Debian's holds.
pub(super) fn unpack(tree: &Path, scratch: &Path, parts: &[&str]) -> Result<(), DriverError> {
    let inner = entries(tree)?.into_iter().find(|file| {
        let name = file_name(file);
        name.starts_with("gcc-") && name.contains(".tar")
    });
    let inner = inner.ok_or_else(|| DriverError::Step {
        command: format!("unpack {}", tree.display()),
        said: "there is no archive of gcc in it".to_owned(),
    })?;
    let mut tar = Command::new("tar");
    tar.arg("-xf").arg(inner).arg("-C").arg(scratch);
    tar.args(["--strip-components=1", "--no-same-owner", "--wildcards"]);
    tools::step(tar.args(parts)).map(drop)
}
