//! Assertions kept for queries, indexed by licensee.

use super::bounds;
use super::parser::{ParseError, Parsed};
use super::principal::{Algorithms, Key, Principal};
use super::signature::{self, SignatureError};
use super::syntax::{Assertion, Licensees};
use super::work::{Cost, Exhausted, Work};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

/// Names one assertion of a [`Store`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AssertionId(pub(super) usize);

/// Policies and credentials.
///
/// Adding costs no cryptography: a signature is verified when a query first
/// needs it, and never again.
#[derive(Default)]
pub struct Store {
    /// What lies below: its assertions have the first numbers.
    base: Option<Arc<Store>>,
    entries: Vec<Entry>,
    by_licensee: HashMap<Principal, Vec<AssertionId>>,
    /// Assertions that every query must look at: without a `Licensees` field,
    /// or with licensees that depend on its attributes.
    open: Vec<AssertionId>,
    /// Those that are policies.
    policies: Vec<AssertionId>,
    left_out: LeftOut,
    algorithms: Algorithms,
}

/// Assertions that were left out because they could not be read.
#[derive(Clone, Debug, Default)]
struct LeftOut {
    first: Vec<String>,
    others: usize,
}

pub(super) struct Entry {
    pub(super) assertion: Assertion,
    origin: String,
    trusted: bool,
    verified: OnceLock<Result<(), SignatureError>>,
}

impl Store {
    /// An empty store that accepts signatures of the given algorithms.
    #[must_use]
    pub fn new(algorithms: Algorithms) -> Self {
        Store {
            algorithms,
            ..Store::default()
        }
    }

    /// A store with all that is in `base`, to which more can be added for a
    /// while: neither copies nor changes it.
    #[must_use]
    pub fn over(base: Arc<Store>) -> Self {
        Store {
            algorithms: base.algorithms,
            base: Some(base),
            ..Store::default()
        }
    }

    /// Adds an assertion that is trusted because of where it comes from; its
    /// signature, if it has one, is not looked at. `origin` names the place in
    /// explanations.
    pub fn add_policy(&mut self, assertion: Assertion, origin: &str) -> AssertionId {
        self.add(assertion, origin, true)
    }

    /// Adds an assertion that counts only if it is signed by its authorizer.
    pub fn add_credential(&mut self, assertion: Assertion, origin: &str) -> AssertionId {
        self.add(assertion, origin, false)
    }

    /// Adds the credentials of a text that was read, and notes which of them were left out.
    pub fn add_parsed(&mut self, parsed: Parsed, origin: &str) {
        for assertion in parsed.assertions {
            self.add_credential(assertion, origin);
        }
        for error in &parsed.left_out {
            self.leave_out(error, origin);
        }
        self.left_out.others += parsed.others - parsed.left_out.len();
    }

    fn leave_out(&mut self, error: &ParseError, origin: &str) {
        if self.left_out.first.len() < bounds::LEFT_OUT {
            let text = format!("a credential ({origin}) was left out: {error}");
            let text = crate::text::shortened(&text, 400).into_owned();
            self.left_out.first.push(text);
        } else {
            self.left_out.others += 1;
        }
    }

    /// What was left out, in words: a few lines.
    #[must_use]
    pub fn left_out(&self) -> Vec<String> {
        let mut lines = self.left_out.first.clone();
        if self.left_out.others > 0 {
            let others = self.left_out.others;
            lines.push(format!("{others} credentials more were left out"));
        }
        lines
    }

    fn add(&mut self, assertion: Assertion, origin: &str, trusted: bool) -> AssertionId {
        let id = AssertionId(self.len());
        if trusted {
            self.policies.push(id);
        }
        if is_open(&assertion) {
            self.open.push(id);
        } else {
            for principal in assertion.licensees() {
                let list = self.by_licensee.entry(principal.clone()).or_default();
                if list.last() != Some(&id) {
                    list.push(id);
                }
            }
        }
        self.entries.push(Entry {
            assertion,
            origin: origin.to_owned(),
            trusted,
            verified: OnceLock::new(),
        });
        id
    }

