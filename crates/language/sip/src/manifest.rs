//! The manifest of a separately built SIP, in a section of its file. A host can judge it before any of its code runs.
//!
//! ```text
//!   "mullion-sip\0"  format        what follows is read only if the format is known
//!   compiler, target, panic        must be the host's own: else nothing of what follows need agree
//!   sources, layout                of this crate, likewise
//!   name, limits, contracts        what the process is, wants and speaks
//! ```
//! Texts have their length in front (32 bits), numbers are 64 bits, digests 32 bytes; all little-endian.

use std::time::Duration;

use thiserror::Error;

use crate::kernel::Kernel;
use crate::kernel::ends;
use crate::kernel::offered::Offered;
use crate::process::Limits;
use crate::process::names::Names;
use crate::process::survey;
use crate::state::{self, State};
use mullion_sip_core::Core;
use mullion_sip_digest::Digest;
use mullion_sip_exchange::Interior;
use mullion_sip_exchange::channel;

/// The section of the file that a manifest is in.
pub const SECTION: &str = ".mullion.sip";
/// The function that a host calls to attach the SIP to itself.
pub const ENTRY: &str = "mullion_sip_entry";
/// Which format of manifests this is.
pub const FORMAT: u64 = 1;
const MAGIC: &[u8; 12] = b"mullion-sip\0";
/// Texts and lists of manifests are no longer than this; who reads one need not believe more.
const LONGEST: u64 = 1024;

/// What was used to build a copy of this crate. Copies with the same build can share their state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Build<'a> {
    /// As `rustc --version` says it.
    pub compiler: &'a str,
    /// The target triple.
    pub target: &'a str,
    /// What a panic does: `unwind` or `abort`.
    pub panic: &'a str,
    /// Of this crate and its macros: all that is between the two.
    pub sources: Digest,
    /// Sizes, alignments and places of the fields of what is shared.
    pub layout: Digest,
}

/// Of this copy.
pub const BUILD: Build<'static> = Build {
    compiler: env!("MULLION_SIP_RUSTC"),
    target: env!("MULLION_SIP_TARGET"),
    panic: if cfg!(panic = "unwind") {
        "unwind"
    } else {
        "abort"
    },
    sources: Digest::from_hexadecimal(env!("MULLION_SIP_SOURCES")),
    layout: layout(),
};

/// A contract that a SIP speaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spoken<'a> {
    /// The contract's name.
    pub name: &'a str,
    /// Its digest.
    pub digest: Digest,
}

/// A manifest, as the macro writes it down and as a host reads it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Manifest<'a> {
    /// What it was built with.
    pub build: Build<'a>,
    /// What it calls itself.
    pub name: &'a str,
    /// The limits that it asks for, unless its configuration says others.
    pub limits: Limits,
    /// The contracts that it speaks.
    pub contracts: Vec<Spoken<'a>>,
}

/// Why bytes are no manifest.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Unreadable {
    /// It does not begin as one.
    #[error("the section {SECTION} does not hold a manifest")]
    NoManifest,
    /// It is of another format.
    #[error(
        "its manifest has format {0}, this host reads format {FORMAT}: build it with this version of mullion-sip"
    )]
    Format(u64),
    /// It ends too early, or a length, a text or a number in it is impossible.
    #[error("its manifest is damaged: {0}")]
    Damaged(&'static str),
}

/// Reads a manifest.
///
/// # Errors
/// The bytes are none, of any format or of this one.
pub fn read(bytes: &[u8]) -> Result<Manifest<'_>, Unreadable> {
    let rest = bytes.strip_prefix(MAGIC).ok_or(Unreadable::NoManifest)?;
    let mut reader = Reader(rest);
    let format = reader.number()?;
    if format != FORMAT {
        return Err(Unreadable::Format(format));
    }
    let build = Build {
        compiler: reader.text()?,
        target: reader.text()?,
        panic: reader.text()?,
        sources: reader.digest()?,
        layout: reader.digest()?,
    };
    let name = reader.text()?;
    let limits = Limits {
        memory: reader.small()?,
        exchange: reader.number()?,
        threads: reader.small()?,
        children: reader.small()?,
        slice: Duration::from_nanos(reader.number()?),
    };
    let count = reader.number()?;
    if count > LONGEST {
        return Err(Unreadable::Damaged("more contracts than there can be"));
    }
    let contracts = (0..count).map(|_| {
        Ok(Spoken {
            name: reader.text()?,
            digest: reader.digest()?,
        })
    });
    let contracts = contracts.collect::<Result<_, _>>()?;
    if !reader.0.iter().all(|byte| *byte == 0) {
        return Err(Unreadable::Damaged("something follows its end"));
    }
    Ok(Manifest {
        build,
        name,
        limits,
        contracts,
    })
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes(&mut self, count: usize) -> Result<&'a [u8], Unreadable> {
        let (taken, rest) = self
            .0
            .split_at_checked(count)
            .ok_or(Unreadable::Damaged("it ends too early"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Unreadable> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(N)?);
        Ok(array)
    }

    fn number(&mut self) -> Result<u64, Unreadable> {
        self.array().map(u64::from_le_bytes)
    }

    /// A number that fits its type.
    fn small<T: TryFrom<u64>>(&mut self) -> Result<T, Unreadable> {
        T::try_from(self.number()?).map_err(|_| Unreadable::Damaged("a number is too large"))
    }

    fn text(&mut self) -> Result<&'a str, Unreadable> {
        let length = u32::from_le_bytes(self.array()?);
        if u64::from(length) > LONGEST {
            return Err(Unreadable::Damaged("a text is too long"));
        }
        let text = std::str::from_utf8(self.bytes(length as usize)?)
            .map_err(|_| Unreadable::Damaged("a text is not UTF-8"))?;
        if text.chars().any(char::is_control) {
            return Err(Unreadable::Damaged("a text has control characters"));
        }
        Ok(text)
    }

    fn digest(&mut self) -> Result<Digest, Unreadable> {
        self.array().map(Digest)
    }
}

