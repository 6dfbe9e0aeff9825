//! Who may load what, for hosts, authors and operators. It has the loader's decision
//! (`mullion-decide`, all of whose modules are here too), keys in files, grants,
//! and answers in words.
//!
//! What is in this crate itself is not trusted. It writes what the decision
//! judges anew, and says in words what was decided ([`explain`]).
#![forbid(unsafe_code)]

pub mod bounds;
pub mod credentials;
pub mod event;
pub mod explain;
pub mod grant;
pub mod keyring;
pub mod log;
mod names;
mod signing;
mod why;

pub use why::why;

pub use mullion_decide::{
    DocumentError, Limit, Limits, ModuleType, Policy, PublicKey, Sha256Digest,
};
pub use mullion_decide::{clock, document, keynote, limits, module_type, policy, text};

pub use signing::SecretKey;

/// Keys.
pub mod key {
    pub use crate::signing::SecretKey;
    pub use mullion_decide::key::*;
}

/// How a client proves its key, both sides.
pub mod challenge {
    pub use crate::signing::sign_request;
    pub use mullion_decide::challenge::*;
}

/// Envelopes, signed and opened.
pub mod dsse {
    pub use crate::signing::seal;
    pub use mullion_decide::dsse::*;
}

/// Compilation records, signed and read.
pub mod record {
    pub use crate::signing::sign;
    pub use mullion_decide::record::*;
}

/// The loader's question.
pub mod decide {
    use crate::explain::{InWords, Names};
    use crate::keynote::{Store, Work};
    use crate::policy::Policy;

    pub use mullion_decide::decide::{Decision, Reason, Refusal, Request};

    /// [`mullion_decide::decide()`], with the words of [`explain`](crate::explain).
    ///
    /// # Errors
    /// Why not, and what could be done.
    pub fn decide(
        policy: &Policy,
        store: &Store,
        record: &str,
        request: &Request,
        names: &Names,
        work: &mut Work,
    ) -> Result<Decision, Box<Refusal>> {
        let words = InWords::new(policy, names);
        mullion_decide::decide(policy, store, record, request, work, &words)
    }
}

/// The compiler's question.
pub mod compile {
    use crate::decide::Refusal;
    use crate::explain::{InWords, Names};
    use crate::keynote::{Store, Work};
    use crate::{ModuleType, Policy, PublicKey};

    pub use mullion_decide::compile::Leave;

    /// [`mullion_decide::compile::may_compile`], with the words of [`explain`](crate::explain).
    ///
    /// # Errors
    /// Why not, and what could be done.
    pub fn may_compile(
        policy: &Policy,
        store: &Store,
        module_type: &ModuleType,
        requesters: &[PublicKey],
        compiler: &PublicKey,
        names: &Names,
        work: &mut Work,
    ) -> Result<Leave, Box<Refusal>> {
        mullion_decide::compile::may_compile(
            policy,
            store,
            module_type,
            requesters,
            compiler,
            work,
            &InWords::new(policy, names),
        )
    }
}

pub use decide::{Decision, Reason, Refusal, Request, decide};
