//! Names beyond this OS process: who is asked for them.

use std::sync::{Arc, OnceLock};

use super::name::NameError;
use crate::host::Host;
use mullion_sip_exchange::channel::{AnyEndpoint, Info};
use mullion_sip_exchange::interior::Parcel;

// Who is asked.
mullion_sip_core::__state!(OnceLock<&'static dyn Upstream> = OnceLock::new());

/// The name server that has the truth, in another OS process.
pub trait Upstream: Sync {
    /// Binds a name for this OS process; rights are looked at there. May park.
    ///
    /// # Errors
    /// As [`names::bind`](super::names::bind).
    fn bind(&self, path: &str, contract: &'static Info) -> Result<(), NameError>;

    /// Takes a name away. Must not park.
    fn unbind(&self, path: &str);

    /// Gives the service of a name the end of a channel, by joining it to a line. May park.
    ///
    /// # Errors
    /// As [`open`](crate::process::open), with the end back.
    fn open(&self, path: &str, end: AnyEndpoint) -> Result<(), (NameError, AnyEndpoint)>;
}

/// A service in another OS process.
pub trait Elsewhere: Send + Sync {
    /// Gives it the end of a channel, by joining it to a line. Called in a critical piece: it must not park.
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

impl Host {
    /// Has names asked for there that this OS process does not have. The first one stays.
    pub fn set_upstream(&self, upstream: &'static dyn Upstream) {
        let _ = state().set(upstream);
    }
}

fn upstream() -> Option<&'static dyn Upstream> {
    state().get().copied()
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
