//! The loader's question: may these requesters load this image, as what, and
//! with which limits?
//!
//! ```text
//!   record --- signatures good? --- about this image? --- type known, unchanged?
//!                                                              |
//!          may the compiler sign records of this type? --- KeyNote, mullion-compile
//!                                                              |
//!          may the requesters load it, with these limits? - KeyNote, mullion-load
//!                                                              |
//!                                                          Decision
//! ```
//!
//! The limits of a credential are tests of the amount that is asked for. So what a credential
//! grants is found by asking. The first question is for all that the type allows. If that is
//! refused, [`Words::most`] finds out how much is granted. Every decision rests on a query that was
//! answered here for exactly the limits and imports that it gives.

use crate::clock;
use crate::key::PublicKey;
use crate::keynote::{Answer, Attributes, Exhausted, Principal, Query, Store, Work};
use crate::limits::{Limit, Limits};
use crate::module_type::{ModuleType, Protection, Verification, WallKind};
use crate::policy::{COMPILE, LOAD, Policy};
use crate::record::{Sha256Digest, VerifiedRecord};
use crate::text::shortened;
use crate::words::{Extent, Grounds, Words};
use std::time::SystemTime;

/// Attributes that a decision sets itself.
const OWN: [&str; 15] = [
    "app_domain",
    "purpose",
    "type",
    "type_digest",
    "image",
    "language",
    "protection",
    "mechanism",
    "verification",
    "imports",
    "compiler",
    "heap_kib",
    "stack_kib",
    "time_ms",
    "calls",
];
/// Bytes of a requester's own names in a reason.
const NAME: usize = 200;

/// What is asked of the loader.
#[derive(Clone, Debug)]
pub struct Request {
    /// Who asks: keys whose possession has been proven.
    pub requesters: Vec<PublicKey>,
    /// SHA-256 over the whole image file.
    pub image: Sha256Digest,
    /// The names that the image imports. `None`: not known; what is granted
    /// of the type's imports is found out.
    pub imports: Option<Vec<String>>,
    /// The mechanism that is wanted; `None`: the best that is granted.
    pub mechanism: Option<WallKind>,
    /// Limits that the requesters are content with.
    pub limits: Limits,
    /// More attributes, for conditions to look at.
    pub attributes: Attributes,
    /// When.
    pub time: SystemTime,
}

impl Request {
    /// A request of `requesters` to load the image of that digest, now, with
    /// what its type allows.
    #[must_use]
    pub fn new(requesters: Vec<PublicKey>, image: Sha256Digest) -> Self {
        Request {
            requesters,
            image,
            imports: None,
            mechanism: None,
            limits: Limits::NONE,
            attributes: Attributes::new(),
            time: SystemTime::now(),
        }
    }
}

/// Leave to load one image. Only [`decide()`] makes one.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Decision {
    /// The image's digest: the leave is for no other.
    pub image: Sha256Digest,
    /// The module type's identifier.
    pub module_type: String,
    /// The digest of the type's file.
    pub type_digest: Sha256Digest,
    /// Who asked.
    pub requesters: Vec<PublicKey>,
    /// Who signed the compilation record.
    pub compilers: Vec<PublicKey>,
    /// What the domain may use: the type's limits, the credentials' and the
    /// request's, of each the strictest.
    pub limits: Limits,
    /// The names that the image may import, sorted.
    pub imports: Vec<String>,
    /// What puts the wall up.
    pub mechanism: WallKind,
    /// What the image must at least be confined in: what its record says, which
    /// is no less than the type demands.
    pub protection: Protection,
    /// Whether the code must be verified. Always, unless type and policy both
    /// trust the compiler.
    pub verify: bool,
    /// By whose leave, from the policy down, one line for each assertion.
    pub chain: Vec<String>,
    /// The whole decision in words.
    pub explanation: String,
}

