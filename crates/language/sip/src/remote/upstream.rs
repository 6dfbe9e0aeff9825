//! Names of this OS process, for others.

use std::sync::Arc;

use super::{Link, Memory, join};
use crate::inner::{CORE, EXCHANGE};
use crate::process::names::{self, NameError};
pub use crate::process::upstream::{Elsewhere, Place, Upstream};
use mullion_sip_exchange::channel::Side;

/// Where the service of a name is; `None` if nobody has bound it.
pub fn place_of(path: &str) -> Option<Place> {
    names::place_of(path)
}

/// Binds a name, as the calling thread's owner, for a service in another OS process.
///
/// # Errors
/// As [`names::bind`].
pub fn bind_elsewhere(
    path: &str,
    digest: [u8; 32],
    elsewhere: Arc<dyn Elsewhere>,
) -> Result<(), NameError> {
    names::bind_elsewhere(path, digest, elsewhere)
}

/// A client in another OS process gives the service of a name here one end, of a side. This makes a channel, and
/// joins the other end of it.
///
/// # Errors
/// As [`open`](crate::process::open): the name is not bound, or its service takes no more clients.
pub fn accept(
    path: &str,
    digest: [u8; 32],
    side: Side,
    link: &Arc<Link>,
    memory: Memory,
) -> Result<(), NameError> {
    let _host = CORE.as_host();
    let Some(Place::Here(Some(contract))) = names::place_of(path) else {
        return Err(NameError::Unbound);
    };
    if contract.digest.0 != digest {
        return Err(NameError::ContractDiffers);
    }
    let [client, server] = EXCHANGE.channel(contract).map_err(|_| NameError::Busy)?;
    let (given, kept) = match side {
        Side::Client => (client, server),
        Side::Server => (server, client),
    };
    names::connect(path, digest, given).map_err(|(error, _)| error)?;
    join(kept, link, memory).map_err(|_| NameError::Busy)
}
