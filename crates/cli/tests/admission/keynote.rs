//! `mullion keynote verify` on every vector of the library's tests, and beside the reference
//! implementation's tool where there is one: name it in MULLION_KEYNOTE_REFERENCE. No registry that
//! this was written with has it (Debian, PyPI, crates.io, npm: only presentations of that name).

use crate::text;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

#[derive(Deserialize)]
struct Vectors {
    vector: Vec<Vector>,
}

#[derive(Deserialize)]
struct Vector {
    reason: String,
    conditions: Option<String>,
    policies: Option<Vec<String>>,
    #[serde(default)]
    attributes: BTreeMap<String, String>,
    requesters: Option<Vec<String>>,
    values: Option<Vec<String>>,
    expect: Option<String>,
}

/// A string literal of KeyNote.
fn quoted(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", text.replace('\n', "\\n"))
}

impl Vector {
    /// The question as files in `place`, and the arguments that name them.
    fn arguments(&self, place: &Path) -> Vec<String> {
        let mut arguments = vec!["verify".to_owned()];
        let mut file = |option: &str, name: String, content: String| {
            let path = place.join(name);
            std::fs::write(&path, content).expect("a file");
            arguments.extend([option.to_owned(), path.display().to_string()]);
        };
        let attributes = self.attributes.iter();
        let attributes = attributes.map(|(name, value)| format!("{name} = {}\n", quoted(value)));
        file("-e", "attributes".into(), attributes.collect());
        let policies = self.policies.clone().unwrap_or_else(|| {
            let conditions = self.conditions.as_deref().unwrap_or_default();
            vec![format!(
                "Authorizer: \"POLICY\"\nLicensees: \"r\" || \"r,Other:1\"\nConditions: {conditions}\n"
            )]
        });
        for (number, policy) in policies.into_iter().enumerate() {
            file("-l", format!("policy-{number}"), policy);
        }
        let requesters = self
            .requesters
            .clone()
            .unwrap_or_else(|| vec!["r".to_owned()]);
        for (number, requester) in requesters.iter().enumerate() {
            file(
                "-k",
                format!("key-{number}"),
                format!("{}\n", quoted(requester)),
            );
        }
        let values = self
            .values
            .as_ref()
            .map_or("false,true".to_owned(), |all| all.join(","));
        arguments.extend(["-r".to_owned(), values]);
        arguments
    }
}

fn result(output: &Output) -> Option<String> {
    let said = text(&output.stdout);
    let line = said
        .lines()
        .find_map(|line| line.strip_prefix("Query result = "));
    line.map(str::to_owned).filter(|_| output.status.success())
}

#[test]
fn every_vector_by_the_command_and_by_the_reference_if_there_is_one() {
    let vectors = include_str!("../../../loading/trust/tests/data/vectors.toml");
    let vectors: Vectors = toml::from_str(vectors).expect("TOML");
    let reference = std::env::var_os("MULLION_KEYNOTE_REFERENCE");
    let place = tempfile::tempdir().expect("a directory");
    let (mut wrong, mut compared) = (Vec::new(), 0);
    for vector in &vectors.vector {
        let arguments = vector.arguments(place.path());
        let mut ours = Command::new(env!("CARGO_BIN_EXE_mullion"));
        let ours = ours
            .arg("keynote")
            .args(&arguments)
            .output()
            .expect("started");
        if result(&ours) != vector.expect {
            wrong.push(format!("{}: {ours:?}", vector.reason));
        }
        if let Some(reference) = &reference {
            let theirs = Command::new(reference)
                .args(&arguments)
                .output()
                .expect("started");
            compared += 1;
            if result(&theirs) != vector.expect {
                wrong.push(format!("{}: the reference says {theirs:?}", vector.reason));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    if reference.is_none() {
        println!(
            "not compared with the reference tool: MULLION_KEYNOTE_REFERENCE does not name it"
        );
        assert!(
            std::env::var_os("MULLION_REQUIRE_KEYNOTE_REFERENCE").is_none(),
            "the reference tool is required, and is not there"
        );
    } else {
        println!("{compared} queries compared with the reference tool");
    }
}
