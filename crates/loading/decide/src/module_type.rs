//! Module types: what an image of a type must be, and may use.
//!
//! A type is a TOML file. Records and credentials name it by its identifier (the CTID of the OKE
//! paper, section III-C.1) together with the SHA-256 digest of the file.

use crate::document::{self, Document, DocumentError};
use crate::limits::{Limit, Limits};
use crate::record::Sha256Digest;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use toml::Spanned;

/// What of an image's accesses is confined (`docs/window.md`). Each value
/// includes the ones before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protection {
    /// Nothing: the machine code is as its compiler made it. For types behind the language alone.
    None,
    /// Writes and control flow.
    WriteCall,
    /// Reads too.
    ReadWriteCall,
    /// The same, and what is wild ends the call instead of being masked.
    Trap,
}

/// What puts the wall up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WallKind {
    /// A window of the address space and rewritten code.
    Window,
    /// Checks of each word in a shared address space.
    Word,
    /// A language that is safe.
    Language,
    /// A process of its own.
    Process,
}

/// Whether the code itself is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verification {
    /// Always.
    #[default]
    Required,
    /// Not, if the policy allows it for this type: the compiler is trusted.
    Trusted,
}

/// The source language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Language {
    /// C.
    #[serde(rename = "c")]
    C,
    /// C++.
    #[serde(rename = "c++")]
    Cpp,
    /// Rust.
    #[serde(rename = "rust")]
    Rust,
    /// Whatever makes an image that is verified.
    #[serde(rename = "any")]
    Any,
}

macro_rules! spelled_as_in_files {
    ($($type:ty),*) => {$(
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.serialize(f)
            }
        }
        impl std::str::FromStr for $type {
            type Err = serde::de::value::Error;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                use serde::de::IntoDeserializer as _;
                Self::deserialize(text.into_deserializer())
            }
        }
    )*};
}
spelled_as_in_files!(Protection, WallKind, Verification, Language);

/// A module type.
#[derive(Clone, Debug)]
pub struct ModuleType {
    /// The identifier (CTID): letters, digits, `-`, `_`, `.`.
    pub id: String,
    /// For people.
    pub description: String,
    /// What the compiler accepts.
    pub language: Language,
    /// What the image must at least be confined in.
    pub protection: Protection,
    /// What may put the wall up, the best first; at least one.
    pub mechanisms: Vec<WallKind>,
    /// Whether the code is verified.
    pub verification: Verification,
    /// The names that an image may import, sorted.
    pub imports: Vec<String>,
    /// What a domain may use.
    pub limits: Limits,
    /// What its code may say; `None`: whatever the language lets it.
    pub elastic: Option<ElasticTable>,
    /// Of the file.
    pub digest: Sha256Digest,
}

/// The table `[elastic]` of a type's file, which is there and has not been read. The loader asks no
/// more. `mullion-elastic` reads it.
#[derive(Clone, Debug)]
pub struct ElasticTable {
    /// The file.
    pub path: PathBuf,
    /// All of its text.
    pub text: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TypeFile {
    version: Spanned<u32>,
    id: Spanned<String>,
    #[serde(default)]
    description: String,
    language: Language,
    protection: Spanned<Protection>,
    mechanism: Spanned<Vec<WallKind>>,
    #[serde(default)]
    verification: Verification,
    #[serde(default)]
    imports: Vec<Spanned<String>>,
    #[serde(default)]
    limits: LimitsTable,
    elastic: Option<toml::Table>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitsTable {
    heap: Option<Spanned<String>>,
    stack: Option<Spanned<String>>,
    time: Option<Spanned<String>>,
    calls: Option<Spanned<u64>>,
}

impl ModuleType {
    /// Reads a type's file.
    ///
    /// # Errors
    /// What is wrong in it, and where.
    pub fn read(path: &Path) -> Result<Self, DocumentError> {
        Self::parse(&document::read(path)?, path)
    }

    /// Reads a type from the text of its file.
    ///
    /// # Errors
    /// What is wrong in it, and where.
    pub fn parse(text: &str, path: &Path) -> Result<Self, DocumentError> {
        let document = Document { path, text };
        let file: TypeFile = document::parse(&document)?;
        if *file.version.get_ref() != 1 {
            return Err(document.error(Some(file.version.span()), "the version is not 1", ""));
        }
        if !is_name(file.id.get_ref()) {
            let hint = "letters, digits, `-`, `_` and `.`, at most 64, as in packet-monitor";
            let problem = format!("`{}` is no identifier", file.id.get_ref());
            return Err(document.error(Some(file.id.span()), problem, hint));
        }
        if file.mechanism.get_ref().is_empty() {
            let problem = "no mechanism is allowed";
            let hint = "window, word, language, process: the best first";
            return Err(document.error(Some(file.mechanism.span()), problem, hint));
        }
        let is_alone = file.mechanism.get_ref()[..] == [WallKind::Language];
        if *file.protection.get_ref() == Protection::None && !is_alone {
            let problem = "code that is confined in nothing stays behind no window and no process";
            let hint =
                "write-call, read-write-call or trap; none is for mechanism = [\"language\"]";
            return Err(document.error(Some(file.protection.span()), problem, hint));
        }
        let mut imports = Vec::new();
        for import in file.imports {
            if !is_symbol(import.get_ref()) {
                let problem = format!("`{}` is no name of a function", import.get_ref());
                let hint = "letters, digits and `_`, at most 63 bytes";
                return Err(document.error(Some(import.span()), problem, hint));
            }
            imports.push(import.into_inner());
        }
        imports.sort();
        imports.dedup();
        Ok(ModuleType {
            id: file.id.into_inner(),
            description: file.description,
            language: file.language,
            protection: file.protection.into_inner(),
            mechanisms: file.mechanism.into_inner(),
            verification: file.verification,
            imports,
            limits: limits(&document, file.limits)?,
            elastic: file.elastic.map(|_| ElasticTable {
                path: path.to_owned(),
                text: text.to_owned(),
            }),
            digest: Sha256Digest::of(text.as_bytes()),
        })
    }
}

fn limits(document: &Document<'_>, table: LimitsTable) -> Result<Limits, DocumentError> {
    let mut limits = Limits {
        calls: table.calls.map(Spanned::into_inner),
        ..Limits::NONE
    };
    let texts = [
        (Limit::Heap, table.heap),
        (Limit::Stack, table.stack),
        (Limit::Time, table.time),
    ];
    for (limit, text) in texts {
        if let Some(text) = text {
            let amount = limit.parse(text.get_ref());
            let amount =
                amount.map_err(|error| document.error(Some(text.span()), error.to_string(), ""))?;
            limits.set(limit, Some(amount));
        }
    }
    Ok(limits)
}

/// Whether a text can name a type: it stands in attributes and file names.
#[must_use]
pub fn is_name(text: &str) -> bool {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    !text.is_empty() && text.len() <= 64 && !text.starts_with('.') && text.bytes().all(legal)
}

/// Whether a text can name an import (`docs/window.md`: 64 bytes with its NUL).
#[must_use]
pub fn is_symbol(text: &str) -> bool {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !text.is_empty() && text.len() <= 63 && text.bytes().all(legal)
}
