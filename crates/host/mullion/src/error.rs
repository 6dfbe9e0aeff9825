//! What can go wrong, as typed data.

use crate::fault::Fault;
use mullion_loader::LoadError;
use std::path::PathBuf;

/// Why the host did not get what it asked for.
///
/// `domain` is the name that the domain was given when it was loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The image cannot be read.
    #[error("{}: {source}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system answered.
        source: std::io::Error,
    },
    /// The image is not what the verifier accepts.
    #[error("{image}: refused: {source} (see mullion verify)")]
    Rejected {
        /// The image's name.
        image: String,
        /// The first violations.
        source: Box<mullion_verifier::Rejected>,
    },
    /// The policy does not let the image be loaded.
    #[error("{image}: not permitted: {source}")]
    NotPermitted {
        /// The image's name.
        image: String,
        /// The policy's reason.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The image is a program, to be run once and as a whole, and no extension.
    #[error("{image}: it is a program, not an extension; build it with --mullion-kind=extension")]
    NotAnExtension {
        /// The image's name.
        image: String,
    },
    /// The image is an extension, for a host to call, and no program.
    #[error("{image}: it is an extension for a host to call, not a program")]
    NotAProgram {
        /// The image's name.
        image: String,
    },
    /// A directory is granted for reading only, and can be written all the same.
    #[error(transparent)]
    Grants(#[from] mullion_system::MountError),
    /// The image asks for functions that the host does not offer.
    #[error("{image}: it imports {}, which this host does not offer", names.join(", "))]
    UnknownImports {
        /// The image's name.
        image: String,
        /// What it asks for in vain.
        names: Vec<String>,
    },
    /// The image has no export of that name.
    #[error("{image}: it exports no `{name}`; it has {}", or_nothing(exports))]
    NoExport {
        /// The image's name.
        image: String,
        /// What was asked for.
        name: String,
        /// What there is.
        exports: Vec<String>,
    },
    /// The image's debug information says that an export has another type than the host.
    #[error(
        "{image}: `{name}` is {image_type} by its debug information, and the host takes it for {host}"
    )]
    WrongType {
        /// The image's name.
        image: String,
        /// The export.
        name: String,
        /// The host's type.
        host: String,
        /// That of the image, as C has it.
        image_type: String,
    },
    /// The image has no import of that name.
    #[error("{image}: it imports no `{name}`")]
    NoImport {
        /// The image's name.
        image: String,
        /// What was to be linked.
        name: String,
    },
    /// The import is another domain's function already.
    #[error("domain {domain}: its import `{import}` is linked already")]
    Linked {
        /// The domain.
        domain: String,
        /// The import.
        import: String,
    },
    /// The domain has called an import that is to be another domain's function, before
    /// it was.
    #[error("domain {domain}: its import `{import}` is not linked yet")]
    Unlinked {
        /// The domain.
        domain: String,
        /// The import.
        import: String,
    },
    /// The policy does not allow that a domain calls another one, or has pages.
    #[error("{} may not {wish}: {source}", or_host(asker.as_deref()))]
    NotAllowed {
        /// The domain that asked for it; `None`: the host.
        asker: Option<String>,
        /// What was wanted.
        wish: String,
        /// The policy's reason.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Pages are not shared with the domain.
    #[error("domain {domain}: {source}")]
    Share {
        /// The domain that would have had them.
        domain: String,
        /// Why.
        source: mullion_runtime::ShareError,
    },
    /// Another domain, which this one has called, did not return. This one can be called
    /// again; what it was doing was not finished.
    #[error("domain {domain}: a domain that it called failed: {source}")]
    Callee {
        /// The domain.
        domain: String,
        /// What became of the call of the other one, which it names.
        source: Box<Error>,
    },
    /// The domain did something wrong, or its time was up. It takes no calls until
    /// it is restarted.
    #[error(transparent)]
    Fault(Box<Fault>),
    /// The call was cancelled ([`Call`](crate::Call), [`Canceller`](crate::Canceller)). Either it was not made,
    /// and the domain is as it was. Or it was ended, and the domain takes no calls until it is restarted, as
    /// after a limit of time.
    #[error("domain {domain}: {}", cancelled(fault.as_deref()))]
    Cancelled {
        /// The domain.
        domain: String,
        /// Where the call was; `None`: it was not made.
        fault: Option<Box<Fault>>,
    },
    /// The system has no thread for a call that was to be started, or for a pool.
    #[error("no thread is to be had: {0}")]
    Thread(std::io::Error),
    /// All domains of a pool are in use, or its memory.
    #[error("all domains of the pool are in use: it may have {most}")]
    Exhausted {
        /// How many it may have.
        most: usize,
    },
    /// The domain ended by itself, as `exit` does. It takes no calls until it is restarted.
    #[error("domain {domain}: exited with status {status}")]
    Exit {
        /// The domain.
        domain: String,
        /// The status that it gave.
        status: i32,
    },
    /// A host function ended the call, with its own reason. The domain can be
    /// called again; what it was doing was not finished.
    #[error("domain {domain}: a host function ended the call: {source}")]
    Refused {
        /// The domain.
        domain: String,
        /// The host function's reason.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The domain has faulted or exited, and was not restarted since.
    #[error("domain {domain}: it has ended and takes no calls until it is restarted")]
    Ended {
        /// The domain.
        domain: String,
    },
    /// The domain cannot be restarted or unloaded while calls are in it or slices
    /// of it are held.
    #[error("domain {domain}: it is in use (restart_when_idle waits until it is not)")]
    InUse {
        /// The domain.
        domain: String,
    },
    /// The domain cannot be used: it is just being started, restarted or unloaded, or one of these
    /// waits until it is empty. Callers that [`Limits::start_wait`](crate::Limits::start_wait) lets
    /// wait have waited so long.
    #[error("domain {domain}: it is not open: it is being started, restarted or unloaded")]
    NotOpen {
        /// The domain.
        domain: String,
    },
    /// The domain was unloaded.
    #[error("domain {domain}: it was unloaded")]
    Unloaded {
        /// The domain.
        domain: String,
    },
    /// Invocations are nested on this thread as deep as the domain's limits allow.
    #[error("domain {domain}: {depth} invocations are nested on this thread: that is its limit")]
    Depth {
        /// The domain.
        domain: String,
        /// How many.
        depth: u32,
    },
    /// A host function on this thread was left by `longjmp` or the like, and not by its return. No domain is
    /// entered on the thread any more. A host function that such a jump came to ends its call with this when it
    /// returns; then the thread goes on.
    #[error("{}", mullion_runtime::Error::Abandoned)]
    Abandoned,
    /// The domain has used its time for all calls; a restart gives it anew. (If it was in
    /// a call when the time was up, that ended by a fault.)
    #[error("domain {domain}: it has used its {granted:?} for all calls")]
    TimeSpent {
        /// The domain.
        domain: String,
        /// What it was granted.
        granted: std::time::Duration,
    },
    /// The domain has used its time on processors for all calls; a restart gives it anew.
    #[error("domain {domain}: it has used its {granted:?} of processor time for all calls")]
    ProcessorTimeSpent {
        /// The domain.
        domain: String,
        /// What it was granted.
        granted: std::time::Duration,
    },
    /// The domain would hand out more bytes than its limits allow: see
    /// [`Caller::charge_output`](crate::Caller::charge_output).
    #[error("domain {domain}: output limit of {granted} bytes exceeded")]
    OutputLimit {
        /// The domain.
        domain: String,
        /// What it was granted.
        granted: u64,
    },
    /// The address is no function of the domain: no instruction that carries the label.
    #[error("domain {domain}: {address:#x} is none of its functions")]
    NotAFunction {
        /// The domain.
        domain: String,
        /// The address.
        address: u64,
    },
    /// The memory is not the domain's, or not to be used so.
    #[error("domain {domain}: it has no such memory at {address:#x}, {length} bytes long")]
    Memory {
        /// The domain.
        domain: String,
        /// Where it is claimed to be.
        address: u64,
        /// How many bytes.
        length: u64,
    },
    /// The buffer is from before the domain was restarted: its memory has gone.
    #[error("domain {domain}: the memory went when it was restarted")]
    Stale {
        /// The domain.
        domain: String,
    },
    /// A slice has fewer elements.
    #[error("element {index} of a slice that has {length}")]
    Index {
        /// The element that was asked for.
        index: u64,
        /// How many there are.
        length: u64,
    },
    /// A string has no end within what was allowed.
    #[error("the string has no end within {longest} bytes")]
    LongString {
        /// What was allowed, in bytes.
        longest: usize,
    },
    /// The domain's memory limit does not allow the allocation.
    #[error("domain {domain}: no memory left for {count} elements of {size} bytes")]
    NoMemory {
        /// The domain.
        domain: String,
        /// How many elements.
        count: u64,
        /// How large each is, in bytes.
        size: u64,
    },
    /// The run time could not do it: the system has no memory, window or stack left,
    /// or cannot enter domains at all.
    #[error(transparent)]
    Runtime(#[from] mullion_runtime::Error),
    /// The image could not be mapped or started.
    #[error(transparent)]
    Load(mullion_loader::LoadError),
}

impl Error {
    /// Whether the call was cancelled, or one that it had made of another domain was.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        match self {
            Self::Cancelled { .. } => true,
            Self::Callee { source, .. } => source.is_cancelled(),
            _ => false,
        }
    }

    /// The fault, if it is one, of this domain or of one that it has called.
    #[must_use]
    pub fn fault(&self) -> Option<&Fault> {
        match self {
            Self::Fault(fault) => Some(fault),
            Self::Cancelled { fault, .. } => fault.as_deref(),
            Self::Callee { source, .. } => source.fault(),
            _ => None,
        }
    }
}

/// An error of any kind.
pub type BoxedError = Box<dyn std::error::Error + Send + Sync>;

/// What a link hands to the invocation that it ends.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) struct Failed(pub(crate) Error);

pub(crate) fn explain_load(error: LoadError) -> Error {
    match error {
        LoadError::Runtime(error) => Error::Runtime(error),
        other => Error::Load(other),
    }
}

fn cancelled(fault: Option<&Fault>) -> String {
    match fault {
        Some(fault) => fault.raw().to_string(),
        None => "the call was cancelled before it began".to_owned(),
    }
}

fn or_host(asker: Option<&str>) -> String {
    asker.map_or_else(|| "the host".to_owned(), |name| format!("domain {name}"))
}

fn or_nothing(names: &[String]) -> String {
    match names {
        [] => "none".to_owned(),
        names => names.join(", "),
    }
}
