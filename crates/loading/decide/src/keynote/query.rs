//! Queries (RFC 2704, section 5): the compliance value of `POLICY`.
//!
//! Which assertions to look at, and in which order, `crates/loading/search` finds. It is not trusted: what it finds is
//! gone through here again. The requesters have the greatest rank. Each assertion of the order gives its authorizer
//! what its licensees have by then and its conditions allow, if it counts at all ([`Asking::rank`]). So the rank of
//! `POLICY` rests on the assertions, and on nothing that was said of them.

use super::bounds;
use super::eval::{Environment, Evaluator};
use super::principal::Principal;
use super::signature::SignatureError;
use super::store::{AssertionId, Store};
use super::syntax::{Licensees, PrincipalRef, Str};
use super::work::{Cost, Exhausted, Work};
use mullion_search::{Form, Question, search};
pub use mullion_wire::keynote::QueryError;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The action's attributes: name and value.
pub type Attributes = BTreeMap<String, Vec<u8>>;

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
pub type Step = mullion_search::Step<Principal, AssertionId>;

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
            return Err(QueryError::Values(bounds::VALUES));
        }
        if requesters.is_empty() || requesters.len() > bounds::REQUESTERS {
            return Err(QueryError::Requesters(bounds::REQUESTERS));
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
    /// Answers a query with all assertions that are here. Requesters can be
    /// anybody: who they are must have been proven before.
    ///
    /// # Errors
    /// The budget does not suffice.
    pub fn query(&self, query: &Query, work: &mut Work) -> Result<Answer, Exhausted> {
        let (policy, greatest) = (Principal::policy(), query.values.len() - 1);
        let mut asking = Asking {
            store: self,
            environment: &query.environment(),
            greatest,
            work,
            licensees: BTreeMap::new(),
            held: BTreeMap::new(),
        };
        let found = search(&mut asking, &policy, &query.requesters, greatest)?;
        let rank = asking.rank(&found.raised, &query.requesters, &policy)?;
        let considered = found.seen.into_iter();
        let considered = considered.map(|(id, licensees)| (id, asking.outcome(id, licensees)));
        Ok(Answer {
            value: query.values[rank].clone(),
            rank,
            granted: rank == greatest && greatest > 0,
            chain: found.chain,
            considered: considered.collect(),
        })
    }
}

/// What an assertion gives its authorizer by its conditions; or why it counts for nothing.
type Held = Result<(Principal, usize), Outcome>;

/// A query that is being answered.
struct Asking<'a> {
    store: &'a Store,
    environment: &'a Environment<'a>,
    greatest: usize,
    work: &'a mut Work,
    /// Of assertions that were looked at.
    licensees: BTreeMap<AssertionId, Form<Principal>>,
    /// Of those that were evaluated.
    held: BTreeMap<AssertionId, Held>,
}

impl Question for Asking<'_> {
    type Principal = Principal;
    type Assertion = AssertionId;
    type Stop = Exhausted;

    fn open(&self) -> Vec<AssertionId> {
        self.store.open()
    }

    fn naming(&self, principal: &Principal) -> Vec<AssertionId> {
        self.store.naming(principal)
    }

    fn licensees(&mut self, id: AssertionId) -> Result<&Form<Principal>, Exhausted> {
        if !self.licensees.contains_key(&id) {
            let form = match &self.store.assertion(id).licensees {
                None => Form::Everybody,
                Some(field) => self.form(id, field)?,
            };
            self.licensees.insert(id, form);
        }
        Ok(self.licensees.get(&id).unwrap_or(&Form::Nobody))
    }

    fn hold(&mut self, id: AssertionId) -> Result<Option<(Principal, usize)>, Exhausted> {
        if !self.held.contains_key(&id) {
            let held = self.judge(id)?;
            self.held.insert(id, held);
        }
        Ok(self
            .held
            .get(&id)
            .and_then(|held| held.as_ref().ok())
            .cloned())
    }

    fn pay(&mut self, steps: usize) -> Result<(), Exhausted> {
        self.work.pay(Cost::Edge, steps)
    }
}

