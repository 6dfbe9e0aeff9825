//! Third-party sources, got by the package clients that the machine already
//! has, checked by digest against a lock file, unpacked once into a cache.
//!
//! ```text
//! lock file (sysroot/sources.toml)     what, which version, which SHA-256
//!        |
//!   cargo | apt-get                    the only programs that reach a network
//!        |
//! CACHE/sources/NAME-VERSION-DIGEST/   unpacked, complete or absent
//! ```
//!
//! A file that is already at hand can be offered by its own file name in the directory that `MULLION_SOURCES` names.
//! That is for machines without a network, and for systems without either client. What was installed beside a program
//! (`PREFIX/share/mullion/sources`, as `scripts/install` does) is taken from there: who can write that can write the
//! program.
#![forbid(unsafe_code)]

mod apt;
mod cache;
mod cargo;
mod error;
mod lock;

pub use cache::cache_directory;
pub use error::FetchError;
pub use lock::{Lock, Release, Source, SourceKind};

use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Directory of the unpacked source, fetched if the cache does not have it.
///
/// # Errors
/// No client, no network, a digest that the lock does not list, a full disk.
pub fn fetch(source: &Source) -> Result<PathBuf, FetchError> {
    if let Some(directory) = installed().and_then(|place| unpacked(&place, source)) {
        return Ok(directory);
    }
    let cache = cache_directory()?.join("sources");
    fs::create_dir_all(&cache).map_err(|cause| FetchError::io(&cache, cause))?;
    if let Some(directory) = unpacked(&cache, source) {
        return Ok(directory);
    }
    let _guard = cache::lock(&cache.join(format!(".{}.lock", source.name)))?;
    if let Some(directory) = unpacked(&cache, source) {
        return Ok(directory);
    }
    let work = tempfile::Builder::new()
        .prefix(".fetch-")
        .tempdir_in(&cache)
        .map_err(|cause| FetchError::io(&cache, cause))?;
    let bar = announce(source);
    let archive = match offered(source)? {
        Some(archive) => archive,
        None => match &source.kind {
            SourceKind::Crate => cargo::download(source, work.path()),
            SourceKind::DebianSource | SourceKind::DebianPackaging => {
                apt::download_source(source, work.path())
            }
            SourceKind::DebianPackage => apt::download_package(source, work.path()),
        }
        .map_err(|error| full(work.path()).unwrap_or(error))?,
    };
    let release = identify(source, &archive)?;
    let tree = work.path().join("tree");
    unpack(&archive, &tree)?;
    let place = cache.join(directory_name(source, release));
    fs::rename(&tree, &place).map_err(|cause| FetchError::io(&place, cause))?;
    bar.finish_and_clear();
    Ok(place)
}

/// Where an installed program has sources: `../share/mullion/sources`, from its own directory.
fn installed() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let prefix = program.parent()?.parent()?;
    Some(prefix.join("share/mullion/sources"))
}

/// That the disk is full, if it is: package clients then say something else.
fn full(work: &Path) -> Option<FetchError> {
    let probe = fs::write(work.join("probe"), [1; 1 << 16]);
    probe.err().map(|cause| FetchError::io(work, cause))
}

/// The release of `source` that is already unpacked, newest in the lock's order.
fn unpacked(cache: &Path, source: &Source) -> Option<PathBuf> {
    let mut places = source
        .releases
        .iter()
        .map(|release| cache.join(directory_name(source, release)));
    places.find(|place| place.is_dir())
}

fn directory_name(source: &Source, release: &Release) -> String {
    format!(
        "{}-{}-{}",
        source.name,
        release.version,
        &release.sha256[..12]
    )
}

/// A line on a terminal, nothing elsewhere: what the compiler says is read by scripts.
fn announce(source: &Source) -> indicatif::ProgressBar {
    let bar = indicatif::ProgressBar::new_spinner();
    bar.set_message(format!("fetching the sources of {}", source.name));
    bar.enable_steady_tick(std::time::Duration::from_millis(120));
    bar
}

/// The archive in `MULLION_SOURCES`, if somebody put it there.
fn offered(source: &Source) -> Result<Option<PathBuf>, FetchError> {
    let Some(directory) = std::env::var_os("MULLION_SOURCES").map(PathBuf::from) else {
        return Ok(None);
    };
    for release in &source.releases {
        let file = directory.join(source.file_name(release));
        if file.is_file() && digest(&file)? == release.sha256 {
            return Ok(Some(file));
        }
    }
    Ok(None)
}

/// The release that `archive` is, by its digest.
fn identify<'a>(source: &'a Source, archive: &Path) -> Result<&'a Release, FetchError> {
    let found = digest(archive)?;
    source
        .releases
        .iter()
        .find(|release| release.sha256 == found)
        .ok_or_else(|| FetchError::Digest {
            name: source.name.clone(),
            file: archive.to_path_buf(),
            found,
        })
}

/// SHA-256 of a file, in lower-case hexadecimal.
///
/// # Errors
/// The file cannot be read.
pub fn digest(file: &Path) -> Result<String, FetchError> {
    let mut hash = Sha256::new();
    let mut input = File::open(file).map_err(|cause| FetchError::io(file, cause))?;
    io::copy(&mut input, &mut hash).map_err(|cause| FetchError::io(file, cause))?;
    Ok(hash
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

/// Unpacks a tar archive without its first directory, or a Debian package whole.
fn unpack(archive: &Path, tree: &Path) -> Result<(), FetchError> {
    fs::create_dir_all(tree).map_err(|cause| FetchError::io(tree, cause))?;
    if archive
        .extension()
        .is_some_and(|extension| extension == "deb")
    {
        run(Command::new("dpkg-deb").arg("-x").arg(archive).arg(tree)).map(drop)
    } else {
        let mut tar = Command::new("tar");
        tar.arg("-xf")
            .arg(archive)
            .arg("-C")
            .arg(tree)
            .arg("--strip-components=1")
            .arg("--no-same-owner");
        run(&mut tar).map(drop)
    }
}

/// Runs a program to its end; its standard output, or what it said when it failed.
pub(crate) fn run(command: &mut Command) -> Result<String, FetchError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|cause| FetchError::Start {
        program: program.clone(),
        cause,
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = said
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let tail = lines[lines.len().saturating_sub(6)..].join("\n  ");
    Err(FetchError::Client {
        program,
        status: output.status,
        said: tail,
    })
}
