//! Queries (RFC 2704, section 5): the compliance value of `POLICY`.
//!
//! The values of principals start at the least one, those of the requesters at
//! the greatest, and grow: whenever a principal's value grows, the assertions
//! that name it as a licensee are looked at again, and may make their
//! authorizer's value grow. That ends, cycles or not, because values only grow
//! and there are finitely many; what it ends in is the least fixpoint.

use super::bounds;
use super::eval::{Environment, Evaluator};
use super::principal::Principal;
use super::signature::SignatureError;
use super::store::{AssertionId, Store};
use super::syntax::{Licensees, PrincipalRef, Str};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

/// The action's attributes: name and value.
pub type Attributes = BTreeMap<String, Vec<u8>>;

/// A question that cannot be asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// None, too many, or one of them twice.
    #[error(
        "the compliance values must be 1 to {} different strings",
        bounds::VALUES
    )]
    Values,
    /// None, or too many.
    #[error("a query needs 1 to {} requesters", bounds::REQUESTERS)]
    Requesters,
    /// `POLICY` asks nobody.
    #[error("`POLICY` is the root of all chains and cannot be a requester")]
    PolicyRequests,
    /// An attribute's name.
    #[error(
        "`{0}` cannot be an attribute: names are letters, digits and `_`, and do not begin with `_`"
    )]
    AttributeName(String),
    /// An attribute's value, or the number of attributes.
    #[error("the attribute `{0}` is too long, holds a NUL byte, or is one too many")]
    AttributeValue(String),
}

/// A question: may these requesters do what these attributes describe?
#[derive(Clone, Debug)]
pub struct Query {
    values: Vec<String>,
    attributes: Attributes,
    requesters: Vec<Principal>,
    value_list: Vec<u8>,
    authorizers: Vec<u8>,
}

/// What a query found.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The compliance value of `POLICY`.
    pub value: String,
    /// Its place in the query's order, from 0.
    pub rank: usize,
    /// Whether it is the greatest, of more than one.
    pub granted: bool,
    /// The assertions that the value rests on, from the policy downwards.
    /// Empty if the value is the least one.
    pub chain: Vec<Step>,
    /// Every assertion that was looked at, and what became of it.
    pub considered: Vec<(AssertionId, Outcome)>,
}

/// One assertion of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Which.
    pub assertion: AssertionId,
    /// Who gives leave.
    pub authorizer: Principal,
    /// Those of its licensees that carry it here.
    pub licensees: Vec<Principal>,
    /// The rank of its value.
    pub rank: usize,
}

/// What became of an assertion that a query looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It gives its authorizer this rank.
    Supports(usize),
    /// Its licensees are not there, or not enough of them.
    Licensees,
    /// None of its conditions holds for these attributes. The faults that
    /// made a test false, if any.
    Conditions(Vec<String>),
    /// Its signature does not count.
    Signature(SignatureError),
}

impl Query {
    /// Puts a question. `values` are in ascending order; `requesters` are
    /// identifiers, `attributes` the action's.
    ///
    /// # Errors
    /// What RFC 2704 or [`bounds`] do not allow.
    pub fn new(
        values: &[&str],
        requesters: &[&[u8]],
        attributes: Attributes,
    ) -> Result<Query, QueryError> {
        let different: BTreeSet<_> = values.iter().collect();
        if different.len() != values.len() || values.is_empty() || values.len() > bounds::VALUES {
            return Err(QueryError::Values);
        }
        if requesters.is_empty() || requesters.len() > bounds::REQUESTERS {
            return Err(QueryError::Requesters);
        }
        let principals: Vec<_> = requesters.iter().map(|id| Principal::new(id)).collect();
        if principals.contains(&Principal::policy()) {
            return Err(QueryError::PolicyRequests);
        }
        for (index, (name, value)) in attributes.iter().enumerate() {
            let legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
            if name.is_empty() || name.starts_with('_') || !name.bytes().all(legal) {
                return Err(QueryError::AttributeName(name.clone()));
            }
            if value.len() > bounds::STRING || value.contains(&0) || index >= bounds::ATTRIBUTES {
                return Err(QueryError::AttributeValue(name.clone()));
            }
        }
        Ok(Query {
            values: values.iter().map(|value| (*value).to_owned()).collect(),
            attributes,
            requesters: principals,
            value_list: values.join(",").into_bytes(),
            authorizers: requesters.join(&b","[..]),
        })
    }

