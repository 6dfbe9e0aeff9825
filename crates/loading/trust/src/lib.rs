//! Who may load what: keys, KeyNote assertions and queries, compilation
//! records, module types and policies, and the loader's decision.
//!
//! Nothing here loads or runs code. [`decide()`] answers the loader's question
//! from a [`Policy`], credentials in a [`keynote::Store`], a compilation record
//! and the image's digest; [`log`] keeps what was answered;
//! [`challenge`] is the protocol by which a client proves its key.
#![forbid(unsafe_code)]

pub mod challenge;
pub mod clock;
pub mod compile;
pub mod credentials;
pub mod decide;
mod document;
pub mod dsse;
pub mod elastic;
pub mod event;
pub mod explain;
pub mod grant;
pub mod key;
pub mod keynote;
pub mod keyring;
pub mod limits;
pub mod log;
pub mod module_type;
pub mod policy;
pub mod record;
pub mod text;

pub use decide::{Decision, Reason, Refusal, Request, decide};
pub use document::DocumentError;
pub use key::{PublicKey, SecretKey};
pub use limits::{Limit, Limits};
pub use module_type::ModuleType;
pub use policy::Policy;
pub use record::Sha256Digest;
