//! A module type's file as a person changes it, field by field.

use anyhow::{Context as _, bail};
use mullion_elastic::{BaseLanguage, Elastic};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// All that a type's file may say, in the order in which it is written. `ModuleType::parse` decides what is right;
/// a field that is not here is an error, so that none is lost.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Draft {
    version: u32,
    pub(super) id: String,
    #[serde(default)]
    description: String,
    pub(super) language: String,
    protection: String,
    mechanism: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    verification: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    imports: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    limits: BTreeMap<String, toml::Value>,
    #[serde(default)]
    elastic: Language,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Language {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    wall: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    memory: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    authors: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    forbid: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    loops: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    loop_depth: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    loop_nests: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stack: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    instructions: Option<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    entries: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    exports: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    locked: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    read_only: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    handles: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    wrap: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    known_stack: BTreeMap<String, u64>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    known_instructions: BTreeMap<String, u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    environment: Option<Environment>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Environment {
    file: String,
    sha256: String,
    #[serde(default)]
    public: Vec<String>,
}

impl Draft {
    /// A type that forbids nothing yet but, in C, memory that is not named, and in Rust what holes in rustc need.
    pub(super) fn blank(base: BaseLanguage) -> Self {
        let (id, language, memory, entries) = match base {
            BaseLanguage::C => ("new-type", "c", Some("checked"), vec!["main".to_owned()]),
            // An environment declares entry points.
            BaseLanguage::Rust => ("new-type-rust", "rust", None, Vec::new()),
        };
        let limits = [("heap", "1M"), ("stack", "64K"), ("time", "1s")];
        Draft {
            version: 1,
            id: id.to_owned(),
            description: String::new(),
            language: language.to_owned(),
            protection: "read-write-call".to_owned(),
            mechanism: vec!["window".to_owned()],
            verification: None,
            imports: vec!["__mullion_system".to_owned()],
            limits: limits
                .map(|(name, amount)| (name.to_owned(), amount.into()))
                .into(),
            elastic: Language {
                memory: memory.map(str::to_owned),
                entries,
                ..Language::default()
            },
        }
    }

    /// Reads a type's file. The environment's name becomes an absolute one.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let (_, known) = Elastic::parse(&text, path)?;
        let mut draft: Draft = toml::from_str(&text).with_context(|| path.display().to_string())?;
        if let (Some(environment), Some(elastic)) = (&mut draft.elastic.environment, known)
            && let Some(found) = elastic.environment
        {
            let place = found.path.canonicalize();
            let place = place.with_context(|| found.path.display().to_string())?;
            match place.into_os_string().into_string() {
                Ok(place) => environment.file = place,
                Err(place) => bail!("{}: a name that is not UTF-8", place.display()),
            }
        }
        Ok(draft)
    }

    /// The file's text, as it is written to this directory: an environment that lies there is named relatively.
    pub(super) fn text(&self, directory: &Path) -> anyhow::Result<String> {
        let mut draft = self.clone();
        if let Some(environment) = &mut draft.elastic.environment {
            let near = Path::new(&environment.file).strip_prefix(directory);
            if let Some(near) = near.ok().and_then(Path::to_str) {
                environment.file = near.to_owned();
            }
        }
        Ok(toml::to_string(&draft)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nothing of the types in the tree is lost on the way through a draft.
    #[test]
    fn a_type_is_the_same_behind_a_draft() {
        let types = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/elastic/types");
        let mut count = 0;
        for entry in std::fs::read_dir(types).expect("types").flatten() {
            let path = entry.path();
            let text = std::fs::read_to_string(&path).expect("text");
            let (mut before, told) = Elastic::parse(&text, &path).expect("a type");
            let directory = path.parent().expect("one").canonicalize().expect("there");
            let text = Draft::read(&path).expect("read").text(&directory);
            let text = text.expect("text");
            let (mut after, mut told_after) = Elastic::parse(&text, &path).expect("the same");
            let named = |elastic: &Option<Elastic>| {
                let elastic = elastic.as_ref().expect("elastic");
                let place = elastic.environment.as_ref().map(|found| found.path.clone());
                place.map(|place| place.canonicalize().expect("there"))
            };
            assert_eq!(named(&told), named(&told_after));
            if let (Some(before), Some(after)) = (&told, &mut told_after)
                && let (Some(before), Some(after)) = (&before.environment, &mut after.environment)
            {
                after.path.clone_from(&before.path);
            }
            after.digest = before.digest;
            (before.elastic, after.elastic) = (None, None);
            assert_eq!(format!("{before:?}"), format!("{after:?}"), "{path:?}");
            assert_eq!(told, told_after, "{path:?}");
            count += 1;
        }
        assert!(count >= 6, "{count} types");
    }

    #[test]
    fn the_blank_type_is_one() {
        for base in [BaseLanguage::C, BaseLanguage::Rust] {
            let text = Draft::blank(base).text(Path::new("/")).expect("text");
            Elastic::parse(&text, Path::new("blank.toml")).expect("a type");
        }
    }

    #[test]
    fn a_field_that_is_not_known_is_an_error() {
        let text = Draft::blank(BaseLanguage::C)
            .text(Path::new("/"))
            .expect("text");
        assert!(toml::from_str::<Draft>(&format!("odd = 1\n{text}")).is_err());
    }
}
