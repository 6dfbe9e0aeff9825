//! The compiler's question: may these requesters have a program of this type compiled?
//!
//! The compiler signs with a key of its own. It asks two questions: whether the requesters may *use* it for the type,
//! and whether its key may *sign* records of the type. The attribute `purpose` tells the two apart. So leave to use
//! the compiler is no leave to sign without it (the OKE paper, section III-C.1: both are of one policy, and
//! decoupled).

use crate::clock;
use crate::decide::{Reason, Refusal};
use crate::key::PublicKey;
use crate::keynote::{Attributes, Principal, Query, Store, Work};
use crate::module_type::ModuleType;
use crate::policy::{COMPILE, Policy};
use crate::words::Words;
use std::time::SystemTime;

/// Leave to have programs of a type compiled. Only [`may_compile()`] makes one.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Leave {
    /// By whose leave, from the policy down.
    pub chain: Vec<String>,
}

/// Whether `requesters` may have programs of that type compiled, by a compiler that signs with `compiler`. `store` is
/// [`Policy::store`] with the credentials added.
///
/// # Errors
/// Why not, and what could be done.
#[allow(
    clippy::too_many_arguments,
    reason = "the question, and who words the answer"
)]
pub fn may_compile(
    policy: &Policy,
    store: &Store,
    module_type: &ModuleType,
    requesters: &[PublicKey],
    compiler: &PublicKey,
    work: &mut Work,
    words: &dyn Words,
) -> Result<Leave, Box<Refusal>> {
    let known = policy
        .module_type(&module_type.id)
        .map(|known| known.digest);
    if known != Some(module_type.digest) {
        let (reason, way_out) = match known {
            None => (
                Reason::UnknownType(module_type.id.clone()),
                "add the type's file to `types` in the policy",
            ),
            Some(_) => (
                Reason::OtherType(module_type.id.clone()),
                "use the file of the type that the policy names",
            ),
        };
        return Err(refused(reason, way_out));
    }
    let asks = [
        ("sign", std::slice::from_ref(compiler)),
        ("use", requesters),
    ];
    let mut chain = Vec::new();
    for (purpose, keys) in asks {
        let query = query(policy, module_type, purpose, keys, compiler)?;
        let answer = store.query(&query, work)?;
        if answer.granted {
            chain = words.chain(store, &answer);
            continue;
        }
        let principals: Vec<Principal> = keys.iter().map(PublicKey::principal).collect();
        let obstacles = words.obstacles(store, &query, &answer, &principals, work);
        let (who, id) = (words.keys(keys), module_type.id.clone());
        let (reason, way_out) = match purpose {
            "sign" => (
                Reason::Compiler(who, id),
                "name the compiler's key in `allow.compile` of the policy, or get it a grant with `mullion grant --compile`",
            ),
            _ => (
                Reason::NotCompiled(who, id),
                "get a grant for it with `mullion grant --use-compiler`, or ask for another type",
            ),
        };
        let mut refusal = refused(reason, way_out);
        (refusal.obstacles, refusal.told) = (obstacles.all, obstacles.told);
        return Err(refusal);
    }
    Ok(Leave { chain })
}

fn refused(reason: Reason, way_out: &str) -> Box<Refusal> {
    Box::new(Refusal {
        reason,
        way_out: way_out.to_owned(),
        obstacles: Vec::new(),
        told: Vec::new(),
    })
}

fn query(
    policy: &Policy,
    module_type: &ModuleType,
    purpose: &str,
    keys: &[PublicKey],
    compiler: &PublicKey,
) -> Result<Query, Box<Refusal>> {
    let mut attributes: Attributes = clock::attributes(SystemTime::now(), policy.utc_offset())
        .into_iter()
        .collect();
    let own = [
        ("app_domain", COMPILE.to_owned()),
        ("purpose", purpose.to_owned()),
        ("type", module_type.id.clone()),
        ("type_digest", module_type.digest.to_string()),
        ("language", module_type.language.to_string()),
        ("protection", module_type.protection.to_string()),
        ("verification", module_type.verification.to_string()),
        ("compiler", compiler.to_string()),
    ];
    for (name, value) in own {
        attributes.insert(name.to_owned(), value.into_bytes());
    }
    let identifiers: Vec<_> = keys.iter().map(ToString::to_string).collect();
    let identifiers: Vec<_> = identifiers.iter().map(|id| id.as_bytes()).collect();
    Query::new(&["refuse", "allow"], &identifiers, attributes)
        .map_err(|error| refused(error.into(), "see docs/trust.md for what a request may say"))
}
