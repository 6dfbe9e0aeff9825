//! Names of keys, for people.

use mullion_decide::key::PublicKey;
use mullion_decide::keynote::Principal;
use std::collections::BTreeMap;

/// Principals that are named in one line.
const LIST: usize = 8;

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

    /// Several keys, all by name.
    #[must_use]
    pub fn keys(&self, keys: &[PublicKey]) -> String {
        let names: Vec<_> = keys.iter().map(|key| self.of(&key.principal())).collect();
        names.join(" and ")
    }

    /// Several of them, the first few by name.
    #[must_use]
    pub fn list(&self, principals: &[Principal]) -> String {
        let mut names: Vec<_> = principals
            .iter()
            .take(LIST)
            .map(|principal| self.of(principal))
            .collect();
        if principals.len() > LIST {
            names.push(format!("{} more", principals.len() - LIST));
        }
        match names.as_slice() {
            [] => "everyone".to_owned(),
            [one] => one.clone(),
            [most @ .., last] => format!("{} and {last}", most.join(", ")),
        }
    }
}
