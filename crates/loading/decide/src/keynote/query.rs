//! Queries (RFC 2704, section 5): the compliance value of `POLICY`.
//!
//! The values of principals start at the least one, those of the requesters at
//! the greatest, and grow: whenever a principal's value grows, its places among
//! the licensees of assertions grow with it, and may make the authorizers'
//! values grow. That ends, cycles or not, because values only grow and there are
//! finitely many; what it ends in is the least fixpoint. Each place among
//! licensees is looked up once, and changed no more often than there are values.

use super::bounds;
use super::eval::{Environment, Evaluator};
use super::principal::Principal;
use super::signature::SignatureError;
use super::store::{AssertionId, Store};
use super::syntax::{PrincipalRef, Str};
use super::tree::{Place, Tree};
use super::work::{Cost, Exhausted, Work};
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

impl Query {
    pub(super) fn environment(&self) -> Environment<'_> {
        Environment {
            attributes: &self.attributes,
            values: &self.values,
            value_list: &self.value_list,
            authorizers: &self.authorizers,
        }
    }
}

impl Store {
    /// Answers a query. What it costs is paid for before it is done.
    ///
    /// # Errors
    /// The budget does not suffice: there is no answer.
    pub fn query(&self, query: &Query, work: &mut Work) -> Result<Answer, Exhausted> {
        let environment = query.environment();
        let mut search = Search {
            store: self,
            environment: &environment,
            greatest: query.values.len() - 1,
            work,
            ranks: HashMap::new(),
            support: HashMap::new(),
            seen: BTreeMap::new(),
            places: HashMap::new(),
            raised: VecDeque::new(),
        };
        search.run(&query.requesters)?;
        search.answer(query)
    }
}

struct Search<'a> {
    store: &'a Store,
    environment: &'a Environment<'a>,
    greatest: usize,
    work: &'a mut Work,
    /// Absent: the least.
    ranks: HashMap<Principal, usize>,
    support: HashMap<Principal, AssertionId>,
    seen: BTreeMap<AssertionId, Seen>,
    /// Where principals are licensees, of the assertions that have been seen.
    places: HashMap<Principal, Vec<(AssertionId, Place)>>,
    raised: VecDeque<Principal>,
}

/// An assertion that has been looked at.
struct Seen {
    licensees: Tree,
    outcome: Outcome,
    /// Its authorizer and the rank of its conditions, once they are known. They do not depend on
    /// ranks, so that they are found once.
    holds: Option<(Principal, usize)>,
}

