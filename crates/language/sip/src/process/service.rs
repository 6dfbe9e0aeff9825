//! Services: channels to whoever has bound a name.
//!
//! ```text
//!   server: serve("/path", &contract::Contract::INFO)            client: channel(); open("/path", server end)
//!           accept() -> its end of the client's new channel <---------- queued with the name, by the kernel
//! ```

use super::names::{self, NameError};
use super::upstream;
use crate::inner::{CORE, EXCHANGE};
use mullion_sip_core::wait::{self, Waiter};
use mullion_sip_exchange::channel::{AnyEndpoint, Info};

/// A name that the calling process has bound, and who comes by it. Dropping it unbinds the name, and nothing else does
/// while the process lives: who accepts does not wait at a name that is gone.
#[derive(Debug)]
#[must_use]
pub struct Service {
    path: Box<str>,
}

/// Binds a name to a service that speaks a contract.
///
/// # Errors
/// As [`names::bind`].
pub fn serve(path: &str, contract: &'static Info) -> Result<Service, NameError> {
    bind_everywhere(path, contract, true)?;
    Ok(Service { path: path.into() })
}

/// [`serve`] without a value that unbinds the name.
pub(crate) fn bind_service(path: &str, contract: &'static Info) -> Result<(), NameError> {
    bind_everywhere(path, contract, false)
}

fn bind_everywhere(path: &str, contract: &'static Info, served: bool) -> Result<(), NameError> {
    names::bind_contract(path, contract, served)?;
    upstream::bound(path, contract).inspect_err(|_| {
        // Bound just now; who bound it elsewhere keeps it.
        let _ = names::unbind_service(path);
    })
}

/// Gives the service of a name one end of a channel. Until it is accepted there, it counts for the calling process.
///
/// # Errors
/// Why, with the end back.
pub fn open(path: &str, end: AnyEndpoint) -> Result<(), (NameError, AnyEndpoint)> {
    let digest = end.info().digest.0;
    match names::connect(path, digest, end) {
        Err((NameError::Unbound, end)) => upstream::open(path, end),
        connected => connected,
    }
}

impl Service {
    /// The end of the next client's channel, if one waits.
    pub fn try_accept(&self) -> Option<AnyEndpoint> {
        self.take(Waiter::NONE)
    }

    /// The end of the next client's channel; waits for one.
    pub fn accept(&self) -> AnyEndpoint {
        loop {
            match self.take(wait::current()) {
                Some(end) => return end,
                None => wait::park(),
            }
        }
    }

    /// Opened in the same critical piece, so that an end belongs to the queue or to the process at any time.
    fn take(&self, waiting: Waiter) -> Option<AnyEndpoint> {
        let _host = CORE.as_host();
        names::take(&self.path, waiting).map(|end| EXCHANGE.open(end))
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // It is bound: nobody else can give it up.
        let _ = names::unbind_service(&self.path);
    }
}