impl Asking<'_> {
    /// The rank that these assertions give to `root`, one after the other, where the requesters have the greatest.
    fn rank(
        &mut self,
        order: &[AssertionId],
        requesters: &[Principal],
        root: &Principal,
    ) -> Result<usize, Exhausted> {
        let greatest = self.greatest;
        let mut ranks: HashMap<Principal, usize> = requesters
            .iter()
            .map(|one| (one.clone(), greatest))
            .collect();
        for id in order {
            self.work.pay(Cost::Edge, 1)?;
            let Some((authorizer, conditions)) = self.hold(*id)? else {
                continue;
            };
            self.licensees(*id)?;
            let Some(form) = self.licensees.get(id) else {
                continue;
            };
            let licensees = together(form, &ranks, greatest, self.work)?;
            let rank = ranks.entry(authorizer).or_default();
            *rank = (*rank).max(licensees.min(conditions));
        }
        Ok(ranks.get(root).copied().unwrap_or(0))
    }

    /// What became of an assertion that was looked at, for explanations.
    fn outcome(&self, id: AssertionId, licensees: usize) -> Outcome {
        match self.held.get(&id) {
            Some(Ok((_, conditions))) => Outcome::Supports(licensees.min(*conditions)),
            Some(Err(outcome)) => outcome.clone(),
            None => Outcome::Licensees,
        }
    }

    /// The principals of a `Licensees` field. What the search keeps of them is paid for here.
    fn form(&mut self, id: AssertionId, field: &Licensees) -> Result<Form<Principal>, Exhausted> {
        self.work.pay(Cost::Edge, 1)?;
        let (parts, needed) = match field {
            Licensees::Empty => return Ok(Form::Nobody),
            Licensees::One(reference) => return self.one(id, reference),
            Licensees::And(parts) => (parts, parts.len()),
            Licensees::Or(parts) => (parts, 1),
            Licensees::AtLeast(count, list) => {
                self.work.pay(Cost::Copied, 4 * (self.greatest + 1))?;
                self.work.pay(Cost::Edge, list.len())?;
                let parts = list.iter().map(|reference| self.one(id, reference));
                return Ok(Form::Enough(*count, parts.collect::<Result<_, _>>()?));
            }
        };
        self.work.pay(Cost::Copied, 4 * (self.greatest + 1))?;
        let parts = parts.iter().map(|part| self.form(id, part));
        Ok(Form::Enough(needed, parts.collect::<Result<_, _>>()?))
    }

    fn one(&mut self, id: AssertionId, named: &PrincipalRef) -> Result<Form<Principal>, Exhausted> {
        let principal = self.resolve(id, named)?;
        let length = principal.as_ref().map_or(0, |one| one.as_bytes().len());
        self.work.pay(Cost::Copied, length)?;
        Ok(Form::One(principal))
    }

    /// Whether an assertion counts, for whom, and what its conditions give.
    fn judge(&mut self, id: AssertionId) -> Result<Held, Exhausted> {
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
}

/// The rank that licensees have together: of so many of these, the greatest that enough of them have.
fn together(
    form: &Form<Principal>,
    ranks: &HashMap<Principal, usize>,
    greatest: usize,
    work: &mut Work,
) -> Result<usize, Exhausted> {
    work.pay(Cost::Step, 1)?;
    Ok(match form {
        Form::Nobody | Form::One(None) => 0,
        Form::Everybody => greatest,
        Form::One(Some(principal)) => ranks.get(principal).copied().unwrap_or(0),
        Form::Enough(needed, parts) => {
            let parts = parts.iter();
            let all = parts.map(|part| together(part, ranks, greatest, work));
            let mut all: Vec<usize> = all.collect::<Result<_, _>>()?;
            all.sort_unstable_by(|one, other| other.cmp(one));
            let last = needed.checked_sub(1).and_then(|last| all.get(last));
            last.copied().unwrap_or(0)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keynote::{Algorithms, parse};

    /// Whatever order the search gives: nothing is granted by what does not hold, or not yet.
    #[test]
    fn no_order_grants_more_than_there_is() {
        let mut store = Store::new(Algorithms::default());
        let mut add = |text: &str, policy: bool| {
            let assertion = parse(text.as_bytes()).expect("an assertion");
            match policy {
                true => store.add_policy(assertion, "policy"),
                false => store.add_credential(assertion, "brought"),
            }
        };
        let root = add("Authorizer: \"POLICY\"\nLicensees: \"b\"\n", true);
        let between = add("Authorizer: \"b\"\nLicensees: \"a\"\n", true);
        let never = add(
            "Authorizer: \"POLICY\"\nLicensees: \"a\"\nConditions: x == \"y\";\n",
            true,
        );
        let unsigned = add("Authorizer: \"POLICY\"\nLicensees: \"a\"\n", false);
        let both = add("Authorizer: \"POLICY\"\nLicensees: \"a\" && \"c\"\n", true);
        let query = Query::new(&["refuse", "allow"], &[b"a"], Attributes::new()).expect("a query");
        let (policy, mut work) = (Principal::policy(), Work::unbounded());
        let mut rank = |order: &[AssertionId]| {
            let mut asking = Asking {
                store: &store,
                environment: &query.environment(),
                greatest: 1,
                work: &mut work,
                licensees: BTreeMap::new(),
                held: BTreeMap::new(),
            };
            asking.rank(order, query.requesters(), &policy)
        };
        for order in [
            &[][..],
            &[root],
            &[root, between],
            &[never],
            &[unsigned],
            &[both],
            &[never, unsigned, both, root, root, between],
        ] {
            assert_eq!(rank(order), Ok(0), "{order:?}");
        }
        assert_eq!(rank(&[between, root]), Ok(1));
    }
}
