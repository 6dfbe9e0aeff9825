//! Why something is not loaded, and what could be done.
//!
//! Digests, protections and mechanisms are the decision's own types. Here they are only shown.

use crate::keynote::QueryError;

/// No leave.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{reason}")]
pub struct RefusalOf<Reason> {
    /// What stands against it.
    pub reason: Reason,
    /// What could be done.
    pub way_out: String,
    /// What was looked at and did not help, in a bounded number of lines: for the log, and for
    /// those who may read the policy.
    pub obstacles: Vec<String>,
    /// The same for the requesters, who may be strangers. Of assertions that they neither brought
    /// nor are named in, it says only that they did not help (docs/trust.md).
    pub told: Vec<String>,
}

/// What stands against loading.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReasonOf<Digest, Protection, WallKind> {
    /// The record proves nothing.
    #[error("{0}")]
    Record(#[from] RecordError),
    /// The record speaks of another image.
    #[error("the compilation record is about the image {record}, and this one is {image}")]
    OtherImage {
        /// The digest in the record.
        record: String,
        /// The digest of the image.
        image: Digest,
    },
    /// The policy does not know the type.
    #[error("the policy knows no module type `{0}`")]
    UnknownType(String),
    /// The type has changed since.
    #[error("the image was compiled for another version of the module type `{0}`")]
    OtherType(String),
    /// The source was not judged.
    #[error(
        "the module type `{0}` has an elastic language, and nobody judged the source of this image"
    )]
    NotJudged(String),
    /// The image is confined in less than the type demands.
    #[error("the image was made with the protection {made}, and its type demands {demanded}")]
    Protection {
        /// As the record says.
        made: Protection,
        /// As the type says.
        demanded: Protection,
    },
    /// The type asks not to be verified.
    #[error(
        "the module type `{0}` wants its code to stay unverified, and the policy does not trust it"
    )]
    Untrusted(String),
    /// An import that the type does not have.
    #[error("the image imports `{0}`, which its module type does not allow")]
    Import(String),
    /// A mechanism that the type does not have.
    #[error("the module type does not allow the mechanism {0}")]
    Mechanism(WallKind),
    /// The compiler judged the source for another wall than the one that is asked for.
    #[error("the compilation record does not say that the source was judged for the mechanism {0}")]
    OtherWall(WallKind),
    /// An attribute that the loader sets.
    #[error("the attribute `{0}` is set by the loader and cannot be given")]
    Attribute(String),
    /// The request itself.
    #[error("{0}")]
    Query(#[from] QueryError),
    /// The budget.
    #[error("the request causes more work than the loader does for its key")]
    Work,
    /// The signer of the record.
    #[error("{0} may not sign compilation records of the type `{1}`")]
    Compiler(String, String),
    /// The requesters.
    #[error("{0} may not load images of the type `{1}`")]
    NotGranted(String, String),
    /// The requesters, of the compiler.
    #[error("{0} may not have programs of the type `{1}` compiled")]
    NotCompiled(String, String),
    /// The requesters, because of the imports.
    #[error("{0} may load images of the type `{1}`, but not with all imports of this one")]
    Imports(String, String),
}

/// Why a record does not speak for an image.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The envelope.
    #[error("the compilation record proves nothing: {0}")]
    Envelope(#[from] EnvelopeError),
    /// The statement in it.
    #[error("the compilation record holds no statement that is understood: {0}")]
    Statement(String),
}

/// Why an envelope proves nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeError {
    /// Not JSON, or not of this form.
    #[error("it is no DSSE envelope: {0}")]
    Malformed(String),
    /// Another kind of document.
    #[error("its payload is of the type `{0}`, not `{1}`")]
    Type(String, &'static str),
    /// A signature that is not one.
    #[error("it is not signed by `{0}`, whose name it bears: the envelope was changed")]
    Wrong(String),
    /// No signature at all, or too many.
    #[error("it must bear 1 to 16 signatures")]
    Count,
}

/// An amount that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no amount for the limit `{limit}`: it is {form}")]
pub struct LimitError {
    /// Of the limit.
    pub limit: &'static str,
    /// As written.
    pub text: String,
    /// What an amount of it looks like.
    pub form: &'static str,
}

/// What is wrong with a key.
#[derive(Debug, thiserror::Error)]
pub enum KeyErrorOf<R> {
    /// The text is no public key.
    #[error(
        "`{0}` is no public key; one looks like x-mullion-ed25519-hex: and 64 hexadecimal digits"
    )]
    NotAKey(String),
    /// The system has no randomness.
    #[error("the system gives no randomness for a new key: {0}")]
    Randomness(R),
}
