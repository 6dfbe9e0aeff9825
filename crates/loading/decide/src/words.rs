//! Who puts a decision into words.
//!
//! The decision is made first, and [`Words`] are for people alone: an implementation sees all that it rests on, and
//! gives texts. It has no reference through which it could change anything but what is left of the request's budget.

use crate::decide::Decision;
use crate::keynote::{Answer, Exhausted, Principal, Query, Store, Work};
use crate::module_type::ModuleType;
use crate::names::Names;

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
    /// Names of keys.
    pub names: &'a Names,
    /// The module type.
    pub module_type: &'a ModuleType,
    /// The answer to whether the record's signers may sign records of the type.
    pub compiler: &'a Answer,
}

/// Puts answers into words, and says what is worth asking.
pub trait Words {
    /// The amounts that the assertions which hold name for an attribute: worth asking for. Each is asked, and decided as
    /// any other.
    ///
    /// # Errors
    /// The budget does not suffice.
    fn amounts(
        &self,
        store: &Store,
        answer: &Answer,
        attribute: &str,
        work: &mut Work,
    ) -> Result<Vec<i32>, Exhausted>;

    /// The chain of an answer, one line for each assertion, from the policy down.
    fn chain(&self, store: &Store, answer: &Answer, names: &Names) -> Vec<String>;

    /// Why the `answer` to `query` is no better.
    fn obstacles(
        &self,
        store: &Store,
        query: &Query,
        answer: &Answer,
        requesters: &[Principal],
        names: &Names,
        work: &mut Work,
    ) -> Obstacles;

    /// A decision, whose text is still empty.
    fn explanation(&self, decision: &Decision, grounds: &Grounds<'_>) -> String;
}
