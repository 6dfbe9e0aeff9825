//! The part that puts a decision into words, and says which questions are worth asking.
//!
//! The decision is made first, and [`Words`] are for people alone: an implementation sees all that it rests on, and
//! gives texts. It has no reference through which it could change anything but what is left of the request's budget.
//! Its questions are decided as any others.

use crate::decide::Decision;
use crate::key::PublicKey;
use crate::keynote::{Answer, Exhausted, Principal, Query, Store, Work};
use crate::module_type::ModuleType;

/// Why an answer is no better: what was looked at and did not help.
#[derive(Clone, Debug, Default)]
pub struct Obstacles {
    /// For those who may read the policy.
    pub all: Vec<String>,
    /// For the requesters. Of an assertion that they brought, or that names them, they learn which test fails, and with
    /// which values. They have its text, and the values are their own request's and the time. Of others they learn that
    /// they did not help.
    pub told: Vec<String>,
}

/// What a decision rests on.
#[derive(Clone, Copy)]
#[allow(missing_debug_implementations)]
pub struct Grounds<'a> {
    /// The assertions.
    pub store: &'a Store,
    /// The module type.
    pub module_type: &'a ModuleType,
    /// The answer to whether the record's signers may sign records of the type.
    pub compiler: &'a Answer,
}

/// What may be asked for: the amount of each limit, as in an attribute, and the imports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// In the order of [`Limit::ALL`](crate::limits::Limit::ALL).
    pub amounts: [i32; 4],
    /// The names.
    pub imports: Vec<String>,
}

/// Answers whether so much is granted.
pub type Ask<'a> = dyn FnMut(&Extent, &mut Work) -> Result<Answer, Exhausted> + 'a;

/// Puts answers into words, and says what is worth asking.
pub trait Words {
    /// The most of `all` that is granted, found by asking. `least` is the answer to whether nothing is granted.
    ///
    /// # Errors
    /// The budget does not suffice.
    fn most(
        &self,
        store: &Store,
        least: &Answer,
        all: &Extent,
        ask: &mut Ask<'_>,
        work: &mut Work,
    ) -> Result<Extent, Exhausted>;

    /// Keys.
    fn keys(&self, keys: &[PublicKey]) -> String;

    /// The chain of an answer, one line for each assertion, from the policy down.
    fn chain(&self, store: &Store, answer: &Answer) -> Vec<String>;

    /// Why the `answer` to `query` is no better.
    fn obstacles(
        &self,
        store: &Store,
        query: &Query,
        answer: &Answer,
        requesters: &[Principal],
        work: &mut Work,
    ) -> Obstacles;

    /// A decision, whose text is still empty.
    fn explanation(&self, decision: &Decision, grounds: &Grounds<'_>) -> String;
}
