//! Decisions as the log has them: one JSON object each.

use crate::decide::{Decision, Refusal};
use crate::key::PublicKey;
use crate::limits::Limit;
use crate::record::Sha256Digest;
use serde_json::{Map, Value, json};

/// A leave: `"kind": "admitted"`.
#[must_use]
pub fn admitted(decision: &Decision) -> Value {
    let limits =
        Limit::ALL.map(|limit| (limit.name().to_owned(), json!(decision.limits.get(limit))));
    json!({
        "kind": "admitted",
        "image": decision.image.to_string(),
        "requesters": texts(&decision.requesters),
        "type": decision.module_type,
        "type_sha256": decision.type_digest.to_string(),
        "compilers": texts(&decision.compilers),
        "limits": Map::from_iter(limits),
        "imports": decision.imports,
        "mechanism": decision.mechanism.to_string(),
        "protection": decision.protection.to_string(),
        "verified": decision.verify,
        "chain": decision.chain,
    })
}

/// The refusal of these requesters and this image, by policy and credentials: `"kind": "refused"`.
#[must_use]
pub fn not_granted(refusal: &Refusal, requesters: &[PublicKey], image: &Sha256Digest) -> Value {
    let mut event = refused(&refusal.reason.to_string(), requesters, image);
    event["way_out"] = json!(refusal.way_out);
    event["obstacles"] = json!(refusal.obstacles);
    event
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
