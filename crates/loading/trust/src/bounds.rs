//! Upper bounds that conditions name: what is worth asking for, and what a grant allows at most.

use mullion_decide::keynote::parts::{Clause, ClauseValue, Integer, Relation, Str, Test};
use mullion_decide::keynote::{Answer, Assertion, Cost, Exhausted, Outcome, Store, Work};

/// The greatest value that one comparison lets an attribute have.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AttributeBound {
    /// The attribute's name.
    pub name: String,
    /// The greatest value for which the comparison holds.
    pub at_most: i32,
}

/// The bounds in an assertion's conditions, wherever they stand: `@name <= 10`.
#[must_use]
pub fn upper_bounds(assertion: &Assertion) -> Vec<AttributeBound> {
    let mut found = Vec::new();
    of_clauses(assertion.clauses(), &mut found);
    found
}

/// A limit is tried at no more amounts than this.
const AMOUNTS: usize = 64;

/// The amounts of a limit worth asking for, the greatest first: the most that may be asked, and what the assertions that
/// hold name.
pub(crate) fn worth_asking(
    store: &Store,
    answer: &Answer,
    attribute: &str,
    most: i32,
    work: &mut Work,
) -> Result<Vec<i32>, Exhausted> {
    let mut amounts = amounts(store, answer, attribute, work)?;
    amounts.retain(|amount| (0..most).contains(amount));
    amounts.push(most);
    amounts.sort_unstable_by(|left, right| right.cmp(left));
    amounts.dedup();
    amounts.truncate(AMOUNTS);
    Ok(amounts)
}

/// Those of the assertions that hold, for one attribute.
fn amounts(
    store: &Store,
    answer: &Answer,
    attribute: &str,
    work: &mut Work,
) -> Result<Vec<i32>, Exhausted> {
    let mut amounts = Vec::new();
    for (id, outcome) in &answer.considered {
        if matches!(outcome, Outcome::Supports(_)) {
            let assertion = store.assertion(*id);
            work.pay(Cost::Copied, assertion.source().len())?;
            let bounds = upper_bounds(assertion).into_iter();
            let bounds = bounds.filter(|bound| bound.name == attribute);
            amounts.extend(bounds.map(|bound| bound.at_most));
        }
    }
    Ok(amounts)
}

fn of_clauses(clauses: &[Clause], found: &mut Vec<AttributeBound>) {
    for clause in clauses {
        of_test(&clause.test, found);
        if let ClauseValue::Nested(clauses) = &clause.value {
            of_clauses(clauses, found);
        }
    }
}

fn of_test(test: &Test, found: &mut Vec<AttributeBound>) {
    match test {
        Test::Not(test) => of_test(test, found),
        Test::And(tests) | Test::Or(tests) => {
            for test in tests {
                of_test(test, found);
            }
        }
        Test::Integers(left, relation, right) => {
            let (name, relation, limit) = match (left, right) {
                (Integer::Of(Str::Attribute(name)), Integer::Literal(limit)) => {
                    (name, *relation, *limit)
                }
                (Integer::Literal(limit), Integer::Of(Str::Attribute(name))) => {
                    (name, mirrored(*relation), *limit)
                }
                _ => return,
            };
            let at_most = match relation {
                Relation::LessOrEqual | Relation::Equal => Some(limit),
                Relation::Less => limit.checked_sub(1),
                _ => None,
            };
            if let Some(at_most) = at_most {
                found.push(AttributeBound {
                    name: name.clone(),
                    at_most,
                });
            }
        }
        _ => {}
    }
}

fn mirrored(relation: Relation) -> Relation {
    match relation {
        Relation::Less => Relation::Greater,
        Relation::Greater => Relation::Less,
        Relation::LessOrEqual => Relation::GreaterOrEqual,
        Relation::GreaterOrEqual => Relation::LessOrEqual,
        same => same,
    }
}
