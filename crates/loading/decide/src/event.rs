//! Decisions as the log has them: one JSON object each.

use crate::decide::{Decision, Refusal};
use crate::key::PublicKey;
use crate::limits::Limit;
use crate::record::Sha256Digest;
use serde_json::{Map, Value, json};

impl Decision {
    /// The leave: `"kind": "admitted"`.
    #[must_use]
    pub fn event(&self) -> Value {
        let limits =
            Limit::ALL.map(|limit| (limit.name().to_owned(), json!(self.limits.get(limit))));
        json!({
            "kind": "admitted",
            "image": self.image.to_string(),
            "requesters": texts(&self.requesters),
            "type": self.module_type,
            "type_sha256": self.type_digest.to_string(),
            "compilers": texts(&self.compilers),
            "limits": Map::from_iter(limits),
            "imports": self.imports,
            "mechanism": self.mechanism.to_string(),
            "protection": self.protection.to_string(),
            "verified": self.verify,
            "chain": self.chain,
        })
    }
}

impl Refusal {
    /// The refusal of these requesters and this image: `"kind": "refused"`.
    #[must_use]
    pub fn event(&self, requesters: &[PublicKey], image: &Sha256Digest) -> Value {
        let mut event = refused(&self.reason.to_string(), requesters, image);
        event["way_out"] = json!(self.way_out);
        event["obstacles"] = json!(self.obstacles);
        event
    }
}

/// A refusal for a reason that is not the credentials': the code, or what it asks for.
#[must_use]
pub fn refused(reason: &str, requesters: &[PublicKey], image: &Sha256Digest) -> Value {
    json!({
        "kind": "refused",
        "image": image.to_string(),
        "requesters": texts(requesters),
        "reason": reason,
    })
}

/// A module that has ended in a call, and why: `"kind": "ended"`. `module` says which, as an object.
#[must_use]
pub fn ended(module: &Value, during: &str, reason: &str) -> Value {
    let mut event = module.clone();
    event["kind"] = json!("ended");
    event["in"] = json!(during);
    event["reason"] = json!(reason);
    event
}

/// A module that its owner has restarted: `"kind": "restarted"`.
#[must_use]
pub fn restarted(module: &Value) -> Value {
    let mut event = module.clone();
    event["kind"] = json!("restarted");
    event
}

fn texts(keys: &[PublicKey]) -> Vec<String> {
    keys.iter().map(ToString::to_string).collect()
}
