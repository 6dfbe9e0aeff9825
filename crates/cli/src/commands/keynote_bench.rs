//! `mullion keynote bench`: what a decision costs.

use crate::output::outln;
use mullion_trust::grant::Grant;
use mullion_trust::keynote::{Attributes, Query, Store, Work, parse};
use mullion_trust::{Limits, SecretKey};
use std::process::ExitCode;
use std::time::{Duration, Instant};

const ROUNDS: usize = 200;
const STORED: usize = 10_000;

pub(crate) fn run() -> anyhow::Result<ExitCode> {
    outln!("| what | median |")?;
    outln!("| --- | --- |")?;
    for length in [1, 5, 20] {
        let (texts, policy, key) = chain(length)?;
        let fresh = median(|| {
            let started = Instant::now();
            let store = fill(&texts, &policy);
            let granted = store
                .query(&query(&key), &mut Work::unbounded())
                .is_ok_and(|answer| answer.granted);
            (granted, started.elapsed())
        });
        outln!("| chain of {length}: parse, verify, decide | {fresh:?} |")?;
        let store = fill(&texts, &policy);
        let again = median(|| {
            let started = Instant::now();
            (
                store
                    .query(&query(&key), &mut Work::unbounded())
                    .is_ok_and(|answer| answer.granted),
                started.elapsed(),
            )
        });
        outln!("| chain of {length}: decide again | {again:?} |")?;
    }
    let (mut texts, policy, key) = chain(5)?;
    for _ in 0..STORED {
        let (from, to) = (SecretKey::generate()?, SecretKey::generate()?);
        texts.push(link(&from, &to)?);
    }
    let started = Instant::now();
    let store = fill(&texts, &policy);
    outln!(
        "| read {} credentials | {:?} |",
        store.len() - 1,
        started.elapsed()
    )?;
    let among = median(|| {
        let started = Instant::now();
        (
            store
                .query(&query(&key), &mut Work::unbounded())
                .is_ok_and(|answer| answer.granted),
            started.elapsed(),
        )
    });
    outln!("| chain of 5 among them: decide again | {among:?} |")?;
    Ok(ExitCode::SUCCESS)
}

/// Signed credentials from the policy's key to the last, which is returned.
fn chain(length: usize) -> anyhow::Result<(Vec<String>, String, SecretKey)> {
    let root = SecretKey::generate()?;
    let policy = format!(
        "Authorizer: \"POLICY\"\nLicensees: \"{}\"\nConditions: app_domain == \"mullion-load\";\n",
        root.public()
    );
    let (mut from, mut texts) = (root, Vec::new());
    for _ in 0..length {
        let to = SecretKey::generate()?;
        texts.push(link(&from, &to)?);
        from = to;
    }
    Ok((texts, policy, from))
}

fn link(from: &SecretKey, to: &SecretKey) -> anyhow::Result<String> {
    let grant = Grant {
        from: "from".to_owned(),
        to: vec![("to".to_owned(), to.public())],
        together: 1,
        types: vec!["packet-monitor".to_owned()],
        limits: Limits {
            heap: Some(1 << 20),
            ..Limits::NONE
        },
        when: Some("hour >= \"00\" && hour <= \"23\"".to_owned()),
        ..Grant::default()
    };
    Ok(grant.sign(from)?)
}

fn fill(texts: &[String], policy: &str) -> Store {
    let mut store = Store::default();
    store.add_policy(
        parse(policy.as_bytes()).expect("the policy is KeyNote"),
        "policy",
    );
    for text in texts {
        store.add_credential(parse(text.as_bytes()).expect("a grant is KeyNote"), "grant");
    }
    store
}

fn query(key: &SecretKey) -> Query {
    let pairs = [
        ("app_domain", "mullion-load"),
        ("type", "packet-monitor"),
        ("heap_kib", "512"),
        ("hour", "12"),
    ];
    let attributes: Attributes = pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec()))
        .collect();
    Query::new(
        &["refuse", "allow"],
        &[key.public().to_string().as_bytes()],
        attributes,
    )
    .expect("the query is legal")
}

/// The median of the times; every round must have been granted.
fn median(mut round: impl FnMut() -> (bool, Duration)) -> Duration {
    let mut times: Vec<_> = (0..ROUNDS).map(|_| round()).collect();
    assert!(times.iter().all(|(granted, _)| *granted), "the chain holds");
    times.sort();
    times[ROUNDS / 2].1
}
