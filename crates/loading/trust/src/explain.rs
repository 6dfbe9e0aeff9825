//! Answers in words: who, what, by whose leave, why not.

use crate::bounds;
use crate::keynote::{Answer, AssertionId, Exhausted, Outcome, Principal, Query, Store, Work};
use crate::policy::Policy;
use crate::text::shortened;
use crate::why::why;
use crate::{Limit, PublicKey};
use mullion_decide::words::{Ask, Extent, Grounds, Words};
use mullion_decide::{Decision, decide::joined};
use std::collections::BTreeSet;

pub use crate::names::Names;
pub use mullion_decide::words::Obstacles;

/// The words of [`decide`](crate::decide()) and [`may_compile`](crate::compile::may_compile).
#[derive(Clone, Debug, Default)]
pub struct InWords {
    names: Names,
}

impl InWords {
    /// With these names of keys, and the policy's.
    #[must_use]
    pub fn new(policy: &Policy, names: &Names) -> Self {
        let mut names = names.clone();
        for (name, key) in policy.keys() {
            names.add(key.principal(), name);
        }
        InWords { names }
    }
}

impl Words for InWords {
    /// The imports one by one, and then limit by limit the greatest amount that is granted, of those that the
    /// assertions which hold name.
    fn most(
        &self,
        store: &Store,
        least: &Answer,
        all: &Extent,
        ask: &mut Ask<'_>,
        work: &mut Work,
    ) -> Result<Extent, Exhausted> {
        let mut granted = Extent::default();
        for name in &all.imports {
            granted.imports.push(name.clone());
            if !ask(&granted, work)?.granted {
                granted.imports.pop();
            }
        }
        for (index, limit) in Limit::ALL.into_iter().enumerate() {
            let attribute = limit.attribute();
            for amount in bounds::worth_asking(store, least, attribute, all.amounts[index], work)? {
                granted.amounts[index] = amount;
                if ask(&granted, work)?.granted {
                    break;
                }
                granted.amounts[index] = 0;
            }
        }
        Ok(granted)
    }

    fn keys(&self, keys: &[PublicKey]) -> String {
        self.names.keys(keys)
    }

    fn chain(&self, store: &Store, answer: &Answer) -> Vec<String> {
        chain(store, answer, &self.names)
    }

    fn obstacles(
        &self,
        store: &Store,
        query: &Query,
        answer: &Answer,
        requesters: &[Principal],
        work: &mut Work,
    ) -> Obstacles {
        obstacles(store, query, answer, requesters, &self.names, work)
    }

    fn explanation(&self, decision: &Decision, grounds: &Grounds<'_>) -> String {
        explanation(decision, grounds, &self.names)
    }
}

/// Lines of a decision, of which there are few, and none is long: whatever strangers bring, a
/// decision's text has a bound.
#[derive(Default)]
struct Lines {
    list: Vec<String>,
    more: usize,
}

/// Lines at most, and bytes of one.
const LINES: usize = 40;
const LINE: usize = 1000;
/// Bytes of a remark in a line.
const COMMENT: usize = 120;

impl Lines {
    /// The line is made only if there is room for it.
    fn push(&mut self, line: impl FnOnce() -> String) {
        if self.list.len() < LINES {
            let line = line();
            self.list.push(shortened(&line, LINE).into_owned());
        } else {
            self.more += 1;
        }
    }

    fn finish(mut self) -> Vec<String> {
        if self.more > 0 {
            self.list.push(format!("... and {} more", self.more));
        }
        self.list
    }
}

/// The chain of an answer, one line for each assertion, from the policy down.
#[must_use]
pub fn chain(store: &Store, answer: &Answer, names: &Names) -> Vec<String> {
    let mut lines = Lines::default();
    for step in &answer.chain {
        lines.push(|| {
            format!(
                "{} gives leave to {}{}",
                names.of(&step.authorizer),
                names.list(&step.licensees),
                place(store, step.assertion)
            )
        });
    }
    lines.finish()
}

