//! The list of outcomes that are known and explained.

use crate::build::Outcome;
use anyhow::Context;
use serde::Deserialize;
use std::collections::BTreeSet;

/// `expectations.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expectations {
    #[serde(default)]
    torture: Vec<Expectation>,
}

/// One known outcome that is not a pass.
#[derive(Deserialize, Clone)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expectation {
    /// The tests' names, without `.c`.
    pub(crate) tests: Vec<String>,
    /// Levels at which it occurs; empty for all.
    #[serde(default)]
    pub(crate) levels: Vec<String>,
    /// Protections in which it occurs; empty for all.
    #[serde(default)]
    pub(crate) protections: Vec<String>,
    /// What occurs: a kind of [`Outcome`].
    pub(crate) outcome: String,
    /// Why.
    pub(crate) reason: String,
}

impl Expectations {
    /// The list of this tree.
    pub(crate) fn load() -> anyhow::Result<Expectations> {
        toml::from_str(include_str!("../expectations.toml")).context("expectations.toml")
    }

    /// The expectation for a torture test, if it is on the list.
    pub(crate) fn torture(
        &self,
        test: &str,
        level: &str,
        protection: &str,
    ) -> Option<&Expectation> {
        self.torture.iter().find(|e| {
            let at =
                |list: &[String], what: &str| list.is_empty() || list.iter().any(|x| x == what);
            e.tests.iter().any(|name| name == test)
                && at(&e.levels, level)
                && at(&e.protections, protection)
        })
    }
}

/// One result, as the report wants it.
pub(crate) struct Line {
    pub(crate) test: String,
    pub(crate) level: String,
    pub(crate) protection: String,
    pub(crate) outcome: Outcome,
}

/// Prints what was not expected and a summary; true if there was nothing unexpected.
pub(crate) fn report(title: &str, lines: &[Line], expectations: &Expectations) -> bool {
    let mut unexpected = 0;
    let mut known = BTreeSet::new();
    let mut passed = 0;
    for line in lines {
        let entry = expectations.torture(&line.test, &line.level, &line.protection);
        match entry {
            None if line.outcome == Outcome::Pass => passed += 1,
            Some(e) if e.outcome == line.outcome.kind() => {
                known.insert(format!("{}: {}: {}", line.test, e.outcome, e.reason));
            }
            _ => {
                unexpected += 1;
                let wanted = entry.map_or("pass", |e| e.outcome.as_str());
                println!(
                    "UNEXPECTED {} -{} {} (wanted {wanted})\n    {}",
                    line.test,
                    line.level,
                    line.protection,
                    line.outcome.to_string().replace('\n', "\n    ")
                );
            }
        }
    }
    for line in &known {
        println!("known      {line}");
    }
    println!(
        "{title}: {passed} passed as natively, {} known and explained, {unexpected} unexpected",
        known.len()
    );
    println!(
        "{passed} passed, {unexpected} failed, {} skipped",
        lines.len() - passed - unexpected
    );
    unexpected == 0
}
