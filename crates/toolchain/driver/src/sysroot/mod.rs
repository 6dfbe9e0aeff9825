//! The sysroot: headers, C library, helper library and start-up objects, built
//! once on the user's machine from sources that a package client delivers.
//!
//! ```text
//! CACHE/sysroot/KEY/
//!    common/                  for every protection
//!       overlay/              this tree's sysroot/
//!       include/              the C library's headers and ours
//!       assembler/            everything, compiled to assembler text
//!    read-write-call/         rewritten, assembled, archived; made when first
//!    write-call/   trap/      asked for
//!    read-write-call-register/ ...  the same without %gs
//!    read-write-call-counted/ ...   the same with steps counted
//!    word-write/ ...          what of it modules of checked code bring along
//! ```
//!
//! KEY covers this tree's files, the rewriter and the compilers.

mod build;
mod builtins;
mod cxx;
mod embedded;
mod gcc;
mod gcov;
mod musl;
mod numbers;
mod pure;
mod unit;
mod whole;

pub(crate) use gcov::prepare as profiles;
pub(crate) use numbers::{DECIMAL, decimal, quadmath};
pub(crate) use pure::HEAP;
pub(crate) use unit::entries;
pub(crate) use whole::prepare as whole_cxx;

use crate::arguments::Kind;
use crate::{DriverError, tools};
use mullion_rewriter::{Base, Options, Wall};
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The linker script of modules of checked code, with its fields not yet filled in.
pub(crate) fn word_script() -> &'static str {
    embedded::text("word.ld").unwrap_or_default()
}

/// `setjmp` and `longjmp` of modules of checked code, for the assembler.
pub(crate) fn word_jumps() -> &'static str {
    embedded::text("word/jumps.s").unwrap_or_default()
}

/// The finished sysroot of one protection and base.
#[derive(Debug)]
pub struct Sysroot {
    common: PathBuf,
    library: PathBuf,
    compiler_headers: PathBuf,
}

/// The name of the library's directory.
pub(crate) fn directory_of(options: &Options) -> String {
    if let Wall::Word(protection) = options.wall {
        return format!("word-{}", protection.name());
    }
    let mut name = options.protection.name().to_owned();
    if options.base != Base::Segment {
        name = name + "-" + options.base.name();
    }
    if options.count {
        name += "-counted";
    }
    name
}

impl Sysroot {
    /// The sysroot of these options, built if the cache does not have it.
    ///
    /// # Errors
    /// No sources, no compiler, a step that failed, a full disk.
    pub fn prepare(options: &Options) -> Result<Self, DriverError> {
        let gcc = tools::compiler("MULLION_CC", "gcc");
        let place = mullion_fetch::cache_directory()?
            .join("sysroot")
            .join(key(&gcc));
        let sysroot = Self {
            common: place.join("common"),
            library: place.join(directory_of(options)),
            compiler_headers: place.join("common/compiler-headers"),
        };
        if !sysroot.library.is_dir() {
            let _guard = lock(&place)?;
            if !sysroot.common.is_dir() {
                build::common(&gcc, &place, &sysroot.common)?;
            }
            if !sysroot.library.is_dir() {
                build::library(options, &place, &sysroot.common, &sysroot.library)?;
            }
        }
        Ok(sysroot)
    }

    /// This tree's `sysroot/`, as files.
    pub(crate) fn overlay(&self) -> PathBuf {
        self.common.join("overlay")
    }

    /// Directory of the archives and start-up objects.
    #[must_use]
    pub fn library(&self) -> PathBuf {
        self.library.clone()
    }

    /// Directories of C headers, in the order in which they are searched.
    #[must_use]
    pub fn headers(&self) -> Vec<PathBuf> {
        vec![self.common.join("include"), self.compiler_headers.clone()]
    }

    /// Directories of C++ headers, searched before those of C.
    #[must_use]
    pub fn cxx_headers(&self) -> Vec<PathBuf> {
        let compilers = fs::read_to_string(self.common.join(cxx::DIRECTORIES)).unwrap_or_default();
        let own = self.overlay().join("cxx/include");
        std::iter::once(own)
            .chain(compilers.lines().map(PathBuf::from))
            .collect()
    }

    /// The start-up object of a kind of image.
    pub(crate) fn start(&self, kind: Kind) -> PathBuf {
        self.library.join(match kind {
            Kind::Program => "program.o",
            Kind::Extension => "extension.o",
        })
    }

    /// The linker script, with its fields not yet filled in.
    pub(crate) fn linker_script(&self) -> Result<String, DriverError> {
        let file = self.overlay().join("mullion.ld");
        fs::read_to_string(&file).map_err(|cause| DriverError::io(&file, cause))
    }
}

/// What the content of a sysroot depends on, as a name. The compilers are
/// known by place, size and time: asking them would cost more than all the rest.
fn key(gcc: &std::ffi::OsStr) -> String {
    let mut hash = DefaultHasher::new();
    env!("MULLION_SYSROOT_KEY").hash(&mut hash);
    key_of(gcc, &mut hash);
    format!("{:016x}", hash.finish())
}

/// The compilers' part of a key.
fn key_of(gcc: &std::ffi::OsStr, hash: &mut DefaultHasher) {
    let cxx = tools::compiler("MULLION_CXX", "g++");
    for place in [find_program(gcc), find_program(&cxx)] {
        place.as_os_str().as_bytes().hash(hash);
        if let Ok(metadata) = fs::metadata(&place) {
            metadata.len().hash(hash);
            metadata.modified().ok().hash(hash);
        }
    }
}

/// A directory of the cache, for what has that key.
fn place_of(kind: &str, key: u64) -> Result<PathBuf, DriverError> {
    let cache = mullion_fetch::cache_directory()?.join(kind);
    Ok(cache.join(format!("{key:016x}")))
}

/// Where `PATH` leads for a program.
fn find_program(name: &std::ffi::OsStr) -> PathBuf {
    let search = std::env::var_os("PATH").unwrap_or_default();
    let candidates = std::env::split_paths(&search).map(|directory| directory.join(name));
    let mut found = std::iter::once(PathBuf::from(name))
        .filter(|path| path.is_absolute())
        .chain(candidates);
    found
        .find(|path| path.is_file())
        .unwrap_or_else(|| PathBuf::from(name))
}

/// One builder at a time.
pub(crate) fn lock(place: &Path) -> Result<File, DriverError> {
    fs::create_dir_all(place).map_err(|cause| DriverError::io(place, cause))?;
    let path = place.join("lock");
    let file = File::create(&path).map_err(|cause| DriverError::io(&path, cause))?;
    file.lock().map_err(|cause| DriverError::io(&path, cause))?;
    Ok(file)
}
