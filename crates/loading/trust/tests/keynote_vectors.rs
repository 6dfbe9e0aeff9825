//! `data/vectors.toml`: each vector is a rule of RFC 2704 and a query that
//! tells whether it holds.

use mullion_trust::keynote::{Algorithms, Query, Store, Work, parse_all};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Vectors {
    vector: Vec<Vector>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Vector {
    reason: String,
    conditions: Option<String>,
    policies: Option<Vec<String>>,
    #[serde(default)]
    attributes: BTreeMap<String, String>,
    requesters: Option<Vec<String>>,
    values: Option<Vec<String>>,
    expect: Option<String>,
    rejects: Option<String>,
}

impl Vector {
    fn answer(&self) -> Result<String, String> {
        let texts = match (&self.conditions, &self.policies) {
            (Some(conditions), None) => vec![format!(
                "Authorizer: \"POLICY\"\nLicensees: \"r\" || \"r,Other:1\"\nConditions: {conditions}\n"
            )],
            (None, Some(policies)) => policies.clone(),
            _ => return Err("needs `conditions` or `policies`".to_owned()),
        };
        let mut store = Store::new(Algorithms::default());
        for text in &texts {
            for assertion in parse_all(text.as_bytes()).map_err(|error| error.to_string())? {
                store.add_policy(assertion, "vector");
            }
        }
        let attributes = self.attributes.iter();
        let attributes = attributes.map(|(name, value)| (name.clone(), value.clone().into_bytes()));
        let values = self.values.clone();
        let values = values.unwrap_or_else(|| vec!["false".to_owned(), "true".to_owned()]);
        let values: Vec<_> = values.iter().map(String::as_str).collect();
        let requesters = self
            .requesters
            .clone()
            .unwrap_or_else(|| vec!["r".to_owned()]);
        let requesters: Vec<_> = requesters.iter().map(|id| id.as_bytes()).collect();
        let query = Query::new(&values, &requesters, attributes.collect());
        Ok(store
            .query(
                &query.map_err(|error| error.to_string())?,
                &mut Work::unbounded(),
            )
            .map_err(|error| error.to_string())?
            .value)
    }
}

#[test]
fn every_vector_has_its_answer() {
    let text = include_str!("data/vectors.toml");
    let vectors: Vectors = toml::from_str(text).expect("the vectors are TOML");
    let mut wrong = Vec::new();
    for vector in &vectors.vector {
        let answer = vector.answer();
        let right = match (&answer, &vector.expect, &vector.rejects) {
            (Ok(value), Some(expected), None) => value == expected,
            (Err(message), None, Some(part)) => message.contains(part),
            _ => false,
        };
        if !right {
            wrong.push(format!("{}: {answer:?}", vector.reason));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(
        vectors.vector.len() >= 120,
        "{} vectors",
        vectors.vector.len()
    );
}
