//! Who may load: the one question in front of every load.
//!
//! ```text
//!   bytes --- Authoriser::admit --- policy, record, credentials, proven keys: leave?
//!                                |  the verifier: does the code keep to the window?
//!                                |  imports and protection: what was granted?
//!                                |  written to the log, whatever came out; strangers' refusals
//!                                |  as long as they leave room for others
//!                                v
//!                            Admitted --- Loaded::new --- domains with its limits
//! ```
//!
//! An [`Admitted`] is evidence: nothing else makes one, it owns the bytes that
//! were judged, and [`crate::Loaded`] takes nothing else. Strangers are turned
//! away before the verifier looks at what they brought.

use crate::admitted::{Admitted, Code};
use crate::native::Native;
use mullion_decide::challenge::Proven;
use mullion_decide::keynote::{Attributes, Store, Work, parse_each};
use mullion_decide::limits::Limit;
use mullion_decide::module_type::{Protection, WallKind};
use mullion_decide::{
    Decision, DocumentError, Limits, Policy, PublicKey, Reason, Refusal, Request, Sha256Digest,
    decide,
};
use mullion_trust::credentials;
use mullion_trust::event::{self, refused};
use mullion_trust::explain::{InWords, Names};
use mullion_trust::log::{Log, LogError};
use mullion_verifier::{Image, Rejected, structure, verify};
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

/// Credentials that one request may bring, at most.
pub const CREDENTIALS: usize = 64;
/// Bytes of the smallest data stack that the run time makes.
const SMALLEST_STACK: u64 = 0x4000;

/// Answers who may load, as one host's operator decided. May be asked from
/// several threads at once.
pub struct Authoriser {
    rules: Option<Rules>,
}

struct Rules {
    policy: Policy,
    /// The policy's assertions, and the credentials that it names.
    store: Arc<Store>,
    log: Option<Log>,
}

/// What is asked, beside the image.
#[derive(Default)]
pub struct Asked<'a> {
    /// Who asks.
    pub requesters: &'a [Proven],
    /// The compilation record's text.
    pub record: Option<&'a str>,
    /// Credentials beside those that the policy names, at most [`CREDENTIALS`]
    /// texts.
    pub credentials: &'a [String],
    /// Limits that the requesters are content with.
    pub limits: Limits,
    /// More attributes, for conditions to look at.
    pub attributes: Attributes,
    /// Names of keys for the explanation, beside the policy's.
    pub names: Names,
    /// The host promises an OS process for this image alone, without powers of its own. Then types that want the
    /// mechanism `process` are loaded, too; the window stands all the same.
    pub alone: bool,
}