/// A decision in words.
fn explanation(decision: &Decision, grounds: &Grounds<'_>, names: &Names) -> String {
    let Grounds {
        store,
        module_type,
        compiler,
    } = grounds;
    let mut lines = vec![format!(
        "{} may load this image as {}:",
        names.keys(&decision.requesters),
        module_type.id
    )];
    lines.extend(decision.chain.iter().map(|line| format!("  {line}")));
    lines.push(format!(
        "{} may say that it is of that type:",
        names.keys(&decision.compilers)
    ));
    let compiled = chain(store, compiler, names);
    lines.extend(compiled.iter().map(|line| format!("  {line}")));
    lines.push(format!("limits: {}", decision.limits));
    if decision.limits != module_type.limits {
        lines.push(format!("  the type itself has: {}", module_type.limits));
    }
    lines.push(format!(
        "imports:{}",
        match decision.imports.as_slice() {
            [] => " none".to_owned(),
            names => joined(names).trim_end().to_owned(),
        }
    ));
    lines.push(format!(
        "mechanism: {}, protection: {}",
        decision.mechanism, decision.protection
    ));
    lines.extend(store.left_out());
    lines.push(match decision.verify {
        true => "the code must pass the verifier".to_owned(),
        false => "THE CODE IS NOT VERIFIED: type and policy trust the compiler".to_owned(),
    });
    lines.join("\n")
}

/// Why the `answer` to `query` is no better.
#[must_use]
pub fn obstacles(
    store: &Store,
    query: &Query,
    answer: &Answer,
    requesters: &[Principal],
    names: &Names,
    work: &mut Work,
) -> Obstacles {
    let (mut all, mut told) = (Lines::default(), Lines::default());
    let used: BTreeSet<_> = answer.chain.iter().map(|step| step.assertion).collect();
    for (id, outcome) in &answer.considered {
        if used.contains(id) && matches!(outcome, Outcome::Supports(_)) {
            continue;
        }
        let assertion = store.assertion(*id);
        let whose = || {
            assertion.authorizer().map_or(
                "an authorizer that depends on the request".into(),
                |authorizer| names.of(authorizer),
            )
        };
        let theirs = is_theirs(store, *id, requesters);
        let mut why = Vec::new();
        if all.list.len() < LINES || theirs && told.list.len() < LINES {
            why = problem(store, *id, outcome, query, work);
        }
        let mut told_line = false;
        for problem in why {
            let line = || format!("the leave of {}{} {problem}", whose(), place(store, *id));
            all.push(line);
            if theirs {
                told.push(line);
                told_line = true;
            }
        }
        if !theirs && !told_line {
            told.push(|| format!("the leave of {} does not help", whose()));
        }
    }
    for requester in requesters {
        if answer.considered.is_empty() || !store.names(requester) {
            let line = || format!("no policy and no credential names {}", names.of(requester));
            all.push(line);
            told.push(line);
        }
    }
    for line in store.left_out() {
        all.push(|| line.clone());
        told.push(|| line);
    }
    if let Some(line) = roots(store, names).filter(|_| !answer.granted) {
        all.push(|| line);
    }
    Obstacles {
        all: all.finish(),
        told: told.finish(),
    }
}

/// Whether the requesters know an assertion's text: they brought it, or it is addressed to them.
fn is_theirs(store: &Store, id: AssertionId, requesters: &[Principal]) -> bool {
    if store.is_policy(id) {
        return false;
    }
    let licensees = || store.assertion(id).licensees();
    store.is_brought(id)
        || licensees()
            .iter()
            .any(|licensee| requesters.contains(licensee))
}

/// What is wrong with an assertion, in a few lines.
fn problem(
    store: &Store,
    id: AssertionId,
    outcome: &Outcome,
    query: &Query,
    work: &mut Work,
) -> Vec<String> {
    match outcome {
        Outcome::Supports(_) => vec!["holds, but no chain leads from the policy to it".to_owned()],
        Outcome::Licensees => vec!["needs others to ask as well".to_owned()],
        Outcome::Conditions(faults) => {
            let why = why(store, id, query, work);
            let why = if why.is_empty() { faults } else { &why };
            match why.as_slice() {
                [] => vec!["has conditions that do not hold".to_owned()],
                _ => why
                    .iter()
                    .map(|why| format!("has conditions that do not hold: {why}"))
                    .collect(),
            }
        }
        Outcome::Signature(error) => vec![format!("does not count: {error}")],
    }
}

/// Whom the policy names itself.
fn roots(store: &Store, names: &Names) -> Option<String> {
    let mut roots = Vec::new();
    for id in store.policies() {
        let licensees = store.assertion(id).licensees();
        roots.extend(licensees.into_iter().map(|root| names.of(root)));
    }
    roots.sort();
    roots.dedup();
    (!roots.is_empty()).then(|| format!("the policy itself names {}", roots.join(", ")))
}

fn place(store: &Store, id: AssertionId) -> String {
    match store.assertion(id).comment() {
        Some(comment) => {
            let comment = shortened(comment, COMMENT);
            format!(" ({}: {comment})", store.origin(id))
        }
        None => format!(" ({})", store.origin(id)),
    }
}