/// What the macro writes: contracts by reference, since it is a constant.
#[doc(hidden)]
#[derive(Debug)]
pub struct Declared {
    pub name: &'static str,
    pub limits: Limits,
    pub contracts: &'static [&'static channel::Info],
}

impl Declared {
    /// The manifest's bytes; `N` of them, which [`Declared::length`] says.
    pub const fn encode<const N: usize>(&self) -> [u8; N] {
        let writer = self.write(Writer {
            bytes: [0; N],
            length: 0,
        });
        assert!(writer.length == N, "the length that `length` says");
        writer.bytes
    }

    /// How many bytes `encode` writes.
    pub const fn length(&self) -> usize {
        self.write(Writer {
            bytes: [],
            length: 0,
        })
        .length
    }

    const fn write<const N: usize>(&self, writer: Writer<N>) -> Writer<N> {
        let limits = &self.limits;
        let mut writer = writer
            .bytes(MAGIC)
            .number(FORMAT)
            .text(BUILD.compiler)
            .text(BUILD.target)
            .text(BUILD.panic)
            .bytes(&BUILD.sources.0)
            .bytes(&BUILD.layout.0)
            .text(self.name)
            .number(limits.memory as u64)
            .number(limits.exchange)
            .number(limits.threads as u64)
            .number(limits.children as u64)
            .number(limits.slice.as_nanos() as u64)
            .number(self.contracts.len() as u64);
        let mut index = 0;
        while index < self.contracts.len() {
            let contract = self.contracts[index];
            writer = writer.text(contract.name).bytes(&contract.digest.0);
            index += 1;
        }
        writer
    }
}

/// Writes what fits and counts everything, so that a first pass with no room tells the length.
#[derive(Clone, Copy)]
struct Writer<const N: usize> {
    bytes: [u8; N],
    length: usize,
}

impl<const N: usize> Writer<N> {
    const fn bytes(mut self, bytes: &[u8]) -> Self {
        let mut index = 0;
        while index < bytes.len() {
            if self.length < N {
                self.bytes[self.length] = bytes[index];
            }
            self.length += 1;
            index += 1;
        }
        self
    }

    const fn number(self, number: u64) -> Self {
        self.bytes(&number.to_le_bytes())
    }

    const fn text(self, text: &str) -> Self {
        assert!(text.len() as u64 <= LONGEST, "a text of at most 1024 bytes");
        self.bytes(&(text.len() as u32).to_le_bytes())
            .bytes(text.as_bytes())
    }
}

/// Sizes and alignments of types, in order.
macro_rules! sizes {
    ($hasher:expr; $($kind:ty),* $(,)?) => {
        $hasher$(.number(size_of::<$kind>() as u64).number(align_of::<$kind>() as u64))*
    };
}

/// Where the compiler, the standard library and the crates below have put everything. With the same sources and
/// the same compiler it is the same, unless somebody has asked the compiler for something unusual.
const fn layout() -> Digest {
    let hasher = Digest::new().digest(Core::LAYOUT).digest(Interior::LAYOUT);
    let mut hasher = sizes!(hasher; State, Kernel, Names, Offered, ends::State, survey::State);
    let mut index = 0;
    while index < state::PLACES.len() {
        hasher = hasher.number(state::PLACES[index] as u64);
        index += 1;
    }
    hasher.finish()
}

#[cfg(test)]
mod tests;
