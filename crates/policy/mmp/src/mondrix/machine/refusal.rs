//! What a machine refuses, and how it is told.

use crate::access::{MachineAccess, Perm};
use mullion_supervisor::Permission;
use serde::Serialize;
use std::fmt;

/// Something that was not allowed. Domains, groups and threads have the numbers that the trace gave them, here
/// and in the reasons.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MachineRefusal {
    /// Which event, counted from 0.
    pub event: u64,
    /// The byte of the file at which the event begins, if it came from a file.
    pub byte: Option<u64>,
    /// The domain that ran.
    pub domain: u32,
    /// The thread that ran.
    pub thread: Option<u32>,
    /// What it was.
    pub what: RefusedAccess,
}

/// What was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RefusedAccess {
    /// An access to memory.
    Access {
        /// The first address that is not allowed.
        address: u64,
        /// What was wanted.
        wanted: MachineAccess,
        /// What the tables say.
        held: Perm,
        /// What the supervisor says, where tables coarser than words say less or more.
        #[serde(skip)]
        policy: Permission,
        /// Whether the address is in the thread's stack.
        stack: bool,
    },
    /// A cross-domain call or return.
    Crossing {
        /// Why.
        reason: String,
    },
    /// A call to the supervisor.
    Call {
        /// Its name.
        name: &'static str,
        /// Why.
        reason: String,
    },
}

impl fmt::Display for MachineRefusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "event {}", self.event)?;
        if let Some(byte) = self.byte {
            write!(out, " at byte {byte:#x}")?;
        }
        write!(out, ": domain {}", self.domain)?;
        if let Some(thread) = self.thread {
            write!(out, ", thread {thread}")?;
        }
        match &self.what {
            RefusedAccess::Access {
                address,
                wanted,
                held,
                policy,
                stack,
            } => {
                write!(out, ": {wanted} of {address:#x}, held is {held}")?;
                if *stack {
                    write!(out, " (an earlier frame of the stack)")
                } else if policy.to_string() != held.to_string() {
                    write!(out, " (the supervisor says {policy})")
                } else {
                    Ok(())
                }
            }
            RefusedAccess::Crossing { reason } => write!(out, ": {reason}"),
            RefusedAccess::Call { name, reason } => write!(out, ": {name}: {reason}"),
        }
    }
}
