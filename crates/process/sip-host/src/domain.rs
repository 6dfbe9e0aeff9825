//! Where processes run.

use std::num::NonZeroUsize;
use std::sync::Arc;

use mullion_hip::{DomainView, FILES, Sharing};
use mullion_sip::process::{Exit, SpawnError};
use mullion_sip::wait::Waiter;
use thiserror::Error;

use crate::configuration::{DomainConfig, DomainKind, ProcessConfig};
use crate::image::SipImage;
use crate::in_host::InHost;
pub use crate::instance::LibraryLoadError;
use crate::os_process::OsProcess;

/// A protection domain that can run processes.
pub trait SipDomain: Send {
    /// Begins a life of a process.
    ///
    /// # Errors
    /// It does not begin; the supervisor takes it for a failure of the process.
    fn start(&mut self, process: &Process) -> Result<Box<dyn RunningDomain>, DomainStartError>;

    /// Every process is being killed, and none is started again: what is left may end at once.
    fn stop(&mut self) {}
}

/// A process as a domain gets it.
#[derive(Debug)]
pub struct Process {
    /// Its name in the configuration, kept for ever.
    pub name: &'static str,
    /// What the configuration says of it.
    pub config: ProcessConfig,
    /// Its library, judged.
    pub image: Arc<SipImage>,
}

/// A life of a process. Dropping it lets the life go on, with nobody to look at it.
pub trait RunningDomain: Send {
    /// How it ended, if it has; else `waiter` is woken when it does.
    fn look(&self, waiter: Waiter) -> Option<Exit>;

    /// Ends it. It may run on for a moment.
    fn kill(&self);

    /// Where it is, if that is in another OS process.
    fn place(&self) -> Option<ProcessPlace> {
        None
    }
}

/// A life in another OS process.
#[derive(Clone, Debug)]
pub struct ProcessPlace {
    /// What looks at its domain.
    pub(crate) glass: DomainView,
    /// Its number there.
    pub(crate) life: u64,
}

/// Why a process did not begin.
#[derive(Debug, Error)]
pub enum DomainStartError {
    /// Its library could not be loaded.
    #[error(transparent)]
    Load(#[from] LibraryLoadError),
    /// The kernel refused a process.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// There is no such domain, or it has no such process.
    #[error("there is no such domain")]
    Unknown,
    /// The domain's OS process does not begin.
    #[error(transparent)]
    Domain(Box<mullion_hip::LaunchError>),
    /// No memory for the images that a domain is given, or the domain cannot be told what to do.
    #[error("its domain cannot be reached: {0}")]
    Unreachable(#[from] std::io::Error),
}

/// Why there is no such domain.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum DomainError {
    /// A domain in an OS process of its own has more than this many processes.
    #[error("domains.{0}: a domain of kind \"process\" has at most {FILES} processes, not {1}")]
    TooMany(String, usize),
    /// A domain in the same address space cannot have an exchange heap of its own.
    #[error(
        "domains.{0}: a domain of kind \"same\" has the shared exchange heap; leave `heap` out"
    )]
    HeapOfItsOwn(String),
}

/// Makes a domain for some processes. Nothing is started.
///
/// # Errors
/// See [`DomainError`].
pub fn launch(
    name: &str,
    config: &DomainConfig,
    processes: &[Arc<Process>],
    workers: Option<NonZeroUsize>,
) -> Result<Box<dyn SipDomain>, DomainError> {
    use crate::configuration::ExchangeHeap::{Own, Remapped, Shared};
    match (config.kind, config.heap) {
        (DomainKind::Same, Some(Own | Remapped)) => Err(DomainError::HeapOfItsOwn(name.to_owned())),
        (DomainKind::Same, _) => Ok(Box::new(InHost::default())),
        (DomainKind::Process, _) if processes.len() > FILES => {
            Err(DomainError::TooMany(name.to_owned(), processes.len()))
        }
        (DomainKind::Process, heap) => {
            let share = match heap {
                None | Some(Own) => None,
                Some(Remapped) => Some(Sharing::Remapped),
                Some(Shared) => Some(Sharing::Open),
            };
            let workers = workers.map(NonZeroUsize::get);
            Ok(Box::new(OsProcess::new(
                name,
                processes.to_vec(),
                share,
                workers,
            )))
        }
    }
}
