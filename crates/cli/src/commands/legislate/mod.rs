//! `mullion legislate`: a page on which a module type's language is put together.
//!
//! The page holds the fields of one type and a sample. At each change it sends both, and gets what the same parser and the
//! same judge say that decide later (`mullion type check`, `mullion compile --check`). So the page decides nothing.

mod draft;
mod server;
mod words;

use super::compile;
use crate::output::{file, outln};
use anyhow::{Context as _, bail};
use draft::Draft;
use mullion_elastic::{BaseLanguage, Elastic, Rule};
use mullion_judge::SourceRefusal;
use mullion_trust::ModuleType;
use serde::Deserialize;
use serde_json::{Value, json};
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The most bytes of a sample; the judge takes no more either.
const SAMPLE: usize = 1 << 20;
/// The mother languages, as types' files name them.
const LANGUAGES: [(BaseLanguage, &str); 2] = [(BaseLanguage::C, "c"), (BaseLanguage::Rust, "rust")];

/// Put the elastic language of a module type together, on a page in the browser.
///
/// Serves the page on the loopback interface, under an address that nobody can guess, until it is interrupted. The
/// page needs nothing from elsewhere. It never says who may have a type: that is the policy's business.
#[derive(clap::Args)]
#[command(after_help = "Exit status:
  0 is never given, since only a signal ends it; 1 when a type cannot be read, or no port is free; 2 for bad usage.