/// Decides whether an image may be loaded. `store` is [`Policy::store`] with
/// the credentials added; `record` is the text of the compilation record. All
/// that this does is paid for by `work`.
///
/// # Errors
/// Why not, and what could be done.
pub fn decide(
    policy: &Policy,
    store: &Store,
    record: &str,
    request: &Request,
    work: &mut Work,
    words: &dyn Words,
) -> Result<Decision, Box<Refusal>> {
    let record = VerifiedRecord::open(record, work)?.map_err(|error| {
        refuse(
            error.into(),
            "get the record again from whoever compiled the image",
        )
    })?;
    if !record.is_about(&request.image) {
        let reason = Reason::OtherImage {
            record: shortened(record.image(), NAME).into_owned(),
            image: request.image,
        };
        return Err(refuse(
            reason,
            "the image or its record was changed or exchanged; get both again",
        ));
    }
    let module_type = check_type(policy, &record)?;
    check_request(module_type, request)?;
    check_wall(&record, request)?;
    let asker = Asker {
        policy,
        store,
        record: &record,
        module_type,
        request,
        words,
    };
    let compiler = asker.compiler(work)?;
    asker.load(compiler, work)
}

/// No leave.
pub type Refusal = mullion_wire::reason::RefusalOf<Reason>;
/// What stands against loading.
pub type Reason = mullion_wire::reason::ReasonOf<Sha256Digest, Protection, WallKind>;

fn refuse(reason: Reason, way_out: &str) -> Box<Refusal> {
    Box::new(Refusal {
        reason,
        way_out: way_out.to_owned(),
        obstacles: Vec::new(),
        told: Vec::new(),
    })
}

impl From<Exhausted> for Box<Refusal> {
    fn from(_: Exhausted) -> Self {
        let way_out = "bring fewer and shorter credentials: those of one chain, without long lists and patterns";
        refuse(Reason::Work, way_out)
    }
}

fn check_type<'a>(
    policy: &'a Policy,
    record: &VerifiedRecord,
) -> Result<&'a ModuleType, Box<Refusal>> {
    let named = &record.compilation().module_type;
    let Some(module_type) = policy.module_type(&named.id) else {
        let reason = Reason::UnknownType(shortened(&named.id, NAME).into_owned());
        return Err(refuse(
            reason,
            "add the type's file to `types` in the policy",
        ));
    };
    if module_type.digest.to_string() != named.sha256 {
        let reason = Reason::OtherType(named.id.clone());
        return Err(refuse(
            reason,
            "compile it again with the type's file of today",
        ));
    }
    if module_type.elastic.is_some() && record.compilation().elastic.is_none() {
        let reason = Reason::NotJudged(named.id.clone());
        return Err(refuse(reason, "compile it with `mullion compile`"));
    }
    let made = record.compilation().protection;
    if made < module_type.protection {
        let reason = Reason::Protection {
            made,
            demanded: module_type.protection,
        };
        return Err(refuse(reason, "compile it again with that protection"));
    }
    if module_type.verification == Verification::Trusted && !policy.trusts_type(&module_type.id) {
        let reason = Reason::Untrusted(module_type.id.clone());
        return Err(refuse(
            reason,
            "an operator who trusts its compilers can add it to `trusted-types`",
        ));
    }
    Ok(module_type)
}

fn check_request(module_type: &ModuleType, request: &Request) -> Result<(), Box<Refusal>> {
    let mut imports = request.imports.iter().flatten();
    if let Some(name) = imports.find(|name| !module_type.imports.contains(name)) {
        let reason = Reason::Import(shortened(name, NAME).into_owned());
        return Err(refuse(reason, "use another type, or leave the import out"));
    }
    if let Some(mechanism) = request.mechanism
        && !module_type.mechanisms.contains(&mechanism)
    {
        let allowed: Vec<_> = module_type
            .mechanisms
            .iter()
            .map(ToString::to_string)
            .collect();
        let way_out = format!("it allows {}", allowed.join(", "));
        return Err(refuse(Reason::Mechanism(mechanism), &way_out));
    }
    let own =
        |name: &&String| OWN.contains(&name.as_str()) || clock::NAMES.contains(&name.as_str());
    if let Some(name) = request.attributes.keys().find(own) {
        return Err(refuse(
            Reason::Attribute(shortened(name, NAME).into_owned()),
            "give it another name",
        ));
    }
    Ok(())
}