    /// How many assertions there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.below() + self.entries.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn below(&self) -> usize {
        self.base.as_ref().map_or(0, |base| base.len())
    }

    fn entry(&self, id: AssertionId) -> &Entry {
        match (&self.base, id.0.checked_sub(self.below())) {
            (Some(base), None) => base.entry(id),
            (_, own) => &self.entries[own.unwrap_or(id.0)],
        }
    }

    /// The assertion of that name.
    ///
    /// # Panics
    /// If the name is that of another store, and larger.
    #[must_use]
    pub fn assertion(&self, id: AssertionId) -> &Assertion {
        &self.entry(id).assertion
    }

    /// Where the assertion came from, as given when it was added.
    ///
    /// # Panics
    /// As [`Store::assertion`].
    #[must_use]
    pub fn origin(&self, id: AssertionId) -> &str {
        &self.entry(id).origin
    }

    /// Whether the assertion is a policy.
    ///
    /// # Panics
    /// As [`Store::assertion`].
    #[must_use]
    pub fn is_policy(&self, id: AssertionId) -> bool {
        self.entry(id).trusted
    }

    /// Every assertion's name, in the order of adding.
    pub fn ids(&self) -> impl Iterator<Item = AssertionId> + use<> {
        (0..self.len()).map(AssertionId)
    }

    /// Every policy's name.
    #[must_use]
    pub fn policies(&self) -> Vec<AssertionId> {
        let base = self.base.as_ref();
        let mut all = base.map_or(Vec::new(), |base| base.policies());
        all.extend(&self.policies);
        all
    }

    /// Whether the assertion came with a request: it is in a store that is over another one, and
    /// not in that.
    #[must_use]
    pub fn is_brought(&self, id: AssertionId) -> bool {
        self.base.is_some() && id.0 >= self.below()
    }

    /// Whether an assertion names the principal as a licensee, without regard to a query.
    #[must_use]
    pub fn names(&self, principal: &Principal) -> bool {
        self.by_licensee.contains_key(principal)
            || self.base.as_ref().is_some_and(|base| base.names(principal))
    }

    /// Verifies the signature of a credential whose authorizer and signature
    /// do not depend on a query.
    ///
    /// # Errors
    /// Why it does not count.
    pub fn verify(&self, id: AssertionId) -> Result<(), SignatureError> {
        let entry = self.entry(id);
        let Some(authorizer) = entry.assertion.authorizer() else {
            return Err(SignatureError::Malformed);
        };
        let verified = self.verify_as(id, authorizer, &mut Work::unbounded());
        verified.unwrap_or(Err(SignatureError::Malformed))
    }

    /// Whether a signature counts. Pays for one that has not been verified before.
    pub(super) fn verify_as(
        &self,
        id: AssertionId,
        authorizer: &Principal,
        work: &mut Work,
    ) -> Result<Result<(), SignatureError>, Exhausted> {
        let entry = self.entry(id);
        if entry.trusted {
            return Ok(Ok(()));
        }
        let constant = entry.assertion.authorizer.constant().is_some();
        if let Some(verified) = entry.verified.get().filter(|_| constant) {
            return Ok(verified.clone());
        }
        let verified = entry
            .assertion
            .verify_for(authorizer, self.algorithms, work)?;
        if constant {
            let _another_thread_was_first = entry.verified.set(verified.clone());
        }
        Ok(verified)
    }

    /// Those that name the principal as a licensee.
    pub(super) fn naming(&self, principal: &Principal) -> Vec<AssertionId> {
        let mut all = self
            .base
            .as_ref()
            .map_or(Vec::new(), |base| base.naming(principal));
        all.extend(self.by_licensee.get(principal).into_iter().flatten());
        all
    }

    pub(super) fn open(&self) -> Vec<AssertionId> {
        let mut all = self.base.as_ref().map_or(Vec::new(), |base| base.open());
        all.extend(&self.open);
        all
    }
}

fn is_open(assertion: &Assertion) -> bool {
    let Some(licensees) = &assertion.licensees else {
        return true;
    };
    let mut computed = false;
    licensees.each(&mut |reference| computed |= reference.constant().is_none());
    computed && !matches!(licensees, Licensees::Empty)
}

impl Assertion {
    /// Verifies the signature as one of `authorizer`.
    ///
    /// # Errors
    /// Why it does not count.
    pub fn verify(
        &self,
        authorizer: &Principal,
        algorithms: Algorithms,
    ) -> Result<(), SignatureError> {
        let verified = self.verify_for(authorizer, algorithms, &mut Work::unbounded());
        verified.unwrap_or(Err(SignatureError::Malformed))
    }

    fn verify_for(
        &self,
        authorizer: &Principal,
        algorithms: Algorithms,
        work: &mut Work,
    ) -> Result<Result<(), SignatureError>, Exhausted> {
        let Some(signature) = &self.signature else {
            return Ok(Err(SignatureError::Missing));
        };
        let Some(signature) = signature.constant(&self.constants, work)? else {
            return Ok(Err(SignatureError::Malformed));
        };
        let price = match authorizer.key() {
            Some(Key::Rsa(..)) => Cost::Rsa,
            _ => Cost::Signature,
        };
        work.pay(price, 1)?;
        // It is copied and hashed, with what stands behind it.
        work.pay(Cost::Copied, 4 * self.source.len())?;
        let (text, field) = self.source.split_at(self.signed_length);
        let field = field.strip_suffix(b"\n").unwrap_or(field);
        Ok(signature::verify(
            authorizer, &signature, text, field, algorithms,
        ))
    }

    /// The constants by name.
    #[must_use]
    pub fn constants(&self) -> &BTreeMap<String, Vec<u8>> {
        &self.constants
    }
}
