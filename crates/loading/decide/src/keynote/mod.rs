//! KeyNote, version 2 (RFC 2704; keys and signatures RFC 2792).
//!
//! ```text
//!   text --lexer--> tokens --parser--> Assertion (syntax tree)
//!                                          |
//!       policy, trusted, unsigned ---------+--- credentials, signed
//!                                          v
//!   requesters, attributes, values --> Store::query --> Answer: value, chain
//! ```
//!
//! A *policy* assertion is trusted because of where it comes from; a *credential* counts only when its signature is
//! that of its authorizer. The answer is the least fixpoint over the delegation graph, computed upwards from the
//! requesters through an index by licensee. So what is not related to the request costs nothing.
//!
//! Nothing here recurses deeper than [`bounds::NESTING`], every size is bounded before it is used. Whatever a text can
//! make long is paid for out of the request's [`Work`] before it is done: the text may come from an enemy.

pub mod bounds;
#[allow(
    missing_docs,
    missing_debug_implementations,
    reason = "public for `parts` alone, which is hidden"
)]
mod eval;
mod expression;
mod lexer;
mod parser;
#[allow(
    missing_docs,
    missing_debug_implementations,
    reason = "public for `parts` alone, which is hidden"
)]
mod posix;
mod principal;
mod query;
mod signature;
mod store;
#[allow(
    missing_docs,
    missing_debug_implementations,
    reason = "public for `parts` alone, which is hidden"
)]
mod syntax;
mod work;

pub use parser::{ParseError, Parsed, parse, parse_all, parse_each};
pub use posix::{Offsets, PatternError, posix_match};
pub use principal::{Algorithms, Principal};
pub use query::{Answer, Attributes, Outcome, Query, QueryError, Step};
pub use signature::{ED25519_ALGORITHM, SignatureError, signed_text};
pub use store::{AssertionId, Store};
pub use syntax::Assertion;
pub use work::{Cost, Exhausted, Work};

/// The parts of conditions, for who explains them.
#[doc(hidden)]
pub mod parts {
    pub use super::eval::{ConditionError, Evaluator};
    pub use super::posix::Pattern;
    pub use super::syntax::{Clause, ClauseValue, Float, Integer, Operator, Relation, Str, Test};
}

impl Store {
    /// Has `look` see the conditions of an assertion, and what parts of them are worth in a query, with a bounded part of
    /// the budget.
    #[doc(hidden)]
    pub fn look_at(
        &self,
        id: AssertionId,
        query: &Query,
        work: &mut Work,
        look: impl FnOnce(parts::Evaluator<'_>, &[parts::Clause]),
    ) {
        let assertion = self.assertion(id);
        let environment = query.environment();
        work.within(bounds::WORK, |work| {
            let evaluator = parts::Evaluator::new(&environment, &assertion.constants, work);
            look(
                evaluator,
                assertion.conditions.as_deref().unwrap_or_default(),
            );
        });
    }
}

/// Unescapes and reads one `name = "value"` list, the form of the reference
/// tool's environment file.
///
/// # Errors
/// The first place that is not of that form.
pub fn parse_environment(text: &str) -> Result<Vec<(String, Vec<u8>)>, ParseError> {
    parser::environment(text.as_bytes())
}

/// Checks that a text is one test of the condition language, complete in itself.
///
/// # Errors
/// The first place that is not of the language.
pub fn check_test(text: &str) -> Result<(), ParseError> {
    parser::one_test(text.as_bytes())
}

/// Reads one quoted string, the form of the reference tool's key file.
///
/// # Errors
/// What is not exactly one string literal, comments and blanks aside.
pub fn parse_key_file(text: &str) -> Result<Vec<u8>, ParseError> {
    parser::one_string(text.as_bytes())
}
