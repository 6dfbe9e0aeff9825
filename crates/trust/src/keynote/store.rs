//! Assertions kept for queries, indexed by licensee.

use super::principal::{Algorithms, Principal};
use super::signature::{self, SignatureError};
use super::syntax::{Assertion, Licensees, PrincipalRef};
use std::collections::{BTreeMap, HashMap};
use std::sync::OnceLock;

/// Names one assertion of a [`Store`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AssertionId(pub(super) usize);

/// Policies and credentials.
///
/// Adding costs no cryptography: a signature is verified when a query first
/// needs it, and never again.
#[derive(Default)]
pub struct Store {
    entries: Vec<Entry>,
    by_licensee: HashMap<Principal, Vec<AssertionId>>,
    /// Assertions that every query must look at: without a `Licensees` field,
    /// or with licensees that depend on its attributes.
    open: Vec<AssertionId>,
    algorithms: Algorithms,
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

    fn add(&mut self, assertion: Assertion, origin: &str, trusted: bool) -> AssertionId {
        let id = AssertionId(self.entries.len());
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
        self.entries.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The assertion of that name.
    ///
    /// # Panics
    /// If the name is that of another store, and larger.
    #[must_use]
    pub fn assertion(&self, id: AssertionId) -> &Assertion {
        &self.entries[id.0].assertion
    }

    /// Where the assertion came from, as given when it was added.
    ///
    /// # Panics
    /// As [`Store::assertion`].
    #[must_use]
    pub fn origin(&self, id: AssertionId) -> &str {
        &self.entries[id.0].origin
    }

    /// Whether the assertion is a policy.
    ///
    /// # Panics
    /// As [`Store::assertion`].
    #[must_use]
    pub fn is_policy(&self, id: AssertionId) -> bool {
        self.entries[id.0].trusted
    }

    /// Every assertion's name, in the order of adding.
    pub fn ids(&self) -> impl Iterator<Item = AssertionId> + use<> {
        (0..self.entries.len()).map(AssertionId)
    }

    /// Verifies the signature of a credential whose authorizer and signature
    /// do not depend on a query.
    ///
    /// # Errors
    /// Why it does not count.
    pub fn verify(&self, id: AssertionId) -> Result<(), SignatureError> {
        let entry = &self.entries[id.0];
        let Some(authorizer) = entry.assertion.authorizer() else {
            return Err(SignatureError::Malformed);
        };
        self.verify_as(id, authorizer)
    }

    pub(super) fn verify_as(
        &self,
        id: AssertionId,
        authorizer: &Principal,
    ) -> Result<(), SignatureError> {
        let entry = &self.entries[id.0];
        let check = || entry.assertion.verify(authorizer, self.algorithms);
        match entry.assertion.authorizer {
            _ if entry.trusted => Ok(()),
            PrincipalRef::Constant(_) => entry.verified.get_or_init(check).clone(),
            PrincipalRef::Computed(_) => check(),
        }
    }

    pub(super) fn naming(&self, principal: &Principal) -> &[AssertionId] {
        self.by_licensee.get(principal).map_or(&[], Vec::as_slice)
    }

    pub(super) fn open(&self) -> &[AssertionId] {
        &self.open
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
        let signature = self.signature.as_ref().ok_or(SignatureError::Missing)?;
        let signature = signature
            .constant(&self.constants)
            .ok_or(SignatureError::Malformed)?;
        let (text, field) = self.source.split_at(self.signed_length);
        let field = field.strip_suffix(b"\n").unwrap_or(field);
        signature::verify(authorizer, &signature, text, field, algorithms)
    }

    /// The constants by name.
    #[must_use]
    pub fn constants(&self) -> &BTreeMap<String, Vec<u8>> {
        &self.constants
    }
}
