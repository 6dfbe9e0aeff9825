//! Policy files: the root keys, the types that are known, what is trusted.

use crate::document::{self, Document, DocumentError};
use crate::key::PublicKey;
use crate::keynote::{self, Algorithms, Store};
use crate::module_type::{ModuleType, Verification};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toml::Spanned;

/// The application domain of loading, in credentials.
pub const LOAD: &str = "mullion-load";
/// The application domain of signing compilation records.
pub const COMPILE: &str = "mullion-compile";

/// What a host's operator decided.
#[derive(Debug)]
pub struct Policy {
    keys: BTreeMap<String, PublicKey>,
    types: BTreeMap<String, ModuleType>,
    trusted_types: Vec<String>,
    /// KeyNote policies with their origin.
    assertions: Vec<(String, String)>,
    credentials: Vec<PathBuf>,
    algorithms: Algorithms,
    utc_offset: i32,
    log: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct PolicyFile {
    version: Spanned<u32>,
    #[serde(default)]
    keys: BTreeMap<String, Spanned<String>>,
    #[serde(default)]
    allow: Allow,
    #[serde(default)]
    types: Vec<Spanned<String>>,
    #[serde(default)]
    trusted_types: Vec<Spanned<String>>,
    #[serde(default)]
    assertions: Vec<Spanned<String>>,
    #[serde(default)]
    credentials: Vec<String>,
    #[serde(default)]
    algorithms: Vec<Spanned<String>>,
    utc_offset: Option<Spanned<String>>,
    log: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Allow {
    #[serde(default)]
    load: Vec<Spanned<String>>,
    #[serde(default)]
    compile: Vec<Spanned<String>>,
}

impl Policy {
    /// Reads a policy's file and the files that it names, which are relative to
    /// its directory.
    ///
    /// # Errors
    /// What is wrong in them, and where.
    pub fn read(path: &Path) -> Result<Self, DocumentError> {
        let text = document::read(path)?;
        let document = Document { path, text: &text };
        let file: PolicyFile = document::parse(&document)?;
        if *file.version.get_ref() != 1 {
            return Err(document.error(Some(file.version.span()), "the version is not 1", ""));
        }
        let directory = path.parent().unwrap_or(Path::new("."));
        let keys = keys(&document, file.keys)?;
        let types = types(&document, directory, &file.types)?;
        let mut assertions = Vec::new();
        for (domain, list) in [(LOAD, &file.allow.load), (COMPILE, &file.allow.compile)] {
            if let Some(text) = allow(&document, domain, list, &keys)? {
                assertions.push((format!("{}, [allow]", path.display()), text));
            }
        }
        for name in &file.assertions {
            let path = directory.join(name.get_ref());
            let text = read_named(&document, name, &path)?;
            if let Err(error) = keynote::parse_all(text.as_bytes()) {
                return Err(DocumentError::At {
                    path,
                    line: error.line,
                    column: error.column,
                    problem: error.problem,
                    hint: error.hint.to_owned(),
                });
            }
            assertions.push((path.display().to_string(), text));
        }
        Ok(Policy {
            trusted_types: trusted(&document, &file.trusted_types, &types)?,
            algorithms: algorithms(&document, &file.algorithms)?,
            utc_offset: match &file.utc_offset {
                Some(text) => utc_offset(&document, text)?,
                None => 0,
            },
            credentials: file
                .credentials
                .iter()
                .map(|name| directory.join(name))
                .collect(),
            log: file.log.map(|name| directory.join(name)),
            keys,
            types,
            assertions,
        })
    }

    /// A store with this policy's assertions, for credentials to be added to.
    #[must_use]
    pub fn store(&self) -> Store {
        let mut store = Store::new(self.algorithms);
        for (origin, text) in &self.assertions {
            for assertion in keynote::parse_all(text.as_bytes()).unwrap_or_default() {
                store.add_policy(assertion, origin);
            }
        }
        store
    }

    /// The type of that identifier.
    #[must_use]
    pub fn module_type(&self, id: &str) -> Option<&ModuleType> {
        self.types.get(id)
    }

    /// Every type that is known, in order.
    pub fn module_types(&self) -> impl Iterator<Item = &ModuleType> {
        self.types.values()
    }

    /// Whether images of this type may stay unverified, if the type says so.
    #[must_use]
    pub fn trusts_type(&self, id: &str) -> bool {
        self.trusted_types.iter().any(|trusted| trusted == id)
    }

    /// The keys that have a name here.
    #[must_use]
    pub fn keys(&self) -> &BTreeMap<String, PublicKey> {
        &self.keys
    }

    /// Directories and files of credentials.
    #[must_use]
    pub fn credentials(&self) -> &[PathBuf] {
        &self.credentials
    }

    /// Where decisions are recorded.
    #[must_use]
    pub fn log(&self) -> Option<&Path> {
        self.log.as_deref()
    }

    /// Minutes that the policy's clock is ahead of universal time.
    #[must_use]
    pub fn utc_offset(&self) -> i32 {
        self.utc_offset
    }
}

fn keys(
    document: &Document<'_>,
    table: BTreeMap<String, Spanned<String>>,
) -> Result<BTreeMap<String, PublicKey>, DocumentError> {
    let mut keys = BTreeMap::new();
    for (name, text) in table {
        let key = text.get_ref().parse();
        let hint = "`mullion key show NAME` prints it";
        let key = key.map_err(|error: crate::key::KeyError| {
            document.error(Some(text.span()), error.to_string(), hint)
        })?;
        keys.insert(name, key);
    }
    Ok(keys)
}

fn types(
    document: &Document<'_>,
    directory: &Path,
    names: &[Spanned<String>],
) -> Result<BTreeMap<String, ModuleType>, DocumentError> {
    let mut types: BTreeMap<String, ModuleType> = BTreeMap::new();
    for name in names {
        let path = directory.join(name.get_ref());
        let text = read_named(document, name, &path)?;
        let module_type = ModuleType::parse(&text, &path)?;
        if types.contains_key(&module_type.id) {
            let problem = format!("the type `{}` is defined twice", module_type.id);
            return Err(document.error(Some(name.span()), problem, "identifiers are unique"));
        }
        types.insert(module_type.id.clone(), module_type);
    }
    Ok(types)
}

fn read_named(
    document: &Document<'_>,
    name: &Spanned<String>,
    path: &Path,
) -> Result<String, DocumentError> {
    crate::text::read(path).map_err(|error| {
        let problem = format!("{}: {error}", path.display());
        let hint = "names of files are relative to the policy's directory";
        document.error(Some(name.span()), problem, hint)
    })
}

/// The assertion that gives keys leave for everything in one domain.
fn allow(
    document: &Document<'_>,
    domain: &str,
    names: &[Spanned<String>],
    keys: &BTreeMap<String, PublicKey>,
) -> Result<Option<String>, DocumentError> {
    let mut licensees = Vec::new();
    for name in names {
        let Some(key) = keys.get(name.get_ref()) else {
            let problem = format!("there is no key `{}`", name.get_ref());
            let hint = "name it in [keys]";
            return Err(document.error(Some(name.span()), problem, hint));
        };
        licensees.push(format!("\"{key}\""));
    }
    Ok((!licensees.is_empty()).then(|| {
        format!(
            "Authorizer: \"POLICY\"\nLicensees: {}\nConditions: app_domain == \"{domain}\";\n",
            licensees.join("\n    || ")
        )
    }))
}

fn trusted(
    document: &Document<'_>,
    names: &[Spanned<String>],
    types: &BTreeMap<String, ModuleType>,
) -> Result<Vec<String>, DocumentError> {
    for name in names {
        let module_type = types.get(name.get_ref());
        if module_type.is_none_or(|found| found.verification != Verification::Trusted) {
            let problem = format!(
                "`{}` is no type whose verification is `trusted`",
                name.get_ref()
            );
            let hint = "a type's own file must ask for it with verification = \"trusted\"";
            return Err(document.error(Some(name.span()), problem, hint));
        }
    }
    Ok(names.iter().map(|name| name.get_ref().clone()).collect())
}

fn algorithms(
    document: &Document<'_>,
    names: &[Spanned<String>],
) -> Result<Algorithms, DocumentError> {
    let mut algorithms = Algorithms::default();
    for name in names {
        match name.get_ref().as_str() {
            "ed25519" => {}
            "rsa-sha1" => algorithms.rsa_sha1 = true,
            "rsa-sha2" => algorithms.rsa_sha2 = true,
            other => {
                let problem = format!("the algorithm `{other}` is not known");
                let hint = "ed25519 (always on), rsa-sha2, rsa-sha1";
                return Err(document.error(Some(name.span()), problem, hint));
            }
        }
    }
    Ok(algorithms)
}

fn utc_offset(document: &Document<'_>, text: &Spanned<String>) -> Result<i32, DocumentError> {
    let read = || {
        let (sign, rest) = match text.get_ref().split_at_checked(1)? {
            ("+", rest) => (1, rest),
            ("-", rest) => (-1, rest),
            _ => return None,
        };
        let (hours, minutes) = rest.split_once(':')?;
        let plain = |part: &str| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
        let (hours, minutes): (i32, i32) = match (plain(hours), plain(minutes)) {
            (true, true) => (hours.parse().ok()?, minutes.parse().ok()?),
            _ => return None,
        };
        (hours <= 14 && minutes < 60).then_some(sign * (hours * 60 + minutes))
    };
    read().ok_or_else(|| {
        let problem = format!("`{}` is no offset from universal time", text.get_ref());
        document.error(Some(text.span()), problem, "write \"+01:00\" or \"-05:30\"")
    })
}
