//! Services: channels to whoever has bound a name.
//!
//! ```text
//!   server: serve("/path", &contract::Contract::INFO)            client: channel(); open("/path", server end)
//!           accept() -> its end of the client's new channel <---------- queued with the name, by the kernel
//! ```

use std::any::Any;
use std::collections::VecDeque;

use super::handover::Handover;
use super::names::{self, NameError, Offer};
use crate::Parcel;
use crate::channel::{AnyEndpoint, Info};
use crate::critical::as_host;
use crate::wait::{self, Waiter};

/// Clients that may wait for a service to accept them.
pub const BACKLOG: usize = 64;

/// A name that the calling process has bound, and who comes by it. Dropping it unbinds the name.
#[derive(Debug)]
#[must_use]
pub struct Service {
    path: Box<str>,
}

/// Ends that wait to be accepted. The kernel keeps it with the name, and allocates it as the host.
struct Queue {
    digest: [u8; 32],
    ends: VecDeque<Parcel<AnyEndpoint>>,
    waiting: Waiter,
}

// SAFETY: made and filled in critical pieces of the kernel, which allocate as the host; parcels are handed over.
unsafe impl Handover for Queue {}

impl Offer for Queue {
    fn digest(&self) -> [u8; 32] {
        self.digest
    }

    fn connect(&mut self, end: &mut dyn Any) -> bool {
        let end = end.downcast_mut::<Option<Parcel<AnyEndpoint>>>();
        let Some(end) = end
            .filter(|_| self.ends.len() < BACKLOG)
            .and_then(Option::take)
        else {
            return false;
        };
        self.ends.push_back(end);
        wait::unpark(self.waiting);
        true
    }
}

/// Binds a name to a service that speaks a contract.
///
/// # Errors
/// As [`names::bind`].
pub fn serve(path: &str, contract: &Info) -> Result<Service, NameError> {
    let queue = {
        let _host = as_host();
        Queue {
            digest: contract.digest.0,
            ends: VecDeque::with_capacity(BACKLOG),
            waiting: Waiter::NONE,
        }
    };
    names::bind(path, queue)?;
    Ok(Service { path: path.into() })
}

/// Gives the service of a name one end of a channel.
///
/// # Errors
/// As [`names::connect`], with the end back.
pub fn open(path: &str, end: AnyEndpoint) -> Result<(), (NameError, AnyEndpoint)> {
    let digest = end.info().digest.0;
    let mut parcel = Some(Parcel::pack(end));
    match (names::connect(path, digest, &mut parcel), parcel) {
        (Err(error), Some(parcel)) => Err((error, parcel.open())),
        _ => Ok(()),
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
        let _host = as_host();
        let parcel = names::with_own(&self.path, |offer| {
            let queue = offer.downcast_mut::<Queue>()?;
            queue.waiting = waiting;
            queue.ends.pop_front()
        });
        parcel.flatten().map(Parcel::open)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // It is bound, unless the process has unbound it by its path.
        let _ = names::unbind(&self.path);
    }
}