/// Behind the language alone nothing else holds what a compiler overlooked. So the record must say that it was
/// compiled for that, and a record that says so is good for nothing else.
fn check_wall(record: &VerifiedRecord, request: &Request) -> Result<(), Box<Refusal>> {
    let Some(mechanism) = request.mechanism else {
        return Ok(());
    };
    let is_alone = record.compilation().wall() == Some("language");
    if is_alone != (mechanism == WallKind::Language) {
        let way_out = "compile it with `mullion compile`, for a type of that wall";
        return Err(refuse(Reason::OtherWall(mechanism), way_out));
    }
    Ok(())
}

/// Imports as an attribute: each between blanks.
#[must_use]
pub fn joined(imports: &[String]) -> String {
    imports
        .iter()
        .fold(" ".to_owned(), |text, name| text + name + " ")
}

struct Asker<'a> {
    policy: &'a Policy,
    store: &'a Store,
    record: &'a VerifiedRecord,
    module_type: &'a ModuleType,
    request: &'a Request,
    words: &'a dyn Words,
}

/// What was granted, and the query that says so.
struct Granted {
    answer: Answer,
    limits: Limits,
    imports: Vec<String>,
    mechanism: WallKind,
}

impl Asker<'_> {
    fn query(&self, domain: &str, requesters: &[PublicKey]) -> Result<Query, Box<Refusal>> {
        let module_type = self.module_type;
        let mut attributes = self.request.attributes.clone();
        attributes.extend(clock::attributes(
            self.request.time,
            self.policy.utc_offset(),
        ));
        let compilers: Vec<_> = self
            .record
            .signers()
            .iter()
            .map(ToString::to_string)
            .collect();
        let own = [
            ("app_domain", domain.to_owned()),
            (
                "purpose",
                if domain == COMPILE { "sign" } else { "load" }.to_owned(),
            ),
            ("type", module_type.id.clone()),
            ("type_digest", module_type.digest.to_string()),
            ("image", self.request.image.to_string()),
            ("language", module_type.language.to_string()),
            (
                "protection",
                self.record.compilation().protection.to_string(),
            ),
            ("verification", module_type.verification.to_string()),
            ("compiler", compilers.join(" ")),
        ];
        for (name, value) in own {
            attributes.insert(name.to_owned(), value.into_bytes());
        }
        let identifiers: Vec<_> = requesters.iter().map(ToString::to_string).collect();
        let identifiers: Vec<_> = identifiers.iter().map(|id| id.as_bytes()).collect();
        Query::new(&["refuse", "allow"], &identifiers, attributes)
            .map_err(|error| refuse(error.into(), "see docs/trust.md for what a request may say"))
    }

    fn refusal(
        &self,
        reason: Reason,
        way_out: &str,
        (query, answer): (&Query, &Answer),
        keys: &[PublicKey],
        work: &mut Work,
    ) -> Box<Refusal> {
        let principals: Vec<Principal> = keys.iter().map(PublicKey::principal).collect();
        let obstacles = self
            .words
            .obstacles(self.store, query, answer, &principals, work);
        Box::new(Refusal {
            reason,
            way_out: way_out.to_owned(),
            obstacles: obstacles.all,
            told: obstacles.told,
        })
    }

    fn compiler(&self, work: &mut Work) -> Result<Answer, Box<Refusal>> {
        let signers = self.record.signers();
        let query = self.query(COMPILE, signers)?;
        let answer = self.store.query(&query, work)?;
        if answer.granted {
            return Ok(answer);
        }
        let reason = Reason::Compiler(self.words.keys(signers), self.module_type.id.clone());
        let way_out = "name the key in `allow.compile` of the policy, or get it a grant with `mullion grant --compile`";
        Err(self.refusal(reason, way_out, (&query, &answer), signers, work))
    }

    fn load(&self, compiler: Answer, work: &mut Work) -> Result<Decision, Box<Refusal>> {
        let mut refused = None;
        for mechanism in &self.module_type.mechanisms {
            if self
                .request
                .mechanism
                .is_some_and(|wanted| wanted != *mechanism)
            {
                continue;
            }
            match self.with_mechanism(*mechanism, work)? {
                Ok(granted) => return Ok(self.decision(&compiler, granted)),
                Err(refusal) => refused = refused.or(Some(refusal)),
            }
        }
        Err(refused.unwrap_or_else(|| {
            let mechanism = self
                .request
                .mechanism
                .unwrap_or(self.module_type.mechanisms[0]);
            refuse(Reason::Mechanism(mechanism), "see the type's `mechanism`")
        }))
    }

    fn with_mechanism(
        &self,
        mechanism: WallKind,
        work: &mut Work,
    ) -> Result<Result<Granted, Box<Refusal>>, Box<Refusal>> {
        let requesters = &self.request.requesters;
        let mut query = self.query(LOAD, requesters)?;
        query.set("mechanism", mechanism.to_string());
        let most = self.module_type.limits.meet(&self.request.limits);
        let all = self
            .request
            .imports
            .as_ref()
            .unwrap_or(&self.module_type.imports);
        let ask = |query: &mut Query, wanted: &Extent, work: &mut Work| {
            for (limit, amount) in Limit::ALL.iter().zip(wanted.amounts) {
                query.set(limit.attribute(), amount.to_string());
            }
            query.set("imports", joined(&wanted.imports));
            self.store.query(query, work)
        };
        let all = Extent {
            amounts: Limit::ALL.map(|limit| limit.to_attribute(most.get(limit))),
            imports: all.clone(),
        };
        let mut granted = all.clone();
        let mut answer = ask(&mut query, &all, work)?;
        if !answer.granted {
            // Nothing less could be granted if this is not.
            let least = ask(&mut query, &Extent::default(), work)?;
            if !least.granted {
                let reason =
                    Reason::NotGranted(self.words.keys(requesters), self.module_type.id.clone());
                let way_out = "ask one whom the policy names for a grant (`mullion grant`), or for one whose conditions hold now";
                let found = (&query, &least);
                return Ok(Err(self.refusal(reason, way_out, found, requesters, work)));
            }
            granted = self.words.most(
                self.store,
                &least,
                &all,
                &mut |wanted, work| ask(&mut query, wanted, work),
                work,
            )?;
            // Whatever was found, no more is given than may be asked for, and what is answered below.
            granted.imports.retain(|name| all.imports.contains(name));
            for (amount, most) in granted.amounts.iter_mut().zip(all.amounts) {
                *amount = (*amount).clamp(0, most);
            }
            let missing = |name: &&String| !granted.imports.contains(name);
            let missing: Vec<_> = all.imports.iter().filter(missing).cloned().collect();
            if self.request.imports.is_some() && !missing.is_empty() {
                let reason =
                    Reason::Imports(self.words.keys(requesters), self.module_type.id.clone());
                let way_out = format!("not granted: {}", missing.join(", "));
                let wanted = Extent {
                    amounts: [0; 4],
                    ..all
                };
                answer = ask(&mut query, &wanted, work)?;
                let found = (&query, &answer);
                return Ok(Err(self.refusal(reason, &way_out, found, requesters, work)));
            }
            answer = ask(&mut query, &granted, work)?;
            if !answer.granted {
                granted = Extent::default();
                answer = least;
            }
        }
        let mut limits = Limits::NONE;
        for (limit, amount) in Limit::ALL.into_iter().zip(granted.amounts) {
            limits.set(limit, limit.from_attribute(amount));
        }
        granted.imports.sort();
        Ok(Ok(Granted {
            answer,
            limits: limits.meet(&most),
            imports: granted.imports,
            mechanism,
        }))
    }

    fn decision(&self, compiler: &Answer, granted: Granted) -> Decision {
        let requesters = &self.request.requesters;
        let module_type = self.module_type;
        let chain = self.words.chain(self.store, &granted.answer);
        let verify = module_type.verification == Verification::Required;
        let mut decision = Decision {
            image: self.request.image,
            module_type: module_type.id.clone(),
            type_digest: module_type.digest,
            requesters: requesters.clone(),
            compilers: self.record.signers().to_vec(),
            limits: granted.limits,
            imports: granted.imports,
            mechanism: granted.mechanism,
            protection: self.record.compilation().protection,
            verify,
            chain,
            explanation: String::new(),
        };
        let grounds = Grounds {
            store: self.store,
            module_type,
            compiler,
        };
        decision.explanation = self.words.explanation(&decision, &grounds);
        decision
    }
}
