//! A library's file, judged before any of its code runs.
//!
//! Only [`SipImage::read`] makes an [`SipImage`], and only an image can be loaded. The bytes that were judged are the
//! bytes that are loaded, whatever becomes of the file. Only the entries that name constructors and destructors are
//! written over, so that none of them runs.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use mullion_sip::Digest;
use mullion_sip::manifest::{self, BUILD, Build, Unreadable};
use mullion_sip::process::Limits;
use sha2::{Digest as _, Sha256};
use thiserror::Error;

use elf::Elf;
pub use elf::{ElfError, LibraryImports};
pub(crate) use elf::{Parts, Span};

mod elf;
mod imports;

/// Bytes of a library at most.
pub const LARGEST: u64 = 256 << 20;

/// A library that this host takes.
#[derive(Clone, Debug)]
pub struct SipImage {
    bytes: Vec<u8>,
    digest: Digest,
    name: String,
    limits: Limits,
    contracts: Vec<DeclaredContract>,
    parts: Parts,
}

/// A contract that a SIP speaks, by its manifest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeclaredContract {
    /// Its name.
    pub name: String,
    /// Its digest.
    pub digest: Digest,
}

/// Why a library was refused. None of its code has run.
#[derive(Debug, Error)]
#[error("{path}: {reason}", path = path.display())]
pub struct ImageError {
    /// Which file.
    pub path: PathBuf,
    /// Why.
    #[source]
    pub reason: ImageReason,
}

/// Why.
#[derive(Debug, Error)]
pub enum ImageReason {
    /// The file cannot be read.
    #[error("cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    /// It is a directory, a pipe or a device.
    #[error("is no regular file")]
    NotAFile,
    /// It is larger than [`LARGEST`].
    #[error("has {0} bytes, more than the {LARGEST} of the largest library that is read")]
    TooLarge(u64),
    /// It is not what the configuration pins.
    #[error(
        "has the SHA-256 {found}, the configuration wants {wanted}: it has changed; see `mullion sip check`, and pin it anew if that was intended"
    )]
    Changed {
        /// Of the configuration.
        wanted: Digest,
        /// Of the file.
        found: Digest,
    },
    /// It is no shared library for this machine, or does more when it is loaded than a Rust library does.
    #[error(transparent)]
    Elf(#[from] ElfError),
    /// It has no manifest.
    #[error("has no section {section}: it is no SIP; build it as a `cdylib` with `mullion_sip::sip_main!`", section = manifest::SECTION)]
    NoManifest,
    /// Its manifest cannot be read.
    #[error(transparent)]
    Manifest(#[from] Unreadable),
    /// It was built with something else than this host.
    #[error("was built with {what} {theirs}, this host with {ours}: {advice}")]
    Differs {
        /// What differs.
        what: What,
        /// Its.
        theirs: String,
        /// The host's.
        ours: String,
        /// What to do.
        advice: &'static str,
    },
}

/// What a library and its host must have in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// The compiler.
    Compiler,
    /// The target.
    Target,
    /// What a panic does.
    Panic,
    /// The sources of `mullion-sip`.
    Sources,
    /// The layout of what is shared.
    Layout,
}

impl std::fmt::Display for What {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            What::Compiler => "the compiler",
            What::Target => "the target",
            What::Panic => "the panic strategy",
            What::Sources => "mullion-sip's sources",
            What::Layout => "the memory layout",
        })
    }
}

impl SipImage {
    /// Reads and judges a library; if `pinned`, it must have that SHA-256.
    ///
    /// # Errors
    /// See [`ImageReason`].
    pub fn read(path: &Path, pinned: Option<Digest>) -> Result<SipImage, ImageError> {
        read_bounded(path)
            .and_then(|bytes| SipImage::judge(bytes, pinned))
            .map_err(|reason| ImageError {
                path: path.to_owned(),
                reason,
            })
    }

    /// Judges bytes; the same as [`SipImage::read`], wherever they are from.
    pub(crate) fn judge(bytes: Vec<u8>, pinned: Option<Digest>) -> Result<SipImage, ImageReason> {
        let found = Digest(Sha256::digest(&bytes).into());
        if let Some(wanted) = pinned.filter(|wanted| *wanted != found) {
            return Err(ImageReason::Changed { wanted, found });
        }
        let elf = Elf::parse(&bytes)?;
        let manifest = manifest::read(
            elf.section(manifest::SECTION)?
                .ok_or(ImageReason::NoManifest)?,
        )?;
        agrees(&manifest.build)?;
        let parts = elf.parts(manifest::ENTRY)?;
        let contracts = manifest.contracts.iter().map(|spoken| DeclaredContract {
            name: spoken.name.to_owned(),
            digest: spoken.digest,
        });
        Ok(SipImage {
            digest: found,
            name: manifest.name.to_owned(),
            limits: manifest.limits,
            contracts: contracts.collect(),
            parts,
            bytes,
        })
    }

    /// What the SIP calls itself.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The SHA-256 of the file.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The limits that it asks for.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// The contracts that it speaks.
    pub fn contracts(&self) -> &[DeclaredContract] {
        &self.contracts
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes to be loaded: those that were judged, but that nothing of them runs by being loaded.
    pub(crate) fn silenced(&self) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        for word in &self.parts.silenced {
            if let Some(place) = bytes.get_mut(word.at..word.at + 8) {
                place.copy_from_slice(&word.value.to_le_bytes());
            }
        }
        bytes
    }

    pub(crate) fn parts(&self) -> &Parts {
        &self.parts
    }
}

fn read_bounded(path: &Path) -> Result<Vec<u8>, ImageReason> {
    // To open a pipe that nobody writes would wait.
    let mut how = File::options();
    let file = how.read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(ImageReason::NotAFile);
    }
    let length = metadata.len();
    if length > LARGEST {
        return Err(ImageReason::TooLarge(length));
    }
    let mut bytes = Vec::with_capacity(length as usize);
    file.take(LARGEST).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Whether a library was built with what this host was.
fn agrees(theirs: &Build) -> Result<(), ImageReason> {
    const REBUILD: &str = "build it with the host's toolchain";
    const SOURCES: &str = "build it against the same version of mullion-sip";
    const LAYOUT: &str =
        "build both without flags that change layouts, and with the same versions of dependencies";
    let ours = &BUILD;
    let texts = [
        (What::Compiler, theirs.compiler, ours.compiler, REBUILD),
        (What::Target, theirs.target, ours.target, REBUILD),
        (
            What::Panic,
            theirs.panic,
            ours.panic,
            "build it with panic = \"unwind\"",
        ),
    ];
    let digests = [
        (What::Sources, theirs.sources, ours.sources, SOURCES),
        (What::Layout, theirs.layout, ours.layout, LAYOUT),
    ]
    .map(|(what, theirs, ours, advice)| (what, theirs.to_string(), ours.to_string(), advice));
    let texts =
        texts.map(|(what, theirs, ours, advice)| (what, theirs.into(), ours.into(), advice));
    match texts
        .into_iter()
        .chain(digests)
        .find(|(_, theirs, ours, _)| theirs != ours)
    {
        None => Ok(()),
        Some((what, theirs, ours, advice)) => Err(ImageReason::Differs {
            what,
            theirs,
            ours,
            advice,
        }),
    }
}