Examples:\n  mullion legislate examples/elastic/types/*.toml\n  mullion legislate --output types --port 8080")]
pub(crate) struct Args {
    /// Module types to begin with, or to compare with.
    files: Vec<PathBuf>,
    /// Where types are saved, each as ID.toml.
    #[arg(long, short, value_name = "DIR", default_value = ".")]
    output: PathBuf,
    /// The port on 127.0.0.1; 0 takes a free one.
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,
}

/// Answers the page.
struct Office {
    types: Vec<Draft>,
    /// Where types are saved; absolute.
    output: PathBuf,
}

/// The page's question.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    draft: Draft,
    /// A program to be judged, or nothing.
    #[serde(default)]
    sample: String,
    /// Whether a file may be replaced.
    #[serde(default)]
    replace: bool,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let mut types = Vec::new();
        for path in &self.files {
            types.push(Draft::read(path)?);
        }
        types.extend([BaseLanguage::C, BaseLanguage::Rust].map(Draft::blank));
        let output = self.output.canonicalize();
        let output = output.with_context(|| self.output.display().to_string())?;
        let office = Office { types, output };
        let server = server::Server::new(self.port)?;
        outln!("{}", server.address())?;
        server.serve(&|path, body| office.answer(path, body))
    }
}

impl Office {
    /// The answer to one of the page's questions; `None`: there is no such question.
    fn answer(&self, path: &str, body: &[u8]) -> Option<anyhow::Result<Value>> {
        Some(match path {
            "start" => Ok(self.start()),
            "look" => question(body).and_then(|question| self.look(&question)),
            "save" => question(body).and_then(|question| self.save(&question)),
            _ => return None,
        })
    }

    /// The types to begin with, and the rules.
    fn start(&self) -> Value {
        let rules = Rule::ALL.iter().filter_map(|rule| {
            let (heading, reason, cost) = words::of(*rule)?;
            Some(json!({
                "name": rule.name(), "what": rule.what(), "instead": rule.instead(),
                "heading": heading, "reason": reason, "cost": cost,
                "languages": LANGUAGES.iter().filter(|(base, _)| rule.of().has(*base))
                    .map(|(_, name)| *name).collect::<Vec<_>>(),
            }))
        });
        let always = |base: BaseLanguage| -> Vec<&str> {
            let rules = Rule::ALL.iter().filter(|rule| !rule.is_optional());
            let rules = rules.filter(|rule| rule.of().has(base));
            rules.map(|rule| rule.what()).collect()
        };
        json!({
            "types": self.types,
            "rules": rules.collect::<Vec<_>>(),
            "always": { "c": always(BaseLanguage::C), "rust": always(BaseLanguage::Rust) },
            "output": self.output,
        })
    }

    /// The type's text and what it means, and what is refused of the sample.
    fn look(&self, question: &Question) -> anyhow::Result<Value> {
        let (text, path) = self.written(question)?;
        let (found, elastic) = match Elastic::parse(&text, &path) {
            Ok(found) => found,
            Err(error) => return Ok(json!({ "text": text, "problem": problem(&error, &path) })),
        };
        let rules: Vec<_> = elastic.iter().flat_map(Elastic::rules).collect();
        let mut answer = json!({
            "text": text,
            "digest": found.digest.to_string(),
            "worst": words::worst(&found, elastic.as_ref()),
            "rules": rules.iter().map(|rule| rule.name()).collect::<Vec<_>>(),
        });
        if !question.sample.is_empty() {
            match judged(&text, &path, (&found, elastic.as_ref()), &question.sample) {
                Ok(refusals) => {
                    let told = refusals.iter().map(|refusal| tell(refusal, &found.id));
                    answer["refusals"] = told.collect();
                }
                Err(error) => answer["unjudged"] = json!(format!("{error:#}")),
            }
        }
        Ok(answer)
    }

    /// Writes the type's file, which is one.
    fn save(&self, question: &Question) -> anyhow::Result<Value> {
        let (text, path) = self.written(question)?;
        let (found, _) = match Elastic::parse(&text, &path) {
            Ok(found) => found,
            Err(error) => bail!("{error}"),
        };
        if path.try_exists()? && !question.replace {
            return Ok(json!({ "exists": path }));
        }
        file(&path, &text)?;
        Ok(json!({ "path": path, "digest": found.digest.to_string() }))
    }

    /// The type's text, and the file that it will have. `ModuleType::parse` refuses identifiers that leave the directory.
    fn written(&self, question: &Question) -> anyhow::Result<(String, PathBuf)> {
        let text = question.draft.text(&self.output)?;
        let path = self.output.join(format!("{}.toml", question.draft.id));
        Ok((text, path))
    }
}

fn question(body: &[u8]) -> anyhow::Result<Question> {
    let question: Question = serde_json::from_slice(body)?;
    if question.sample.len() > SAMPLE {
        bail!("a sample of more than 1 MiB");
    }
    Ok(question)
}

/// What of the sample is refused: as `mullion compile --check` finds it.
fn judged(
    text: &str,
    path: &Path,
    (found, elastic): (&ModuleType, Option<&Elastic>),
    sample: &str,
) -> anyhow::Result<Vec<SourceRefusal>> {
    let scratch = tempfile::tempdir()?;
    // What a sample of Rust reads lies beside it, where nothing does.
    let name = match elastic.map(|elastic| elastic.base) {
        Some(BaseLanguage::Rust) => scratch.path().join("sample.rs"),
        _ => scratch.path().join("sample.c"),
    };
    std::fs::write(&name, sample)?;
    compile::check(text, path, (found, elastic), &[name])
}

fn tell(refusal: &SourceRefusal, id: &str) -> Value {
    json!({
        "rule": refusal.rule.name(),
        "what": refusal.rule.what(),
        "construct": refusal.construct,
        "line": refusal.place.as_ref().map(|place| place.line),
        "column": refusal.place.as_ref().map(|place| place.column),
        "length": refusal.place.as_ref().map(|place| place.length),
        "note": refusal.note,
        "instead": refusal.rule.instead(),
        "by": if refusal.rule.is_optional() { id } else { "every type" },
    })
}

/// What is wrong with the file that is not there yet: its line, and words.
fn problem(error: &impl Display, path: &Path) -> String {
    let said = error.to_string();
    let place = format!("{}:", path.display());
    said.strip_prefix(&place)
        .map_or(said.clone(), |rest| format!("line {rest}"))
}
