//! Functions of the host: what a domain's gate call reaches, and how one ends an invocation.

use crate::frame::GateFrame;
use mullion_report::fault::Cause;
use mullion_report::refused::CallEnd;
use std::any::Any;
use std::sync::Arc;

/// A function of the host that a domain may call. What it returns is the
/// domain's `%rax`; an [`CallEnd`] ends the invocation that called it.
pub type HostFunction = Arc<dyn Fn(&mut GateCall<'_>) -> Result<u64, CallEnd> + Send + Sync>;

/// What `dispatch` leaves for the invocation's caller.
pub(crate) enum Ending {
    Exit(i32),
    Fault(Cause),
    Refused(Box<dyn std::error::Error + Send + Sync>),
    Panic(Box<dyn Any + Send>),
}

/// A domain that has called a host function, during the call.
pub struct GateCall<'a> {
    pub(crate) frame: &'a GateFrame,
}

impl From<CallEnd> for Ending {
    fn from(end: CallEnd) -> Self {
        match end {
            CallEnd::Exit(status) => Self::Exit(status),
            CallEnd::Raised(signal) => Self::Fault(Cause::Raised { signal }),
            CallEnd::OutputLimit { granted } => Self::Fault(Cause::OutputLimit { granted }),
            CallEnd::Refused(error) => Self::Refused(error),
        }
    }
}
