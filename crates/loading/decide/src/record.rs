//! Compilation records: who says that which image is of which module type.
//!
//! An in-toto Statement, version 1, in a DSSE envelope. The subject is the image, by SHA-256 over
//! the whole file (the OKE paper, section III-A.2, binds by MD5). The predicate names the module
//! type and what the image was made with.

use crate::dsse;
use crate::key::PublicKey;
use crate::keynote::{Exhausted, Work};
use crate::module_type::{ModuleType, Protection};
use data_encoding::HEXLOWER;
pub use mullion_wire::reason::RecordError;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;

/// The type of the envelope's payload.
pub const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";
/// The version of the statement.
pub const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";
/// What the statement says.
pub const PREDICATE_TYPE: &str = "urn:mullion:compilation-record:1";

/// A SHA-256 digest. Its text is 64 hexadecimal digits in lower case.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Sha256Digest([u8; 32]);

impl Sha256Digest {
    /// Of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Sha256Digest(Sha256::digest(bytes).into())
    }

    /// A digest that was computed elsewhere.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Sha256Digest(bytes)
    }

    /// The digest that 64 hexadecimal digits in lower case say.
    #[must_use]
    pub fn from_hex(text: &str) -> Option<Self> {
        let bytes = HEXLOWER.decode(text.as_bytes()).ok()?;
        Some(Sha256Digest(bytes.try_into().ok()?))
    }

    /// The digest itself.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl std::fmt::Display for Sha256Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&HEXLOWER.encode(&self.0))
    }
}

impl std::fmt::Debug for Sha256Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

/// The predicate: the module type, and what the image was made with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Compilation {
    /// The module type's identifier, and the digest of its file.
    pub module_type: TypeReference,
    /// The protection that the image was rewritten with.
    pub protection: Protection,
    /// The names that the image imports, as far as the compiler says so.
    #[serde(default)]
    pub imports: Vec<String>,
    /// Tools by name, with their versions.
    #[serde(default)]
    pub tools: BTreeMap<String, String>,
    /// The compiler's arguments.
    #[serde(default)]
    pub flags: Vec<String>,
    /// SHA-256 of each source file, by its name.
    #[serde(default)]
    pub sources: BTreeMap<String, String>,
    /// That the source was judged, and against what; of types with an elastic language alone. The
    /// loader looks whether it is there. `mullion-elastic` has its form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elastic: Option<serde_json::Map<String, serde_json::Value>>,
}

impl Compilation {
    /// The wall that the source was judged for, if it was judged.
    #[must_use]
    pub fn wall(&self) -> Option<&str> {
        self.elastic.as_ref()?.get("wall")?.as_str()
    }
}

/// Names a module type without doubt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TypeReference {
    /// The identifier (CTID).
    pub id: String,
    /// SHA-256 of the type's file, in hexadecimal.
    pub sha256: String,
}

impl TypeReference {
    /// Of this type.
    #[must_use]
    pub fn to(module_type: &ModuleType) -> Self {
        TypeReference {
            id: module_type.id.clone(),
            sha256: module_type.digest.to_string(),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Statement {
    #[serde(rename = "_type")]
    type_: String,
    subject: Vec<Subject>,
    predicate_type: String,
    predicate: Compilation,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Subject {
    /// For people.
    #[serde(rename = "name")]
    _name: String,
    digest: SubjectDigest,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SubjectDigest {
    sha256: String,
}

/// A record whose signatures have been verified; nothing else makes one.
#[derive(Clone, Debug)]
pub struct VerifiedRecord {
    image: String,
    compilation: Compilation,
    signers: Vec<PublicKey>,
}

impl VerifiedRecord {
    /// Reads a record and verifies its signatures. Whether the signers may sign
    /// records is another question, for [`crate::decide()`].
    ///
    /// # Errors
    /// The budget does not suffice; within, why it does not count.
    pub fn open(text: &str, work: &mut Work) -> Result<Result<Self, RecordError>, Exhausted> {
        let opened = dsse::open(text, PAYLOAD_TYPE, work)?;
        Ok(opened
            .map_err(RecordError::from)
            .and_then(|(payload, signers)| Self::of(&payload, signers)))
    }

    fn of(payload: &[u8], signers: Vec<PublicKey>) -> Result<Self, RecordError> {
        let statement: Statement = serde_json::from_slice(payload)
            .map_err(|error| RecordError::Statement(error.to_string()))?;
        let wrong = |problem: &str| Err(RecordError::Statement(problem.to_owned()));
        if statement.type_ != STATEMENT_TYPE || statement.predicate_type != PREDICATE_TYPE {
            return wrong("its type or its predicate's type is another");
        }
        let [subject] = statement.subject.as_slice() else {
            return wrong("it must have one subject");
        };
        Ok(VerifiedRecord {
            image: subject.digest.sha256.clone(),
            compilation: statement.predicate,
            signers,
        })
    }

    /// Whether the record is about the image of that digest.
    #[must_use]
    pub fn is_about(&self, image: &Sha256Digest) -> bool {
        self.image == image.to_string()
    }

    /// The digest that the record is about, in hexadecimal.
    #[must_use]
    pub fn image(&self) -> &str {
        &self.image
    }

    /// What it says of the image.
    #[must_use]
    pub fn compilation(&self) -> &Compilation {
        &self.compilation
    }

    /// Who signed it: at least one.
    #[must_use]
    pub fn signers(&self) -> &[PublicKey] {
        &self.signers
    }
}