/// Why an image may not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum NotAdmitted {
    /// Code behind the language alone, and nobody who could decide about it.
    #[error("code behind the language alone is loaded by a policy's leave, and there is no policy")]
    NoPolicy,
    /// Code behind the language alone, whose type says that it is verified.
    #[error("no verifier reads code behind the language alone, and its type demands one")]
    Unverifiable,
    /// Code behind the language alone, with a limit that nothing holds there.
    #[error("leave was given with the limit `{0}`, which nothing holds behind the language alone")]
    Unheld(&'static str),
    /// Nobody asks.
    #[error("the policy asks who loads, and no key has been proven")]
    Nobody,
    /// There is no compilation record.
    #[error("the policy asks for a compilation record, and there is none")]
    NoRecord,
    /// Too many credentials.
    #[error("a request may bring {CREDENTIALS} credentials at most")]
    Credentials,
    /// Policy, record and credentials do not allow it.
    #[error("{0}")]
    Refused(Box<Refusal>),
    /// The code or the file breaks rules of the window.
    #[error(transparent)]
    Rejected(Rejected),
    /// The image is confined in less than its record says.
    #[error("the image is confined in {image}, and its compilation record says {record}")]
    Protection {
        /// By the image's own note.
        image: &'static str,
        /// By the record.
        record: Protection,
    },
    /// The image imports what was not granted.
    #[error("the image imports `{0}`, which was not granted")]
    Import(String),
    /// A stack that small cannot be made.
    #[error("a stack of {0} bytes was granted, and none can be smaller than {SMALLEST_STACK}")]
    Stack(u64),
    /// The decision could not be recorded, so it is none.
    #[error("the decision could not be written to the log: {0}")]
    Log(#[from] LogError),
}

impl Authoriser {
    /// The authoriser of a host without a policy: whatever the verifier accepts
    /// may be loaded, by everyone.
    #[must_use]
    pub fn trusting_everyone() -> Self {
        Authoriser { rules: None }
    }

    /// The authoriser of a policy. Reads the credentials that it names; `warn`
    /// is told of each file that holds none.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn new(
        policy: Policy,
        mut warn: impl FnMut(credentials::LeftOut),
    ) -> Result<Self, DocumentError> {
        let mut store = policy.store();
        for path in policy.credentials() {
            credentials::read_into(&mut store, path)?
                .into_iter()
                .for_each(&mut warn);
        }
        let log = policy.log().map(Log::new);
        Ok(Authoriser {
            rules: Some(Rules {
                policy,
                store: Arc::new(store),
                log,
            }),
        })
    }

    /// The authoriser of the policy in a file.
    ///
    /// # Errors
    /// What is wrong with the file or one that it names.
    pub fn read(
        path: &Path,
        warn: impl FnMut(credentials::LeftOut),
    ) -> Result<Self, DocumentError> {
        Self::new(Policy::read(path)?, warn)
    }

    /// The policy; without one, everyone is trusted.
    #[must_use]
    pub fn policy(&self) -> Option<&Policy> {
        self.rules.as_ref().map(|rules| &rules.policy)
    }

    /// Whether there is a policy.
    #[must_use]
    pub fn has_policy(&self) -> bool {
        self.rules.is_some()
    }

    /// Whether policy or stored credentials name this key, or everyone is trusted: then it is no
    /// stranger, and may cause more work than one.
    #[must_use]
    pub fn knows(&self, key: &PublicKey) -> bool {
        let rules = self.rules.as_ref();
        rules.is_none_or(|rules| rules.knows(key))
    }

    /// Whether an image may be loaded, as what, and with which limits. What
    /// comes out has been written to the policy's log, if it names one.
    ///
    /// # Errors
    /// Why not.
    pub fn admit(
        &self,
        bytes: impl Into<Arc<[u8]>>,
        asked: &Asked<'_>,
    ) -> Result<Admitted, NotAdmitted> {
        self.admit_within(bytes, asked, &mut Work::of(Work::KNOWN))
    }

    /// As [`Authoriser::admit`], with the work that the request may cause: for credentials, record
    /// and decision. Beside that, the image is hashed, and it is verified if there is leave.
    ///
    /// # Errors
    /// As [`Authoriser::admit`].
    pub fn admit_within(
        &self,
        bytes: impl Into<Arc<[u8]>>,
        asked: &Asked<'_>,
        work: &mut Work,
    ) -> Result<Admitted, NotAdmitted> {
        let bytes = bytes.into();
        let Some(rules) = &self.rules else {
            let verified = verify(bytes).map_err(NotAdmitted::Rejected)?;
            return Ok(Admitted::trusting_everyone(verified));
        };
        let image = Sha256Digest::of(&bytes);
        let answer = rules.judge(bytes, image, asked, work);
        rules.noted(answer, image, asked)
    }

    /// Whether machine code may be loaded behind the language alone, into the host itself. Nothing looks at the code:
    /// policy and record say that a compiler is trusted with it. What comes out has been written to the log.
    ///
    /// # Errors
    /// Why not. Without a policy nothing is admitted.
    pub fn admit_native(
        &self,
        bytes: impl Into<Arc<[u8]>>,
        asked: &Asked<'_>,
        work: &mut Work,
    ) -> Result<Native, NotAdmitted> {
        let rules = self.rules.as_ref().ok_or(NotAdmitted::NoPolicy)?;
        let bytes = bytes.into();
        let image = Sha256Digest::of(&bytes);
        let answer = rules.decide_native(image, asked, work);
        let keys: Vec<_> = asked.requesters.iter().map(Proven::key).collect();
        match &answer {
            Ok(decision) => rules.note(event::admitted(decision))?,
            Err(reason) => rules.note_refusal(reason, &keys, &image)?,
        }
        Ok(Native::decided(bytes, answer?))
    }

    /// As [`Authoriser::admit_within`], for a first attempt. Nothing, if the work does not suffice: then nothing
    /// is decided, and nothing is written to the log.
    ///
    /// # Errors
    /// As [`Authoriser::admit`].
    pub fn try_to_admit(
        &self,
        bytes: impl Into<Arc<[u8]>>,
        asked: &Asked<'_>,
        work: &mut Work,
    ) -> Option<Result<Admitted, NotAdmitted>> {
        let Some(rules) = &self.rules else {
            return Some(self.admit_within(bytes, asked, work));
        };
        let bytes = bytes.into();
        let image = Sha256Digest::of(&bytes);
        let answer = rules.judge(bytes, image, asked, work);
        // After a payment that failed nothing is left.
        (work.left() > 0).then(|| rules.noted(answer, image, asked))
    }
}

impl Authoriser {
    /// Writes to the policy's log, if it names one, what became of something that was admitted.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn record(&self, event: Value) -> Result<(), LogError> {
        match &self.rules {
            Some(rules) => rules.note(event),
            None => Ok(()),
        }
    }
}

impl Rules {
    fn judge(
        &self,
        bytes: Arc<[u8]>,
        image: Sha256Digest,
        asked: &Asked<'_>,
        work: &mut Work,
    ) -> Result<(Code, Decision), NotAdmitted> {
        let decision = self.decide(image, asked, work)?;
        let code = match decision.verify {
            true => verify(bytes).map(Code::Verified),
            false => structure(bytes).map(Code::Unverified),
        };
        let code = code.map_err(NotAdmitted::Rejected)?;
        check(code.image(), &decision)?;
        Ok((code, decision))
    }

