//! Grants: credentials that a person can read.

use crate::key::{PublicKey, SecretKey};
use crate::keynote::{self, ED25519_ALGORITHM, ParseError, signed_text};
use crate::limits::{Limit, Limits};
use crate::module_type::{is_name, is_symbol};
use crate::policy::{COMPILE, LOAD};
use data_encoding::HEXLOWER;
use std::fmt::Write as _;

/// What a grant says.
#[derive(Clone, Debug, Default)]
pub struct Grant {
    /// The name of who grants, for people.
    pub from: String,
    /// The names and keys of those who get it.
    pub to: Vec<(String, PublicKey)>,
    /// How many of them must ask together; 1 lets each ask alone.
    pub together: usize,
    /// Leave to sign compilation records, not to load.
    pub compile: bool,
    /// Module types by identifier; none means every type.
    pub types: Vec<String>,
    /// The imports that may be used; `None` means all of the type's.
    pub imports: Option<Vec<String>>,
    /// Upper bounds.
    pub limits: Limits,
    /// A test of the condition language that must hold too.
    pub when: Option<String>,
    /// The last day on which it holds, as `YYYYMMDD`.
    pub until: Option<String>,
    /// For people.
    pub comment: Option<String>,
}

/// A grant that cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GrantError {
    /// Nobody to grant to, or fewer than must ask together.
    #[error("a grant needs somebody to grant to, and at least as many as must ask together")]
    Nobody,
    /// A type's identifier.
    #[error("`{0}` is no module type's identifier")]
    Type(String),
    /// An import's name.
    #[error("`{0}` is no name of an import")]
    Import(String),
    /// A limit that an attribute cannot hold.
    #[error("the limit `{0}` is larger than a credential can say; leave it out for no limit")]
    Limit(&'static str),
    /// Not a date.
    #[error("`{0}` is no date; write YYYYMMDD, as in 20271231")]
    Until(String),
    /// The condition.
    #[error("the condition: {0}")]
    When(ParseError),
}

impl Grant {
    /// Writes the grant and signs it.
    ///
    /// # Errors
    /// What cannot be said.
    pub fn sign(&self, key: &SecretKey) -> Result<String, GrantError> {
        let mut text = self.body(&key.public())?;
        let signature = key.sign(&signed_text(text.as_bytes(), ED25519_ALGORITHM));
        let digits = HEXLOWER.encode(&signature);
        let _ = writeln!(text, "Signature: \"{ED25519_ALGORITHM}{digits}\"");
        Ok(text)
    }

    fn body(&self, from: &PublicKey) -> Result<String, GrantError> {
        if self.to.is_empty() || self.together.max(1) > self.to.len() {
            return Err(GrantError::Nobody);
        }
        let mut names = vec![constant(&self.from)];
        let mut constants = format!("{} = \"{from}\"", names[0]);
        for (name, key) in &self.to {
            let name = unique(constant(name), &names);
            let _ = write!(constants, "\n    {name} = \"{key}\"");
            names.push(name);
        }
        let licensees = match self.together {
            0 | 1 => names[1..].join(" || "),
            count => format!("{count}-of({})", names[1..].join(", ")),
        };
        Ok(format!(
            "KeyNote-Version: 2\nComment: {}\nLocal-Constants: {constants}\nAuthorizer: {}\n\
             Licensees: {licensees}\nConditions: {};\n",
            self.comment(),
            names[0],
            self.conditions()?.join("\n    && "),
        ))
    }

    fn comment(&self) -> String {
        let comment = match &self.comment {
            Some(comment) => comment.clone(),
            None => {
                let who: Vec<_> = self.to.iter().map(|(name, _)| name.as_str()).collect();
                let verb = if self.compile {
                    "sign records of"
                } else {
                    "load"
                };
                let what = match self.types.as_slice() {
                    [] => "any type".to_owned(),
                    types => types.join(", "),
                };
                format!("{} lets {} {verb} {what}", self.from, who.join(", "))
            }
        };
        comment.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn conditions(&self) -> Result<Vec<String>, GrantError> {
        let domain = if self.compile { COMPILE } else { LOAD };
        let mut all = vec![format!("app_domain == \"{domain}\"")];
        if let Some(wrong) = self.types.iter().find(|id| !is_name(id)) {
            return Err(GrantError::Type(wrong.clone()));
        }
        let types: Vec<_> = self
            .types
            .iter()
            .map(|id| format!("type == \"{id}\""))
            .collect();
        match types.as_slice() {
            [] => {}
            [one] => all.push(one.clone()),
            many => all.push(format!("({})", many.join(" || "))),
        }
        for limit in Limit::ALL {
            if let Some(amount) = self.limits.get(limit) {
                let number = limit.to_attribute(Some(amount));
                if number == i32::MAX {
                    return Err(GrantError::Limit(limit.name()));
                }
                // Rounded down here: a credential never says more than was meant.
                let number = match limit {
                    Limit::Heap | Limit::Stack => amount / 1024,
                    Limit::Time | Limit::Calls => amount,
                };
                all.push(format!("@{} <= {number}", limit.attribute()));
            }
        }
        if let Some(imports) = &self.imports {
            if let Some(wrong) = imports.iter().find(|name| !is_symbol(name)) {
                return Err(GrantError::Import(wrong.clone()));
            }
            all.push(match imports.as_slice() {
                [] => "imports == \" \"".to_owned(),
                names => format!("imports ~= \"^ (({}) )*$\"", names.join("|")),
            });
        }
        if let Some(until) = &self.until {
            if until.len() != 8 || !until.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(GrantError::Until(until.clone()));
            }
            all.push(format!("date <= \"{until}\""));
        }
        if let Some(when) = &self.when {
            keynote::check_test(when).map_err(GrantError::When)?;
            let lines: Vec<_> = when
                .lines()
                .map(str::trim)
                .filter(|line| !line.is_empty())
                .collect();
            // The end of a line ends a comment in the condition, if there is one.
            all.push(format!("({}\n    )", lines.join("\n    ")));
        }
        Ok(all)
    }
}

/// A name that no attribute has.
fn constant(name: &str) -> String {
    let legal = |byte: char| {
        if byte.is_ascii_alphanumeric() {
            byte
        } else {
            '_'
        }
    };
    format!("key_{}", name.chars().map(legal).collect::<String>())
}

fn unique(name: String, taken: &[String]) -> String {
    let numbered = (2..).map(|number| format!("{name}_{number}"));
    let mut names = std::iter::once(name.clone()).chain(numbered);
    names.find(|name| !taken.contains(name)).unwrap_or(name)
}
