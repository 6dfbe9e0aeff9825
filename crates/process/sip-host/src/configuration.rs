//! Which processes there are, what they may do, and which of them share a protection domain.
//!
//! ```
//! use mullion_sip_host::configuration::{Configuration, DomainKind};
//!
//! let text = r#"
//!     workers = 2
//!
//!     [domains.storage]
//!     kind = "same"
//!
//!     [processes.disk]
//!     library = "libdisk.so"
//!     arguments = ["--blocks", "100"]
//!     domain = "storage"
//!     restart = "on-failure"
//!     bind = ["/disk"]
//!     limits = { memory = "8 MiB", slice = "100 ms" }
//! "#;
//! let configuration = Configuration::parse(text)?;
//! assert_eq!(configuration.domain_of("disk").kind, DomainKind::Same);
//! # Ok::<(), mullion_sip_host::configuration::ConfigurationError>(())
//! ```

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mullion_sip::process::{Home, Limits, Policy, Rights};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use thiserror::Error;
use toml::Spanned;

use crate::quantity::{Bytes, Pause, Prefix, Sha256};

/// What `mullion sip run` is to run.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Configuration {
    /// Workers (OS threads that run processes) of each address space. By default there is one for each core, but in an OS
    /// process of its own no more than it has processes.
    pub workers: Option<NonZeroUsize>,
    /// The protection domains, by name. Processes that name none are in the domain `main`, which need not be
    /// declared: it is the address space of `mullion sip run` itself.
    #[serde(default)]
    pub domains: BTreeMap<String, DomainConfig>,
    /// What processes may have of the world outside, by name: the service `web` is at the name `/host/web`.
    #[serde(default)]
    pub services: BTreeMap<String, ServiceConfig>,
    /// The processes, by name. They are started in the order of their names' bytes.
    #[serde(default)]
    pub processes: BTreeMap<String, ProcessConfig>,
}

/// Workers that an address space can be asked for.
pub const WORKERS: usize = 1024;

/// Bytes of the name of a process, a domain or a service at most: they are shown in tables and pictures.
pub const NAME: usize = 64;

/// The domain of processes that name none.
pub const MAIN: &str = "main";

/// One protection domain.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct DomainConfig {
    /// Where it is.
    #[serde(default)]
    pub kind: DomainKind,
    /// Which exchange heap its processes use; by default the one that its kind has.
    pub heap: Option<ExchangeHeap>,
}

/// Where a protection domain is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DomainKind {
    /// In the address space of `mullion sip run`: the walls between processes are the language's.
    #[default]
    Same,
    /// In an operating system process of its own: around the domain, the wall is the hardware's.
    Process,
}

/// Which exchange heap a domain uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExchangeHeap {
    /// Its own: messages to and from other domains are copied.
    Own,
    /// Its own, but for vectors of numbers that are very large. Between all domains that say so the pages of these change
    /// hands, and are closed to all others.
    Remapped,
    /// Between all domains that share, large vectors of numbers move by pointer; each can read and change all such
    /// vectors of all of them.
    Shared,
}

/// What the host does for processes that may look its name up. See [`mullion_sip::grant`].
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServiceConfig {
    /// Hands out the connections of a TCP socket that listens there. Port 0 is one that is free.
    #[serde(deserialize_with = "address")]
    Listen(SocketAddr),
    /// Reads files below a directory, from the configuration's directory if the path is relative.
    Directory(PathBuf),
}

/// One process.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ProcessConfig {
    /// The separately built SIP, from the configuration's directory if the path is relative.
    pub library: PathBuf,
    /// The SHA-256 that the library must have.
    pub sha256: Option<Sha256>,
    /// What its main function gets.
    #[serde(default)]
    pub arguments: Vec<String>,
    /// The protection domain; [`MAIN`] by default.
    pub domain: Option<Spanned<String>>,
    /// The worker that it lives on, modulo their number; by default the workers in turn.
    pub worker: Option<usize>,
    /// When it is started again.
    #[serde(default)]
    pub restart: RestartRule,
    /// How long to wait before that, if it failed.
    #[serde(default)]
    pub back_off: BackOff,
    /// Beginnings of the names that it may bind.
    #[serde(default)]
    pub bind: Vec<Prefix>,
    /// Beginnings of the names that it may look up.
    #[serde(default)]
    pub look_up: Vec<Prefix>,
    /// What it may use; what is not said here its manifest says, or else the default.
    #[serde(default)]
    pub limits: LimitsConfig,
}