    fn decide(
        &self,
        image: Sha256Digest,
        asked: &Asked<'_>,
        work: &mut Work,
    ) -> Result<Decision, NotAdmitted> {
        // The one that this loader puts up, but for a host's promise.
        match asked.alone {
            false => self.decide_for(&[WallKind::Window], image, asked, work),
            true => self.decide_for(&[WallKind::Process, WallKind::Window], image, asked, work),
        }
    }

    fn decide_native(
        &self,
        image: Sha256Digest,
        asked: &Asked<'_>,
        work: &mut Work,
    ) -> Result<Decision, NotAdmitted> {
        let decision = self.decide_for(&[WallKind::Language], image, asked, work)?;
        if decision.verify {
            return Err(NotAdmitted::Unverifiable);
        }
        // Nothing stops such code. Its memory and its stack are for the host to compare.
        let mut unheld = [Limit::Time, Limit::Calls].into_iter();
        match unheld.find(|limit| decision.limits.get(*limit).is_some()) {
            Some(limit) => Err(NotAdmitted::Unheld(limit.name())),
            None => Ok(decision),
        }
    }

    /// Asks for the first of these mechanisms that the type has.
    fn decide_for(
        &self,
        mechanisms: &[WallKind],
        image: Sha256Digest,
        asked: &Asked<'_>,
        work: &mut Work,
    ) -> Result<Decision, NotAdmitted> {
        if asked.requesters.is_empty() {
            return Err(NotAdmitted::Nobody);
        }
        if asked.credentials.len() > CREDENTIALS {
            return Err(NotAdmitted::Credentials);
        }
        let record = asked.record.ok_or(NotAdmitted::NoRecord)?;
        let mut store = Store::over(self.store.clone());
        for text in asked.credentials {
            let parsed = parse_each(text.as_bytes(), work);
            let parsed = parsed.map_err(|error| NotAdmitted::Refused(error.into()))?;
            store.add_parsed(parsed, "brought");
        }
        let requesters = asked.requesters.iter().map(Proven::key).collect();
        let mut request = Request::new(requesters, image);
        request.limits = asked.limits;
        request.attributes = asked.attributes.clone();
        let words = InWords::new(&self.policy, &asked.names);
        let mut ask = |mechanism: &WallKind| {
            request.mechanism = Some(*mechanism);
            decide(&self.policy, &store, record, &request, work, &words)
        };
        let (last, others) = mechanisms.split_last().unwrap_or((&WallKind::Window, &[]));
        for mechanism in others {
            match ask(mechanism) {
                Err(refusal) if matches!(refusal.reason, Reason::Mechanism(_)) => {}
                answer => return answer.map_err(NotAdmitted::Refused),
            }
        }
        ask(last).map_err(NotAdmitted::Refused)
    }

    /// An answer, once the log has it.
    fn noted(
        &self,
        answer: Result<(Code, Decision), NotAdmitted>,
        image: Sha256Digest,
        asked: &Asked<'_>,
    ) -> Result<Admitted, NotAdmitted> {
        let keys: Vec<_> = asked.requesters.iter().map(Proven::key).collect();
        match &answer {
            Ok((_, decision)) => self.note(event::admitted(decision))?,
            Err(reason) => self.note_refusal(reason, &keys, &image)?,
        }
        let (code, decision) = answer?;
        Ok(Admitted::decided(code, decision))
    }

    /// Of strangers as much as leaves room for others.
    fn note_refusal(
        &self,
        reason: &NotAdmitted,
        keys: &[PublicKey],
        image: &Sha256Digest,
    ) -> Result<(), LogError> {
        let event = told(reason, keys, image);
        match &self.log {
            Some(log) if !keys.iter().any(|key| self.knows(key)) => log.append_of_a_stranger(event),
            _ => self.note(event),
        }
    }

    fn knows(&self, key: &PublicKey) -> bool {
        self.store.names(&key.principal())
    }

    fn note(&self, event: Value) -> Result<(), LogError> {
        match &self.log {
            Some(log) => log.append(event).map(drop),
            None => Ok(()),
        }
    }
}

/// A refusal, for the log.
fn told(reason: &NotAdmitted, keys: &[PublicKey], image: &Sha256Digest) -> Value {
    match reason {
        NotAdmitted::Refused(refusal) => event::not_granted(refusal, keys, image),
        reason => refused(&reason.to_string(), keys, image),
    }
}

/// Whether the image keeps to what was granted.
fn check(image: &Image, decision: &Decision) -> Result<(), NotAdmitted> {
    if protection(image) < decision.protection {
        return Err(NotAdmitted::Protection {
            image: image.protection().name(),
            record: decision.protection,
        });
    }
    let mut imports = image.imports().iter();
    if let Some(name) = imports.find(|name| !decision.imports.contains(name)) {
        return Err(NotAdmitted::Import(name.clone()));
    }
    match decision.limits.stack {
        Some(stack) if stack < SMALLEST_STACK => Err(NotAdmitted::Stack(stack)),
        _ => Ok(()),
    }
}

fn protection(image: &Image) -> Protection {
    match image.protection() {
        mullion_abi::Protection::WriteCall => Protection::WriteCall,
        mullion_abi::Protection::ReadWriteCall => Protection::ReadWriteCall,
        mullion_abi::Protection::Trap => Protection::Trap,
    }
}