    /// The same question about other attributes; the names and values are
    /// those of a query that was accepted before, or numbers.
    pub(crate) fn set(&mut self, name: &str, value: String) {
        self.attributes.insert(name.to_owned(), value.into_bytes());
    }

    /// Who asks.
    #[must_use]
    pub fn requesters(&self) -> &[Principal] {
        &self.requesters
    }
}

impl Store {
    /// Answers a query.
    #[must_use]
    pub fn query(&self, query: &Query) -> Answer {
        let environment = Environment {
            attributes: &query.attributes,
            values: &query.values,
            value_list: &query.value_list,
            authorizers: &query.authorizers,
        };
        let mut search = Search {
            store: self,
            environment: &environment,
            greatest: query.values.len() - 1,
            ranks: HashMap::new(),
            support: HashMap::new(),
            conditions: HashMap::new(),
            outcomes: BTreeMap::new(),
            raised: VecDeque::new(),
        };
        search.run(&query.requesters);
        search.answer(query)
    }
}

struct Search<'a> {
    store: &'a Store,
    environment: &'a Environment<'a>,
    greatest: usize,
    /// Absent: the least.
    ranks: HashMap<Principal, usize>,
    support: HashMap<Principal, AssertionId>,
    /// Conditions do not depend on ranks: one evaluation is enough.
    conditions: HashMap<AssertionId, usize>,
    outcomes: BTreeMap<AssertionId, Outcome>,
    raised: VecDeque<Principal>,
}

