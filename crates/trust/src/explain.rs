//! Answers in words: who, what, by whose leave, why not.

use crate::keynote::{Answer, AssertionId, Outcome, Principal, Store};
use std::collections::BTreeMap;

/// Names of keys, for people.
#[derive(Clone, Debug, Default)]
pub struct Names(BTreeMap<Principal, String>);

impl Names {
    /// Gives a principal a name; the first one stays.
    pub fn add(&mut self, principal: Principal, name: &str) {
        self.0.entry(principal).or_insert_with(|| name.to_owned());
    }

    /// The name of a principal, or what it is.
    #[must_use]
    pub fn of(&self, principal: &Principal) -> String {
        if let Some(name) = self.0.get(principal) {
            return name.clone();
        }
        if *principal == Principal::policy() {
            return "the policy".to_owned();
        }
        let text = principal.to_string();
        match text.char_indices().nth(38) {
            Some((end, _)) => format!("{}...", &text[..end]),
            None => text,
        }
    }

    fn list(&self, principals: &[Principal]) -> String {
        let names: Vec<_> = principals
            .iter()
            .map(|principal| self.of(principal))
            .collect();
        match names.as_slice() {
            [] => "everyone".to_owned(),
            [one] => one.clone(),
            [most @ .., last] => format!("{} and {last}", most.join(", ")),
        }
    }
}

/// The chain of an answer, one line for each assertion, from the policy down.
#[must_use]
pub fn chain(store: &Store, answer: &Answer, names: &Names) -> Vec<String> {
    let line = |step: &crate::keynote::Step| {
        format!(
            "{} gives leave to {}{}",
            names.of(&step.authorizer),
            names.list(&step.licensees),
            place(store, step.assertion)
        )
    };
    answer.chain.iter().map(line).collect()
}

/// Why an answer is no better: what was looked at and did not help.
#[must_use]
pub fn obstacles(
    store: &Store,
    answer: &Answer,
    requesters: &[Principal],
    names: &Names,
) -> Vec<String> {
    let mut lines = Vec::new();
    for (id, outcome) in &answer.considered {
        let assertion = store.assertion(*id);
        let who = assertion.authorizer().map_or(
            "an authorizer that depends on the request".into(),
            |authorizer| names.of(authorizer),
        );
        let problem = match outcome {
            Outcome::Supports(_) => {
                if answer.chain.iter().any(|step| step.assertion == *id) {
                    continue;
                }
                format!("holds, but no chain leads from the policy to {who}")
            }
            Outcome::Licensees => "needs others to ask as well".to_owned(),
            Outcome::Conditions(faults) if faults.is_empty() => {
                "has conditions that do not hold".to_owned()
            }
            Outcome::Conditions(faults) => {
                format!("has conditions that do not hold ({})", faults.join("; "))
            }
            Outcome::Signature(error) => format!("does not count: {error}"),
        };
        lines.push(format!("the leave of {who}{} {problem}", place(store, *id)));
    }
    let named = |principal: &&Principal| {
        store
            .ids()
            .any(|id| store.assertion(id).licensees().contains(principal))
    };
    for requester in requesters {
        if answer.considered.is_empty() || !named(&requester) {
            lines.push(format!(
                "no policy and no credential names {}",
                names.of(requester)
            ));
        }
    }
    let roots: Vec<_> = store
        .ids()
        .filter(|id| store.is_policy(*id))
        .flat_map(|id| store.assertion(id).licensees())
        .collect();
    if !answer.granted && !roots.is_empty() {
        let mut roots: Vec<_> = roots.into_iter().map(|root| names.of(root)).collect();
        roots.sort();
        roots.dedup();
        lines.push(format!("the policy itself names {}", roots.join(", ")));
    }
    lines
}

fn place(store: &Store, id: AssertionId) -> String {
    match store.assertion(id).comment() {
        Some(comment) => format!(" ({}: {comment})", store.origin(id)),
        None => format!(" ({})", store.origin(id)),
    }
}
