//! POSIX extended regular expressions: parsed, run and taken apart by the rules of POSIX 1003.2.
//!
//! ```text
//!   pattern --parse--> Node --program--> states --search--> the longest of the leftmost matches
//!                        |                                          |
//!                        +----------------- groups <----------------+
//! ```
//!
//! Whether a text matches is found by a simulation of the states, without going back, so in time
//! linear in the text. What the groups hold is found afterwards, on the match alone
//! ([`groups`]). All of it is paid for as it goes on, by the request's one budget.
//!
//! An expression that POSIX leaves undefined is an error, and so makes the test false. These are `\d` and its kin, a
//! repetition of nothing or of a repetition, an empty alternative, back references.

mod groups;
mod parse;
mod program;

use super::bounds;
use super::syntax::Str;
use super::work::{Cost, Exhausted, Work};
pub use mullion_wire::keynote::PatternError;
use parse::Node;
use program::{Direction, Machine, Program};
use std::ops::Range;
use std::sync::OnceLock;

/// A set of bytes.
type Set = [u64; 4];

/// The right side of `~=`, compiled once when it does not depend on a query.
pub struct Pattern {
    pub text: Str,
    compiled: OnceLock<Option<Compiled>>,
}

/// A pattern ready to run.
pub(super) struct Compiled {
    root: Node,
    sets: Vec<Set>,
    program: Program,
    groups: usize,
}

/// Where the groups of a match lie in the text; `None`: one took no part.
pub type Offsets = Vec<Option<Range<usize>>>;

/// What a match holds.
pub(super) struct Match {
    /// How many groups the pattern has.
    pub(super) count: usize,
    /// At most [`bounds::GROUPS`].
    pub(super) groups: Offsets,
}

impl Pattern {
    pub(super) fn new(text: Str) -> Self {
        Pattern {
            text,
            compiled: OnceLock::new(),
        }
    }

    /// The compiled form of a pattern that is a literal: `None` if it is computed, `Some(None)`
    /// if it is wrong.
    pub(super) fn fixed(&self, work: &mut Work) -> Result<Option<Option<&Compiled>>, Exhausted> {
        let Str::Literal(text) = &self.text else {
            return Ok(None);
        };
        if self.compiled.get().is_none() {
            let compiled = compile(text, work)?.ok();
            let _another_thread_was_first = self.compiled.set(compiled);
        }
        Ok(Some(self.compiled.get().and_then(Option::as_ref)))
    }
}

/// Makes a pattern ready to run. Pays for its bytes, then for the states that they stand for.
pub(super) fn compile(
    pattern: &[u8],
    work: &mut Work,
) -> Result<Result<Compiled, PatternError>, Exhausted> {
    work.pay(Cost::Parsed, pattern.len())?;
    let parsed = match parse::parse(pattern) {
        Ok(parsed) => parsed,
        Err(error) => return Ok(Err(error)),
    };
    if parsed.root.states() > bounds::STATES {
        return Ok(Err(PatternError {
            at: 0,
            problem: "it is too large when its repetitions are written out",
        }));
    }
    Ok(Ok(Compiled {
        program: Program::new(&parsed.root, Direction::Forward, work)?,
        root: parsed.root,
        sets: parsed.sets,
        groups: parsed.groups,
    }))
}

impl Compiled {
    /// The longest of the leftmost matches in `text`.
    pub(super) fn matches(&self, text: &[u8], work: &mut Work) -> Result<Option<Match>, Exhausted> {
        let mut machine = Machine::new(&self.program, &self.sets, text);
        if self.groups == 0 {
            let found = machine.search(work, true)?;
            return Ok(found.map(|_| Match {
                count: 0,
                groups: Vec::new(),
            }));
        }
        let Some(whole) = machine.search(work, false)? else {
            return Ok(None);
        };
        let mut found = groups::Groups::new(&self.sets, text, self.groups.min(bounds::GROUPS));
        found.fill(&self.root, whole, work)?;
        Ok(Some(Match {
            count: self.groups,
            groups: found.found,
        }))
    }
}

/// Whether `text` holds a match of `pattern`, and the offsets of its groups.
///
/// # Errors
/// What POSIX does not define, or what is too large; or the budget does not suffice.
pub fn posix_match(
    pattern: &[u8],
    text: &[u8],
    work: &mut Work,
) -> Result<Result<Option<Offsets>, PatternError>, Exhausted> {
    match compile(pattern, work)? {
        Ok(compiled) => Ok(Ok(compiled.matches(text, work)?.map(|found| found.groups))),
        Err(error) => Ok(Err(error)),
    }
}
