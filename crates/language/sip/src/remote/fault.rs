//! Channels that a bridge has ended, and who is told.

use std::io::Write;
use std::sync::OnceLock;

use mullion_sip_exchange::channel::Info;
use mullion_sip_exchange::exchange::wire::{DecodeError, EncodeError};

use crate::host::Host;

/// Endpoints that have been sent over a link in one direction, and whose channels wait for a line.
pub const PENDING: u32 = 16 << 10;

/// Why a channel between OS processes was ended by its bridge.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Fault {
    /// What was sent cannot cross.
    #[error("what was sent cannot cross: {0}")]
    Unsendable(#[from] EncodeError),
    /// What came is no message.
    #[error("what came is no message of the contract: {0}")]
    Malformed(#[from] DecodeError),
    /// A message that its sender may not send in this state.
    #[error("a message that the contract does not allow in this state")]
    OutOfTurn,
    /// More than [`PENDING`] endpoints.
    #[error("more than {most} endpoints whose channels are not made yet", most = PENDING)]
    TooMany,
    /// An endpoint is of another contract or side, or in another state, than whoever sent it has said.
    #[error("an endpoint of another contract, side or state than was said")]
    Endpoint,
    /// A message that lies outside of the memory for messages.
    #[error("a message that lies outside of the memory for messages")]
    Elsewhere,
}

/// Told of every channel that a bridge has ended: the contract, the peer, and why.
pub type Reporter = fn(contract: &'static Info, peer: &str, fault: Fault);

/// Who is told, in the host's copy alone.
static REPORTER: OnceLock<Reporter> = OnceLock::new();

impl Host {
    /// Has faults of channels between OS processes told to `reporter`; the first one stays. Without one they go
    /// to the standard error output.
    pub fn on_fault(&self, reporter: Reporter) {
        let _ = REPORTER.set(reporter);
    }
}

pub(super) fn report(contract: &'static Info, peer: &str, fault: Fault) {
    match REPORTER.get() {
        Some(reporter) => reporter(contract, peer, fault),
        None => {
            // The peer must not choose whether this thread goes on.
            let _ = writeln!(
                std::io::stderr(),
                "mullion: a channel of contract {} with {} was closed: {fault}",
                contract.name,
                peer
            );
        }
    }
}