/// When a process is started again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RestartRule {
    /// Never.
    #[default]
    Never,
    /// When it ended otherwise than by returning, or exiting with 0.
    OnFailure,
    /// Whenever it has ended.
    Always,
}

/// Waits before restarts: they double from `first` to `most`, and begin anew after a life longer than `most`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BackOff {
    /// Before the first restart.
    pub first: Pause,
    /// Before any.
    pub most: Pause,
}

impl Default for BackOff {
    fn default() -> BackOff {
        BackOff {
            first: Pause(Duration::from_millis(10)),
            most: Pause(Duration::from_secs(10)),
        }
    }
}

/// Limits of one process, as far as the configuration says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitsConfig {
    /// Of its heap.
    pub memory: Option<Bytes>,
    /// Of the exchange heap.
    pub exchange: Option<Bytes>,
    /// Threads at a time.
    pub threads: Option<u32>,
    /// Child processes at a time.
    pub children: Option<u32>,
    /// Processor time without letting others run.
    pub slice: Option<Pause>,
}

/// Why a configuration was refused.
#[derive(Debug, Error)]
pub enum ConfigurationError {
    /// The file could not be read.
    #[error("it cannot be read: {error}")]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// Why not.
        error: std::io::Error,
    },
    /// It is not TOML, or a key or value is not one that there is. The text names line and key.
    #[error("{0}")]
    Syntax(Box<toml::de::Error>),
    /// A process is put into a domain that is not declared.
    #[error(
        "line {line}: processes.{process}.domain: there is no [domains.{domain}]; declare it, or leave the key out"
    )]
    NoSuchDomain {
        /// Counted from 1.
        line: usize,
        /// Which process.
        process: String,
        /// Which domain.
        domain: String,
    },
    /// There is nothing to run.
    #[error("there is no [processes.NAME]: nothing to run")]
    Nothing,
    /// More workers than [`WORKERS`].
    #[error(
        "workers: {0} are more than the {WORKERS} that there can be; one for each core is the usual"
    )]
    Workers(usize),
    /// The name of a process, a domain or a service cannot be shown.
    #[error("[{table}.{name:?}]: a name has 1 to {NAME} bytes, and no control characters")]
    Name {
        /// Of what: the table's name.
        table: &'static str,
        /// The name.
        name: String,
    },
    /// The first wait before a restart is longer than any is to be.
    #[error(
        "processes.{process}.back-off: first ({first:?}) is longer than most ({most:?}); say both"
    )]
    BackOff {
        /// Which process.
        process: String,
        /// The first wait.
        first: Duration,
        /// The longest, which is 10 s where nothing is said.
        most: Duration,
    },
}

impl Configuration {
    /// Reads a file. Paths of libraries and directories are made relative to its directory.
    ///
    /// # Errors
    /// See [`ConfigurationError`].
    pub fn read(path: &Path) -> Result<Configuration, ConfigurationError> {
        let text =
            std::fs::read_to_string(path).map_err(|error| ConfigurationError::Unreadable {
                path: path.to_owned(),
                error,
            })?;
        let mut configuration = Configuration::parse(&text)?;
        let directory = path.parent().unwrap_or(Path::new(""));
        for process in configuration.processes.values_mut() {
            process.library = directory.join(&process.library);
        }
        for service in configuration.services.values_mut() {
            if let ServiceConfig::Directory(path) = service {
                *path = directory.join(&*path);
            }
        }
        Ok(configuration)
    }

