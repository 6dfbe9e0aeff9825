//! What the configuration grants processes of the world outside: `[services.NAME]`, at the name `/host/NAME`.
//!
//! ```text
//!   process -- open("/host/web") --> names of the host --> a thread of the host for each channel --> the system
//! ```
//! The contracts are [`mullion_sip::grant`]'s. The host reads a process's request as data of its type and no more
//! (`directory`, `socket`). A process that asks oddly is answered or closed, and costs its own thread's time.
//! Channels that are more than [`CHANNELS`] are closed at once.

mod directory;
mod socket;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{io, thread};

use mullion_sip::channel::{AnyEndpoint, ChannelClosed, Info};
use mullion_sip::grant::{CHANNELS, PREFIX};
use mullion_sip::process;
use mullion_sip::process::names::NameError;
use mullion_sip_hosting::Parcel;
use thiserror::Error;

use crate::configuration::ServiceConfig;

/// Why a service could not be offered.
#[derive(Debug, Error)]
pub enum ServiceError {
    /// The system does not let the host listen there.
    #[error("services.{name}: cannot listen on {address}: {error}")]
    Listen {
        /// The service.
        name: String,
        /// Where.
        address: SocketAddr,
        /// Why not.
        error: io::Error,
    },
    /// There is no such directory, or it cannot be opened.
    #[error("services.{name}: cannot open the directory {path}: {error}", path = path.display())]
    Directory {
        /// The service.
        name: String,
        /// Which directory.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// The name cannot be bound.
    #[error("services.{name}: {error}")]
    Name {
        /// The service.
        name: String,
        /// Why not.
        error: NameError,
    },
    /// No thread to serve it.
    #[error("services.{name}: {error}")]
    Thread {
        /// The service.
        name: String,
        /// Why not.
        error: io::Error,
    },
}

/// Serves it, until the program ends.
///
/// # Errors
/// See [`ServiceError`].
pub(crate) fn offer(name: &str, config: &ServiceConfig) -> Result<(), ServiceError> {
    match config {
        ServiceConfig::Listen(address) => socket::offer(name, *address),
        ServiceConfig::Directory(path) => directory::offer(name, path),
    }
}

/// Memory of a thread that serves one channel: a buffer is on its heap, and it calls nothing deep.
const STACK: usize = 128 << 10;

/// Binds the name, and has `answer` talk on each channel that comes, in a thread of its own.
fn serve(
    name: &str,
    contract: &'static Info,
    answer: impl Fn(AnyEndpoint) -> Result<(), ChannelClosed> + Send + Sync + 'static,
) -> Result<(), ServiceError> {
    let named = |error| ServiceError::Name {
        name: name.to_owned(),
        error,
    };
    let service = process::serve(&format!("{PREFIX}{name}"), contract).map_err(named)?;
    let (answer, open) = (Arc::new(answer), Arc::new(AtomicUsize::new(0)));
    let title = format!("host {name}");
    let accept = move || {
        loop {
            let end = Parcel::pack(service.accept());
            let place = ProcessPlace::take(&open);
            let answer = Arc::clone(&answer);
            if place.is_full() {
                continue;
            }
            let talk = move || {
                let _place = place;
                // A channel that is closed is over, whoever closed it.
                let _ = answer(end.open());
            };
            // Without a thread the end is dropped, and the process told.
            let _ = thread::Builder::new()
                .name(title.clone())
                .stack_size(STACK)
                .spawn(talk);
        }
    };
    thread::Builder::new()
        .name(format!("host {name}"))
        .spawn(accept)
        .map_err(|error| ServiceError::Thread {
            name: name.to_owned(),
            error,
        })?;
    Ok(())
}

/// One of a service's channels, while it lives.
struct ProcessPlace {
    open: Arc<AtomicUsize>,
    before: usize,
}

impl ProcessPlace {
    fn take(open: &Arc<AtomicUsize>) -> ProcessPlace {
        let before = open.fetch_add(1, Ordering::Relaxed);
        let open = Arc::clone(open);
        ProcessPlace { open, before }
    }

    fn is_full(&self) -> bool {
        self.before >= CHANNELS
    }
}

impl Drop for ProcessPlace {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
