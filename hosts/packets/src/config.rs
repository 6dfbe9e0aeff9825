//! What runs: ports and modules, as a file says it.

use crate::filter::{Filter, FilterError};
use crate::view::{Locked, View};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;
use thiserror::Error;

/// Longest name of a module, in bytes.
const NAME: usize = 64;
/// How long a module may take for one frame, if nothing else is said.
const TIME: Duration = Duration::from_millis(1);
/// How much memory it may have.
const MEMORY: u64 = 16 << 20;

/// Why a file or a module's description is not taken.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// The file.
    #[error("{path}: {source}")]
    Read {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Not as it should be.
    #[error("{0}")]
    Form(String),
    /// A module's filter.
    #[error("the filter of `{module}`: {source}")]
    Filter {
        /// Whose.
        module: String,
        /// Why.
        source: FilterError,
    },
    /// A name.
    #[error("a module's name has 1 to {NAME} letters, digits, `-` or `_`, and `{0}` has not")]
    Name(String),
    /// Two of one name.
    #[error("there are two modules of the name `{0}`")]
    Twice(String),
    /// A time.
    #[error("`{0}` is no time: write 100us, 5ms or 1s")]
    Time(String),
}

/// What a module is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// It looks: frames go on as they came, whatever it answers.
    Monitor,
    /// It may change, drop and add frames.
    Transcoder,
}

/// A module as it is described.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Description {
    /// By which it is unloaded.
    pub name: String,
    /// Its image, built by `mullion cc --mullion-kind=extension`.
    pub image: PathBuf,
    /// What it is for.
    pub kind: Kind,
    /// Which frames it gets; all, if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// Only those that come in at this port, 0 or 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u32>,
    /// How many bytes of a packet it sees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sees: Option<usize>,
    /// Parts that it neither sees nor changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locked: Vec<Locked>,
    /// Time for one frame, as `100us`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// Bytes of memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
}

/// A file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The two interfaces, by name; not needed to go through a file.
    #[serde(default)]
    pub ports: Vec<String>,
    /// In the order in which frames meet them.
    #[serde(default, rename = "module")]
    pub modules: Vec<Description>,
}

impl Config {
    /// Reads a file. Paths of images are relative to it.
    ///
    /// # Errors
    /// As [`ConfigError`] lists.
    pub fn read(path: &Path) -> Result<Config, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Read {
            path: path.to_owned(),
            source,
        })?;
        let mut config: Config = toml::from_str(&text)
            .map_err(|error| ConfigError::Form(format!("{}: {error}", path.display())))?;
        for (at, module) in config.modules.iter().enumerate() {
            module.check()?;
            if config
                .modules
                .iter()
                .take(at)
                .any(|other| other.name == module.name)
            {
                return Err(ConfigError::Twice(module.name.clone()));
            }
        }
        let folder = path.parent().unwrap_or(Path::new("."));
        for module in &mut config.modules {
            module.image = folder.join(&module.image);
        }
        Ok(config)
    }
}

impl Description {
    /// Whether everything in it can be.
    ///
    /// # Errors
    /// As [`ConfigError`] lists.
    pub fn check(&self) -> Result<(), ConfigError> {
        let is_good = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        if self.name.is_empty() || self.name.len() > NAME || !self.name.chars().all(is_good) {
            return Err(ConfigError::Name(self.name.escape_debug().to_string()));
        }
        self.filter().and(self.time().map(|_| ()))
    }

    pub(crate) fn parsed_filter(&self) -> Result<Filter, ConfigError> {
        let text = self.filter.as_deref().unwrap_or("any");
        text.parse().map_err(|source| ConfigError::Filter {
            module: self.name.clone(),
            source,
        })
    }

    fn filter(&self) -> Result<(), ConfigError> {
        self.parsed_filter().map(|_| ())
    }

    /// Time for one frame.
    pub(crate) fn time(&self) -> Result<Duration, ConfigError> {
        let Some(text) = &self.time else {
            return Ok(TIME);
        };
        let units = [("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];
        let found = units.iter().find_map(|(unit, nanoseconds)| {
            let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
            Some(Duration::from_nanos(number.checked_mul(*nanoseconds)?))
        });
        found
            .filter(|time| !time.is_zero())
            .ok_or_else(|| ConfigError::Time(text.clone()))
    }

    /// Bytes of memory.
    pub(crate) fn memory(&self) -> u64 {
        self.memory.unwrap_or(MEMORY)
    }

    pub(crate) fn view(&self) -> View {
        View {
            bytes: self.sees,
            locked: self.locked.clone(),
        }
    }
}
