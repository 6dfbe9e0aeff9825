//! Where processes run.

use mullion_sip::process::{Exit, SpawnError};
use mullion_sip::wait::Waiter;
use thiserror::Error;

use crate::configuration::{DomainConfig, Kind, ProcessConfig};
use crate::image::Image;
pub use crate::instance::LoadError;
use crate::same::Same;

/// A protection domain that can run processes.
pub trait Domain: Send {
    /// Begins a life of a process.
    ///
    /// # Errors
    /// It does not begin; the supervisor takes it for a failure of the process.
    fn start(&mut self, process: &Process) -> Result<Box<dyn Running>, LaunchError>;
}

/// A process as a domain gets it.
#[derive(Debug)]
pub struct Process {
    /// Its name in the configuration, kept for ever.
    pub name: &'static str,
    /// What the configuration says of it.
    pub config: ProcessConfig,
    /// Its library, judged.
    pub image: Image,
}

/// A life of a process. Dropping it lets the life go on, with nobody to look at it.
pub trait Running: Send {
    /// How it ended, if it has; else `waiter` is woken when it does.
    fn look(&self, waiter: Waiter) -> Option<Exit>;

    /// Ends it. It may run on for a moment.
    fn kill(&self);
}

/// Why a process did not begin.
#[derive(Debug, Error)]
pub enum LaunchError {
    /// Its library could not be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The kernel refused a process.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// The domain is gone, or cannot be reached.
    #[error("its domain does not answer: {0}")]
    Domain(std::io::Error),
}

/// Why there is no such domain.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum DomainError {
    /// This host has no such domains.
    #[error("domains.{0}: domains of kind \"process\" are not built in yet: use kind = \"same\"")]
    NoProcesses(String),
    /// A domain in the same address space cannot have an exchange heap of its own.
    #[error(
        "domains.{0}: a domain of kind \"same\" has the shared exchange heap; leave `heap` out"
    )]
    HeapOfItsOwn(String),
}

/// Makes a domain.
///
/// # Errors
/// See [`DomainError`].
pub fn launch(name: &str, config: &DomainConfig) -> Result<Box<dyn Domain>, DomainError> {
    use crate::configuration::ExchangeHeap::Own;
    match (config.kind, config.heap) {
        (Kind::Same, Own) => Err(DomainError::HeapOfItsOwn(name.to_owned())),
        (Kind::Same, _) => Ok(Box::new(Same::default())),
        (Kind::Process, _) => Err(DomainError::NoProcesses(name.to_owned())),
    }
}