impl Search<'_> {
    fn run(&mut self, requesters: &[Principal]) {
        if self.greatest == 0 {
            return;
        }
        for requester in requesters {
            self.ranks.insert(requester.clone(), self.greatest);
            self.raised.push_back(requester.clone());
        }
        let open = self.store.open();
        for id in &open {
            self.look_at(*id);
        }
        let policy = Principal::policy();
        while let Some(principal) = self.raised.pop_front() {
            if self.rank(&policy) == self.greatest {
                return;
            }
            for id in self.store.naming(&principal) {
                self.look_at(id);
            }
            // Licensees that depend on the query are in no index.
            for id in &open {
                if self.store.assertion(*id).licensees.is_some() {
                    self.look_at(*id);
                }
            }
        }
    }

    fn rank(&self, principal: &Principal) -> usize {
        self.ranks.get(principal).copied().unwrap_or(0)
    }

    fn look_at(&mut self, id: AssertionId) {
        let outcome = self.outcome(id);
        self.outcomes.insert(id, outcome);
    }

    fn outcome(&mut self, id: AssertionId) -> Outcome {
        let assertion = self.store.assertion(id);
        let licensees = match &assertion.licensees {
            None => self.greatest,
            Some(licensees) => self.licensees(id, licensees),
        };
        if licensees == 0 {
            return Outcome::Licensees;
        }
        let Some(authorizer) = self.resolve(id, &assertion.authorizer) else {
            return Outcome::Signature(SignatureError::Malformed);
        };
        // Before anything else of it is evaluated: strangers' text is not run.
        if let Err(error) = self.store.verify_as(id, &authorizer) {
            return Outcome::Signature(error);
        }
        let conditions = match self.conditions.get(&id) {
            Some(rank) => *rank,
            None => {
                let (rank, faults) = self.evaluate(id);
                self.conditions.insert(id, rank);
                if rank == 0 {
                    return Outcome::Conditions(faults);
                }
                rank
            }
        };
        if conditions == 0 {
            return self
                .outcomes
                .remove(&id)
                .unwrap_or(Outcome::Conditions(Vec::new()));
        }
        let rank = conditions.min(licensees);
        if rank > self.rank(&authorizer) {
            self.ranks.insert(authorizer.clone(), rank);
            self.support.insert(authorizer.clone(), id);
            self.raised.push_back(authorizer);
        }
        Outcome::Supports(rank)
    }

    fn evaluate(&self, id: AssertionId) -> (usize, Vec<String>) {
        let assertion = self.store.assertion(id);
        let Some(clauses) = &assertion.conditions else {
            return (self.greatest, Vec::new());
        };
        let mut evaluator = Evaluator::new(self.environment, &assertion.constants);
        let rank = evaluator.program(clauses);
        let faults = evaluator.faults.iter().map(ToString::to_string).collect();
        (rank, faults)
    }

    fn computed(&self, id: AssertionId, text: &Str) -> Option<Principal> {
        let constants = &self.store.assertion(id).constants;
        let mut evaluator = Evaluator::new(self.environment, constants);
        let name = evaluator.string(text).ok()?;
        Some(Principal::new(&name))
    }

    fn resolve(&self, id: AssertionId, reference: &PrincipalRef) -> Option<Principal> {
        match reference {
            PrincipalRef::Constant(principal) => Some(principal.clone()),
            PrincipalRef::Computed(text) => self.computed(id, text),
        }
    }

    fn licensees(&self, id: AssertionId, licensees: &Licensees) -> usize {
        let one = |reference: &PrincipalRef| match reference {
            PrincipalRef::Constant(principal) => self.rank(principal),
            PrincipalRef::Computed(text) => {
                self.computed(id, text).map_or(0, |found| self.rank(&found))
            }
        };
        match licensees {
            Licensees::Empty => 0,
            Licensees::One(reference) => one(reference),
            Licensees::And(parts) => {
                let ranks = parts.iter().map(|part| self.licensees(id, part));
                ranks.min().unwrap_or(0)
            }
            Licensees::Or(parts) => {
                let ranks = parts.iter().map(|part| self.licensees(id, part));
                ranks.max().unwrap_or(0)
            }
            Licensees::AtLeast(count, list) => {
                let mut ranks: Vec<_> = list.iter().map(one).collect();
                ranks.sort_unstable_by(|left, right| right.cmp(left));
                ranks.get(count - 1).copied().unwrap_or(0)
            }
        }
    }

    fn answer(self, query: &Query) -> Answer {
        let policy = Principal::policy();
        let rank = self.rank(&policy);
        Answer {
            value: query.values[rank].clone(),
            rank,
            granted: rank == self.greatest && self.greatest > 0,
            chain: self.chain(policy),
            considered: self.outcomes.into_iter().collect(),
        }
    }

    /// Follows what raised each principal, from the root downwards.
    fn chain(&self, root: Principal) -> Vec<Step> {
        let mut chain = Vec::new();
        let mut seen = BTreeSet::new();
        let mut pending = VecDeque::from([root]);
        while let Some(authorizer) = pending.pop_front() {
            let Some(id) = self.support.get(&authorizer) else {
                continue;
            };
            if !seen.insert(*id) {
                continue;
            }
            let mut licensees = Vec::new();
            if let Some(field) = &self.store.assertion(*id).licensees {
                field.each(&mut |reference| {
                    let found = self.resolve(*id, reference);
                    licensees.extend(found.filter(|principal| self.rank(principal) > 0));
                });
            }
            licensees.dedup();
            pending.extend(licensees.iter().cloned());
            chain.push(Step {
                assertion: *id,
                rank: self.rank(&authorizer),
                authorizer,
                licensees,
            });
        }
        chain
    }
}
