//! What the libraries have in common that are built from gcc's own sources when a program first needs them.

use super::unit::{Unit, entries, file_name};
use super::{Sysroot, build, embedded, key_of, lock, place_of};
use crate::{DriverError, tools};
use mullion_fetch::Lock;
use mullion_rewriter::Options;
use std::ffi::{OsStr, OsString};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The release that the sources are of, and fit.
const RELEASE: &str = "12";

/// A library in C that is built when a program is first linked that needs it.
///
/// ```text
/// NAME/KEY/text/assembler/PRODUCT/       assembler text; KEY covers the compiler, and this tree's part
/// sysroot/KEY/PROTECTION-NAME/           the archive of one protection and base
/// ```
pub(super) struct Library {
    /// Of its directories.
    pub(super) name: &'static str,
    /// The archive.
    pub(super) product: &'static str,
    /// Its name in messages, and a verb: `decimal floating point is`.
    pub(super) what: &'static str,
    /// What of gcc's archive is unpacked.
    pub(super) parts: &'static [&'static str],
    /// The text of the file that says how it is built.
    pub(super) recipe: &'static str,
    /// What is compiled, of what was unpacked there.
    pub(super) units: fn(&Sysroot, &Path) -> Result<Vec<Unit>, DriverError>,
}

impl Library {
    /// The archive for these options, built if the cache does not have it.
    ///
    /// # Errors
    /// Another release of gcc, no sources, a step that failed, a full disk.
    pub(super) fn prepare(&self, options: &Options) -> Result<PathBuf, DriverError> {
        let what = self.in_messages();
        let place = archive(options, self.name, what, |sysroot| self.text(sysroot))?;
        Ok(place.join(self.product))
    }

    fn in_messages(&self) -> &'static str {
        self.what
            .rsplit_once(' ')
            .map_or(self.what, |parts| parts.0)
    }

    /// The directory with the assembler text.
    fn text(&self, sysroot: &Sysroot) -> Result<PathBuf, DriverError> {
        let known = Lock::parse(embedded::text("sources.toml").unwrap_or_default())?;
        let source = known.source("libstdc++")?;
        let compiler = tools::compiler("MULLION_CC", "gcc");
        if let Some(found) = other_release(&compiler)? {
            let what = self.what;
            return Err(DriverError::OtherGcc { what, found });
        }
        let mut hash = DefaultHasher::new();
        key_of(&compiler, &mut hash);
        for text in [
            self.recipe,
            include_str!("gcc.rs"),
            include_str!("../compiler.rs"),
        ] {
            text.hash(&mut hash);
        }
        embedded::below(&[
            "gcov/",
            "quadmath/",
            "headers/",
            "include/",
            "musl/include/",
            "sources.toml",
        ])
        .hash(&mut hash);
        let place = place_of(self.name, hash.finish())?;
        let done = place.join("text");
        if !done.is_dir() {
            let _guard = lock(&place)?;
            if !done.is_dir() {
                let tree = mullion_fetch::fetch(source)?;
                let work =
                    || tempfile::tempdir_in(&place).map_err(|cause| DriverError::io(&place, cause));
                let (scratch, work) = (work()?, work()?);
                unpack(&tree, scratch.path(), self.parts)?;
                let units = (self.units)(sysroot, scratch.path())?;
                build::compile(&compiler, self.in_messages(), &units, &[], work.path())?;
                tools::publish(work, &done)?;
            }
        }
        Ok(done)
    }
}

/// Options of every unit of a library: the directories of ours and of gcc's sources, then the headers of the sysroot.
pub(super) fn options(
    sysroot: &Sysroot,
    scratch: &Path,
    own: &str,
    directories: &[&str],
) -> Vec<OsString> {
    let mut options: Vec<OsString> = vec![
        "-g1".into(),
        format!("-ffile-prefix-map={}=/sysroot/gcc", scratch.display()).into(),
        "-nostdinc".into(),
        "-I".into(),
        sysroot.overlay().join(own).into(),
    ];
    for directory in directories {
        options.push("-I".into());
        options.push(scratch.join(directory).into());
    }
    for directory in sysroot.headers() {
        options.push("-isystem".into());
        options.push(directory.into());
    }
    options
}

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
