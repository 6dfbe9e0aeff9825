//! The loader's decision: keys, KeyNote assertions and queries, compilation
//! records, module types and policies, and who may load what.
//!
//! Nothing here loads or runs code. [`decide()`] answers the loader's question from a [`Policy`],
//! credentials in a [`keynote::Store`], a compilation record and the image's digest. what was
//! answered is kept by `mullion_trust::log`; [`challenge`] is the protocol by which a client proves
//! its key.
//!
//! This is the trusted half. What authors, operators and readers need besides
//! (keys in files, grants, words for answers) is in `mullion-trust`, which has
//! all of this crate's modules too.
#![forbid(unsafe_code)]

pub mod challenge;
pub mod clock;
pub mod compile;
pub mod decide;
pub mod document;
pub mod dsse;
pub mod key;
pub mod keynote;
pub mod limits;
pub mod module_type;
pub mod policy;
pub mod record;
pub mod text;
pub mod words;

pub use decide::{Decision, Reason, Refusal, Request, decide};
pub use document::DocumentError;
pub use key::PublicKey;
pub use limits::{Limit, Limits};
pub use module_type::ModuleType;
pub use policy::Policy;
pub use record::Sha256Digest;