impl Search<'_> {
    fn run(&mut self, requesters: &[Principal]) -> Result<(), Exhausted> {
        if self.greatest == 0 {
            return Ok(());
        }
        for requester in requesters {
            self.ranks.insert(requester.clone(), self.greatest);
            self.raised.push_back(requester.clone());
        }
        for id in self.store.open() {
            self.look_at(id)?;
        }
        let policy = Principal::policy();
        while let Some(principal) = self.raised.pop_front() {
            if self.rank(&policy) == self.greatest {
                return Ok(());
            }
            for id in self.store.naming(&principal) {
                self.look_at(id)?;
            }
            self.grow(&principal)?;
        }
        Ok(())
    }

    fn rank(&self, principal: &Principal) -> usize {
        self.ranks.get(principal).copied().unwrap_or(0)
    }

    /// Looks at an assertion for the first time: who its licensees are, and where.
    fn look_at(&mut self, id: AssertionId) -> Result<(), Exhausted> {
        self.work.pay(Cost::Edge, 1)?;
        if self.seen.contains_key(&id) {
            return Ok(());
        }
        let field = self.store.assertion(id).licensees.as_ref();
        let (mut tree, leaves) = Tree::new(field, self.greatest + 1, self.work)?;
        for (place, reference) in leaves {
            let Some(principal) = self.resolve(id, reference)? else {
                continue;
            };
            self.work.pay(Cost::Copied, principal.as_bytes().len())?;
            tree.raise(place, self.rank(&principal));
            self.places.entry(principal).or_default().push((id, place));
        }
        let seen = Seen {
            licensees: tree,
            outcome: Outcome::Licensees,
            holds: None,
        };
        self.seen.insert(id, seen);
        self.settle(id)
    }

    /// A principal's rank has grown: so do its places.
    fn grow(&mut self, principal: &Principal) -> Result<(), Exhausted> {
        let rank = self.rank(principal);
        let places = self.places.get(principal).cloned().unwrap_or_default();
        self.work.pay(Cost::Edge, places.len())?;
        for (id, place) in places {
            let seen = self.seen.get_mut(&id);
            if seen.is_some_and(|seen| seen.licensees.raise(place, rank)) {
                self.settle(id)?;
            }
        }
        Ok(())
    }

    /// Gives the authorizer what its assertion is worth now.
    fn settle(&mut self, id: AssertionId) -> Result<(), Exhausted> {
        let Some(seen) = self.seen.get(&id) else {
            return Ok(());
        };
        let licensees = seen.licensees.rank();
        let known = seen.holds.clone();
        if licensees == 0 {
            return Ok(());
        }
        let holds = match (known, &seen.outcome) {
            (Some(holds), _) => Ok(holds),
            (None, Outcome::Licensees) => self.hold(id)?,
            // It has been found out, and it does not hold.
            (None, _) => return Ok(()),
        };
        let outcome = match &holds {
            Ok((_, conditions)) => Outcome::Supports(licensees.min(*conditions)),
            Err(outcome) => outcome.clone(),
        };
        if let Some(seen) = self.seen.get_mut(&id) {
            seen.outcome = outcome;
            seen.holds = holds.as_ref().ok().cloned();
        }
        if let Ok((authorizer, conditions)) = holds {
            let rank = licensees.min(conditions);
            if rank > self.rank(&authorizer) {
                self.ranks.insert(authorizer.clone(), rank);
                self.support.insert(authorizer.clone(), id);
                self.raised.push_back(authorizer);
            }
        }
        Ok(())
    }

    /// The authorizer, and the rank of the conditions; or why it does not hold.
    fn hold(&mut self, id: AssertionId) -> Result<Result<(Principal, usize), Outcome>, Exhausted> {
        let assertion = self.store.assertion(id);
        let Some(authorizer) = self.resolve(id, &assertion.authorizer)? else {
            return Ok(Err(Outcome::Signature(SignatureError::Malformed)));
        };
        // Before anything else of it is evaluated: strangers' text is not run.
        if let Err(error) = self.store.verify_as(id, &authorizer, self.work)? {
            return Ok(Err(Outcome::Signature(error)));
        }
        let (rank, faults) = self.evaluate(id)?;
        Ok(match rank {
            0 => Err(Outcome::Conditions(faults)),
            rank => Ok((authorizer, rank)),
        })
    }

    fn evaluate(&mut self, id: AssertionId) -> Result<(usize, Vec<String>), Exhausted> {
        let assertion = self.store.assertion(id);
        let Some(clauses) = &assertion.conditions else {
            return Ok((self.greatest, Vec::new()));
        };
        let environment = self.environment;
        let result = self.work.within(bounds::WORK, |work| {
            let mut evaluator = Evaluator::new(environment, &assertion.constants, work);
            let rank = evaluator.program(clauses);
            (rank, evaluator.faults)
        });
        // Not the assertion's share is used up, but all.
        if self.work.left() == 0 {
            return Err(Exhausted);
        }
        let (rank, faults) = result;
        Ok((rank, faults.iter().map(ToString::to_string).collect()))
    }

    fn computed(&mut self, id: AssertionId, text: &Str) -> Result<Option<Principal>, Exhausted> {
        let constants = &self.store.assertion(id).constants;
        let mut evaluator = Evaluator::new(self.environment, constants, self.work);
        let name = evaluator.string(text).ok().map(|name| name.into_owned());
        if self.work.left() == 0 {
            return Err(Exhausted);
        }
        let Some(name) = name else {
            return Ok(None);
        };
        self.work.pay(Cost::Parsed, name.len())?;
        Ok(Some(Principal::new(&name)))
    }

    fn resolve(
        &mut self,
        id: AssertionId,
        reference: &PrincipalRef,
    ) -> Result<Option<Principal>, Exhausted> {
        match reference {
            PrincipalRef::Constant(principal) => Ok(Some(principal.clone())),
            PrincipalRef::Computed(text) => self.computed(id, text),
        }
    }

    fn answer(mut self, query: &Query) -> Result<Answer, Exhausted> {
        let policy = Principal::policy();
        let rank = self.rank(&policy);
        let chain = self.chain(policy)?;
        let considered = self.seen.into_iter().map(|(id, seen)| (id, seen.outcome));
        Ok(Answer {
            value: query.values[rank].clone(),
            rank,
            granted: rank == self.greatest && self.greatest > 0,
            chain,
            considered: considered.collect(),
        })
    }

    /// Follows what raised each principal, from the root downwards.
    fn chain(&mut self, root: Principal) -> Result<Vec<Step>, Exhausted> {
        let mut chain = Vec::new();
        let mut followed = BTreeSet::new();
        let mut pending = VecDeque::from([root]);
        while let Some(authorizer) = pending.pop_front() {
            let Some(id) = self.support.get(&authorizer).copied() else {
                continue;
            };
            if !followed.insert(id) {
                continue;
            }
            let mut references = Vec::new();
            if let Some(field) = &self.store.assertion(id).licensees {
                field.each(&mut |reference| references.push(reference));
            }
            self.work.pay(Cost::Edge, references.len())?;
            let mut licensees = Vec::new();
            for reference in references {
                let found = self.resolve(id, reference)?;
                licensees.extend(found.filter(|principal| self.rank(principal) > 0));
            }
            licensees.dedup();
            pending.extend(licensees.iter().cloned());
            chain.push(Step {
                assertion: id,
                rank: self.rank(&authorizer),
                authorizer,
                licensees,
            });
        }
        Ok(chain)
    }
}