    /// Reads a text.
    ///
    /// # Errors
    /// As [`Configuration::read`].
    pub fn parse(text: &str) -> Result<Configuration, ConfigurationError> {
        let configuration: Configuration =
            toml::from_str(text).map_err(|error| ConfigurationError::Syntax(Box::new(error)))?;
        if configuration.processes.is_empty() {
            return Err(ConfigurationError::Nothing);
        }
        if let Some(workers) = configuration.workers.filter(|some| some.get() > WORKERS) {
            return Err(ConfigurationError::Workers(workers.get()));
        }
        configuration.check_names()?;
        for (name, process) in &configuration.processes {
            process.back_off.check(name)?;
            let Some(domain) = &process.domain else {
                continue;
            };
            let known =
                domain.get_ref() == MAIN || configuration.domains.contains_key(domain.get_ref());
            if !known {
                return Err(ConfigurationError::NoSuchDomain {
                    line: 1 + text[..domain.span().start].matches('\n').count(),
                    process: name.clone(),
                    domain: domain.get_ref().clone(),
                });
            }
        }
        Ok(configuration)
    }

    fn check_names(&self) -> Result<(), ConfigurationError> {
        let processes = self.processes.keys().map(|name| ("processes", name));
        let domains = self.domains.keys().map(|name| ("domains", name));
        let services = self.services.keys().map(|name| ("services", name));
        let good =
            |name: &str| (1..=NAME).contains(&name.len()) && !name.chars().any(char::is_control);
        match (processes.chain(domains).chain(services)).find(|(_, name)| !good(name)) {
            None => Ok(()),
            Some((table, name)) => Err(ConfigurationError::Name {
                table,
                name: name.chars().take(NAME).collect(),
            }),
        }
    }

    /// The domain of a process; [`DomainConfig::default`] for [`MAIN`] where it is not declared.
    pub fn domain_of(&self, process: &str) -> DomainConfig {
        let name = self
            .processes
            .get(process)
            .map_or(MAIN, ProcessConfig::domain);
        self.domains.get(name).copied().unwrap_or_default()
    }
}

impl BackOff {
    fn check(&self, process: &str) -> Result<(), ConfigurationError> {
        if self.first.0 <= self.most.0 {
            return Ok(());
        }
        Err(ConfigurationError::BackOff {
            process: process.to_owned(),
            first: self.first.0,
            most: self.most.0,
        })
    }
}

fn address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SocketAddr, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(|_| {
        let wanted = "write \"127.0.0.1:8080\" or \"[::1]:8080\", without names of hosts";
        D::Error::custom(format!("{text:?} is no address to listen on: {wanted}"))
    })
}

impl ProcessConfig {
    /// The name of its domain.
    pub fn domain(&self) -> &str {
        self.domain.as_ref().map_or(MAIN, |domain| domain.get_ref())
    }

    /// Its rights on names.
    pub fn rights(&self) -> Rights {
        let rights = self.bind.iter().fold(Rights::none(), |rights, prefix| {
            rights.bind(prefix.as_str())
        });
        self.look_up
            .iter()
            .fold(rights, |rights, prefix| rights.look_up(prefix.as_str()))
    }

    /// When it is started again.
    pub fn policy(&self) -> Policy {
        match self.restart {
            RestartRule::Never => Policy::Never,
            RestartRule::Always => Policy::Always,
            RestartRule::OnFailure => Policy::OnFailure {
                first: self.back_off.first.0,
                most: self.back_off.most.0,
            },
        }
    }

    /// Where it lives.
    pub fn home(&self) -> Home {
        self.worker.map_or(Home::Next, Home::Worker)
    }
}

impl LimitsConfig {
    /// What is said here, and for the rest what `wanted` says.
    pub fn over(&self, wanted: Limits) -> Limits {
        Limits {
            memory: self.memory.map_or(wanted.memory, |bytes| bytes.0 as usize),
            exchange: self.exchange.map_or(wanted.exchange, |bytes| bytes.0),
            threads: self.threads.unwrap_or(wanted.threads),
            children: self.children.unwrap_or(wanted.children),
            slice: self.slice.map_or(wanted.slice, |pause| pause.0),
        }
    }
}

#[cfg(test)]
mod tests;
