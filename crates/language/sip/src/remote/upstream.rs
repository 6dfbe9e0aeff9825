//! Names beyond this OS process.

use std::sync::Arc;

use super::{Link, Memory, join};
use crate::Parcel;
use crate::channel::{self, AnyEndpoint, Info, Side};
use crate::critical::as_host;
use crate::host::Host;
use crate::process::names::{self, NameError};
use crate::shared::shared;

/// The name server that has the truth, in another OS process.
pub trait Upstream: Sync {
    /// Binds a name for this OS process; rights are looked at there. May park.
    ///
    /// # Errors
    /// As [`names::bind`].
    fn bind(&self, path: &str, contract: &'static Info) -> Result<(), NameError>;

    /// Takes a name away. Must not park.
    fn unbind(&self, path: &str);

    /// Gives the service of a name the end of a channel, by [`join`]ing it. May park.
    ///
    /// # Errors
    /// As [`open`](crate::process::open), with the end back.
    fn open(&self, path: &str, end: AnyEndpoint) -> Result<(), (NameError, AnyEndpoint)>;
}

/// A service in another OS process.
pub trait Elsewhere: Send + Sync {
    /// Gives it the end of a channel, by [`join`]ing it. Called in a critical piece: it must not park.
    ///
    /// # Errors
    /// As [`Upstream::open`].
    fn connect(
        &self,
        path: &str,
        end: Parcel<AnyEndpoint>,
    ) -> Result<(), (NameError, Parcel<AnyEndpoint>)>;
}

/// Where the service of a name is.
#[allow(missing_debug_implementations)]
pub enum Place {
    /// In this OS process; it speaks this contract, if that is known.
    Here(Option<&'static Info>),
    /// In another.
    There(Arc<dyn Elsewhere>),
}

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

impl Host {
    /// Has names asked for there that this OS process does not have. The first one stays.
    pub fn set_upstream(&self, upstream: &'static dyn Upstream) {
        let _ = shared().remote.upstream.set(upstream);
    }
}

fn upstream() -> Option<&'static dyn Upstream> {
    shared().remote.upstream.get().copied()
}

/// A process of this OS process has bound a name.
pub(crate) fn bound(path: &str, contract: &'static Info) -> Result<(), NameError> {
    upstream().map_or(Ok(()), |upstream| upstream.bind(path, contract))
}

/// A name of this OS process is bound no more.
pub(crate) fn unbound(path: &str) {
    if let Some(upstream) = upstream() {
        upstream.unbind(path);
    }
}

/// A process opens a name that is not bound in this OS process.
pub(crate) fn open(path: &str, end: AnyEndpoint) -> Result<(), (NameError, AnyEndpoint)> {
    match upstream() {
        Some(upstream) => upstream.open(path, end),
        None => Err((NameError::Unbound, end)),
    }
}

/// A client in another OS process gives the service of a name here one end, of a side: makes a channel, and
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
    let _host = as_host();
    let Some(Place::Here(Some(contract))) = names::place_of(path) else {
        return Err(NameError::Unbound);
    };
    if contract.digest.0 != digest {
        return Err(NameError::ContractDiffers);
    }
    let [client, server] = channel::untyped(contract).map_err(|_| NameError::Busy)?;
    let (given, kept) = match side {
        Side::Client => (client, server),
        Side::Server => (server, client),
    };
    names::connect(path, digest, given).map_err(|(error, _)| error)?;
    join(kept, link, memory).map_err(|_| NameError::Busy)
}
