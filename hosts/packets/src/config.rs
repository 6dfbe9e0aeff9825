//! What runs: ports and modules, as a file says it.

use crate::filter::{Filter, FilterError};
use crate::port::Way;
use crate::view::{Locked, View};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;
use thiserror::Error;

/// Longest name of a module, in bytes.
const NAME: usize = 64;
/// How long a module may take for one frame, if nothing else is said.
const TIME: Duration = Duration::from_millis(1);
/// The longest that may be said.
const LONGEST: Duration = Duration::from_secs(60);
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
    /// More than its role lets a module have.
    #[error("the role of the type `{role}` does not let a module {what}")]
    Role {
        /// The module type.
        role: String,
        /// What it asks for.
        what: &'static str,
    },
    /// Two of one name.
    #[error("there are two modules of the name `{0}`")]
    Twice(String),
    /// A time.
    #[error("`{0}` is no time: write 100us, 5ms or 1s, at most 60s")]
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

/// What holds a module in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wall {
    /// None but its language: its code is the forwarder's own. A role and its user must both say it.
    Language,
    /// A window in the forwarder.
    #[default]
    Window,
    /// A window in a process of its own, which has no powers.
    Process,
}

impl Wall {
    fn is_window(&self) -> bool {
        *self == Wall::Window
    }
}

impl FromStr for Wall {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Wall, ConfigError> {
        match text {
            "language" => Ok(Wall::Language),
            "window" => Ok(Wall::Window),
            "process" => Ok(Wall::Process),
            _ => Err(ConfigError::Form(format!(
                "`{text}` is no wall: write window, process or language"
            ))),
        }
    }
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
    /// What holds it in.
    #[serde(default, skip_serializing_if = "Wall::is_window")]
    pub wall: Wall,
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
    /// Bytes of the ring of frames that wait at each port.
    #[serde(default)]
    pub ring: Option<u64>,
    /// By which way frames come in: `packet`, or `xdp` where the kernel has it.
    #[serde(default)]
    pub by: Way,
    /// In the order in which frames meet them.
    #[serde(default, rename = "module")]
    pub modules: Vec<Description>,
    /// Who may load what: the policy of `docs/trust.md`. Without one, users may load nothing.
    #[serde(default)]
    pub policy: Option<PathBuf>,
    /// What users' modules of a type get.
    #[serde(default, rename = "role")]
    pub roles: Vec<Role>,
}

/// What users' modules of one type may get, at most.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Role {
    /// The module type's identifier.
    #[serde(rename = "type")]
    pub id: String,
    /// `monitor`, or both.
    pub kind: Kind,
    /// What holds a module in, at least.
    #[serde(default)]
    pub wall: Wall,
    /// Which frames; a module's own filter takes some of them.
    pub filter: Option<String>,
    /// Only those that come in at this port.
    pub from: Option<u32>,
    /// How many bytes of a packet.
    pub sees: Option<usize>,
    /// Parts that a module neither sees nor changes.
    #[serde(default)]
    pub locked: Vec<Locked>,
    /// Time for one frame.
    pub time: Option<String>,
    /// Bytes of memory.
    pub memory: Option<u64>,
}

impl Role {
    /// What a module gets that wishes for this: of each the stricter.
    ///
    /// # Errors
    /// It wishes for what the role has not; it cannot be.
    pub fn bound(&self, wish: &Description) -> Result<Description, ConfigError> {
        wish.check()?;
        let not = |what| ConfigError::Role {
            role: self.id.clone(),
            what,
        };
        if self.kind == Kind::Monitor && wish.kind != Kind::Monitor {
            return Err(not("change, drop or add frames: write kind = \"monitor\""));
        }
        if self.from.is_some() && wish.from.is_some() && self.from != wish.from {
            return Err(not("have frames of that port"));
        }
        let mut bound = wish.clone();
        bound.filter = match (&self.filter, &wish.filter) {
            // Each is a filter by itself, so that neither can end the other's parentheses.
            (Some(role), Some(wish)) => Some(format!("({role}) and ({wish})")),
            (one, other) => one.clone().or(other.clone()),
        };
        bound.from = self.from.or(wish.from);
        bound.wall = self.wall.max(wish.wall);
        bound.sees = self.sees.into_iter().chain(wish.sees).min();
        for part in &self.locked {
            if !bound.locked.contains(part) {
                bound.locked.push(*part);
            }
        }
        let of_role = time(self.time.as_deref())?;
        if wish.time.is_none() || of_role < wish.time()? {
            bound.time.clone_from(&self.time);
        }
        bound.memory = Some(wish.memory().min(self.memory.unwrap_or(MEMORY)));
        bound.check()?;
        Ok(bound)
    }
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
        for role in &config.roles {
            if let Some(filter) = &role.filter {
                let filter: Result<Filter, _> = filter.parse();
                filter.map_err(|source| ConfigError::Filter {
                    module: role.id.clone(),
                    source,
                })?;
            }
            time(role.time.as_deref())?;
        }
        let folder = path.parent().unwrap_or(Path::new("."));
        config.policy = config.policy.map(|policy| folder.join(policy));
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
        time(self.time.as_deref())
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

/// A time as it is written; the usual one, if nothing is.
fn time(text: Option<&str>) -> Result<Duration, ConfigError> {
    let Some(text) = text else {
        return Ok(TIME);
    };
    let units = [("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];
    let found = units.iter().find_map(|(unit, nanoseconds)| {
        let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
        Some(Duration::from_nanos(number.checked_mul(*nanoseconds)?))
    });
    found
        .filter(|time| !time.is_zero() && *time <= LONGEST)
        .ok_or_else(|| ConfigError::Time(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_bounds_what_a_module_gets() {
        let role: Role = toml::from_str(
            "type = \"t\"\nkind = \"monitor\"\nfilter = \"udp or tcp\"\nsees = 28\nlocked = [\"source\"]\ntime = \"1ms\"",
        )
        .unwrap();
        let wish: Description = toml::from_str(
            "name = \"m\"\nimage = \"m\"\nkind = \"monitor\"\nfilter = \"ip\"\nsees = 100\nlocked = [\"payload\"]\ntime = \"2s\"\nmemory = 1000000000",
        )
        .unwrap();
        let bound = role.bound(&wish).unwrap();
        assert_eq!(bound.filter.as_deref(), Some("(udp or tcp) and (ip)"));
        assert_eq!(bound.sees, Some(28));
        assert_eq!(bound.locked, [Locked::Payload, Locked::Source]);
        assert_eq!(bound.time.as_deref(), Some("1ms"));
        assert_eq!(bound.memory, Some(MEMORY));
        let role_of_processes = Role {
            wall: Wall::Process,
            ..role.clone()
        };
        assert_eq!(role_of_processes.bound(&wish).unwrap().wall, Wall::Process);
        assert_eq!(bound.wall, Wall::Window);
        let refused = |wish: &Description| role.bound(wish).unwrap_err().to_string();
        let grabs = Description {
            kind: Kind::Transcoder,
            ..wish.clone()
        };
        assert!(refused(&grabs).contains("change, drop or add frames"));
        let breaks_out = Description {
            filter: Some("udp) or (any".to_owned()),
            ..wish
        };
        assert!(refused(&breaks_out).contains("the filter of `m`"));
    }
}
