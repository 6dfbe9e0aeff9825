//! What the host is told of a call that did not return.

use crate::error::{Error, Failed};
use crate::fault::Fault;
use crate::identity::Identity;
use mullion_runtime::{CallError, Cause};

impl Identity {
    /// What the host is told, and its log.
    #[cold]
    pub(crate) fn explain(&self, error: CallError) -> Error {
        let domain = self.name().to_owned();
        let error = match error {
            CallError::Fault(fault) => {
                let fault = Box::new(Fault::new(&domain, self.image().symbols(), *fault));
                match fault.cause() {
                    Cause::Cancelled => Error::Cancelled {
                        domain,
                        fault: Some(fault),
                    },
                    _ => Error::Fault(fault),
                }
            }
            CallError::Exit(status) => Error::Exit { domain, status },
            // It waited for a lock, in a domain that another call has ended.
            CallError::Refused(source)
                if matches!(source.downcast_ref(), Some(mullion_runtime::Error::Ended)) =>
            {
                Error::Ended { domain }
            }
            CallError::Refused(source) => match source.downcast::<Failed>() {
                Ok(failed) => Error::Callee {
                    domain,
                    source: Box::new(failed.0),
                },
                Err(source) if was_jumped_over(&*source) => Error::Abandoned,
                Err(source) => Error::Refused { domain, source },
            },
            CallError::NotMade(mullion_runtime::Error::Abandoned) => Error::Abandoned,
            CallError::NotMade(mullion_runtime::Error::Ended) => Error::Ended { domain },
            CallError::NotMade(mullion_runtime::Error::Cancelled) => Error::Cancelled {
                domain,
                fault: None,
            },
            CallError::NotMade(mullion_runtime::Error::NotOpen) => Error::NotOpen { domain },
            CallError::NotMade(mullion_runtime::Error::Depth { depth }) => {
                Error::Depth { domain, depth }
            }
            CallError::NotMade(mullion_runtime::Error::TimeSpent { granted }) => {
                Error::TimeSpent { domain, granted }
            }
            CallError::NotMade(mullion_runtime::Error::ProcessorTimeSpent { granted }) => {
                Error::ProcessorTimeSpent { domain, granted }
            }
            CallError::NotMade(other) => Error::Runtime(other),
        };
        match &error {
            Error::Fault(fault) => fault.log(),
            other => tracing::debug!(target: "mullion::call", "{other}"),
        }
        error
    }
}

/// Whether the run time has ended the call because of a jump to its host function.
fn was_jumped_over(reason: &(dyn std::error::Error + Send + Sync + 'static)) -> bool {
    matches!(
        reason.downcast_ref(),
        Some(mullion_runtime::Error::Abandoned)
    )
}
